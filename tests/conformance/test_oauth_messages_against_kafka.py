"""OAUTHBEARER's initial response as we read and write it, against Kafka's own class."""

import random
from collections.abc import Mapping

import pytest

from kustos.auth import (
    AcceptedToken,
    HandlerExtensions,
    HandlerTokens,
    OAuthBearerServer,
    OAuthBearerValidatorCallbackHandler,
    Proven,
    SaslAuthenticationError,
    SaslMechanismError,
)
from kustos.auth.mechanisms.oauthbearer_messages import InitialResponse, InitialResponseError
from tests.conformance.oauth_probe import encoded, kafkas

SEED = 7628
COUNT = 6000
SEEDS = (
    b"n,,\x01auth=Bearer abc.DEF-_~+/.123==\x01\x01",
    b"n,a=alice,\x01auth=bearer x\x01traceId=4711 \t\r\n\x01clusterId=lkc-1\x01\x01",
    b"n,a=b=2Cb=3Dc,\x01k=v\x01auth=BEARER  t.o.k\x01k=w\x01\x01",
    b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
    b"n,,\x01host=server.example.com\x01port=143\x01auth=Bearer "
    b"vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg==\x01\x01",
    b"n,,\x01k=v\x01\x01",
    b"n,,\x01\x01",
)
ALPHABET = b"nak,,==2C3DBearer authxyz-_~+/.09\x00\x01\x01\x7f\x80\xc3\xa9 \t\n"


def damaged(chance: random.Random) -> bytes:
    message = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(0, 3)):
        place = chance.randint(0, len(message))
        if chance.random() < 0.5:
            message[place:place] = bytes([chance.choice(ALPHABET)])
        else:
            del message[place : place + chance.randint(1, 3)]
    return bytes(message)


def ours(data: bytes) -> str:
    try:
        read = InitialResponse.parse(data)
    except InitialResponseError:
        return "error"
    pairs = [f"{encoded(key)}={encoded(value)}" for key, value in sorted(read.extensions.items())]
    return " ".join([encoded(read.token), encoded(read.authorization_id), *pairs])


@pytest.mark.behaviour("B310", "B311", "B312")
def test_six_thousand_messages_are_read_alike() -> None:
    """Kafka's server raises for a scheme other than `Bearer`; here that is an error like the others."""
    chance = random.Random(SEED)
    messages = [*SEEDS, *(damaged(chance) for _ in range(COUNT))]
    theirs = kafkas("message", messages)
    assert len(theirs) == len(messages)
    read = 0
    for message, answer in zip(messages, theirs, strict=True):
        if answer in {"error", "raised"}:
            assert ours(message) == "error", message
            continue
        read += 1
        parsed, _, written = answer.rpartition(" ")
        assert ours(message) == parsed, message
        response = InitialResponse.parse(message)
        if len(response.extensions) < 2:
            # the order of several is that of a Java HashMap
            assert encoded(response.encode()) == written, message
    assert COUNT / 10 < read < COUNT


class AnyToken(OAuthBearerValidatorCallbackHandler):
    """Every token is `alice`'s, and extensions that begin with `bad` are not allowed, as in the probe."""

    def validate(self, token: str) -> AcceptedToken:
        return AcceptedToken("alice", 2**63 - 1)

    def invalid_extensions(self, token: AcceptedToken, extensions: Mapping[str, str]) -> dict[str, str]:
        return {name: f"no {name}" for name in extensions if name.startswith("bad")}


def judged(message: bytes) -> str:
    handler = AnyToken()
    server = OAuthBearerServer(HandlerTokens(handler), HandlerExtensions(handler))
    try:
        step = server.respond(message)
    except SaslAuthenticationError as error:
        return f"refused {encoded(str(error))}"
    except SaslMechanismError:
        return "error"
    assert isinstance(step, Proven)
    return f"proven {encoded(step.authorization_id)}"


@pytest.mark.behaviour("B307", "B308")
def test_extensions_that_are_not_allowed_fail_the_login_and_are_named_alike() -> None:
    lists = {
        (): "proven",
        ("good=1",): "proven",
        ("bad=1",): "refused",
        ("good=1", "badOne=2", "fine=3"): "refused",
        ("auth=x",): "error",
        ("1bad=2",): "error",
    }
    messages = [("\x01".join(("n,,", "auth=Bearer t.o.k", *each)) + "\x01\x01").encode() for each in lists]
    theirs = kafkas("extensions", messages)
    assert [judged(message) for message in messages] == theirs
    assert [each.split()[0] for each in theirs] == list(lists.values())
