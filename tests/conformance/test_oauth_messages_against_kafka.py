"""OAUTHBEARER's initial response as we read and write it, against Kafka's own class."""

import random

import pytest

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
