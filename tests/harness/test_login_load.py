"""The clients of `make bench-auth` log in as clients do, and say so where they are refused."""

import itertools

import pytest

from benchmarks.authenticating.load import Target, log_in_often
from benchmarks.authenticating.words import (
    USER,
    RefusedError,
    Words,
    authenticate,
    of_tokens,
    plain,
    scram,
    token_of,
)
from kustos.auth import Authenticated, Fail, SaslServerSettings, ScramHash, SendFrame
from testkit.gateway.gateways import running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK
from testkit.sasl import OTHER_PASSWORD, PASSWORD, machine

LENGTH_BYTES = 4
LOGINS, CLIENTS = 20, 4


def spoken(words: Words) -> Authenticated | Fail:
    """Say the words to a server without a network; return how that ends."""
    server, answer = machine(), b""
    for frame in (*words.opening, next(words.tokens), words.prove):
        if frame is None:
            break
        said = frame if isinstance(frame, bytes) else frame(token_of(answer))
        effects = server.receive(said[LENGTH_BYTES:])
        if isinstance(effects[-1], Authenticated | Fail):
            return effects[-1]
        (answer,) = (each.data[LENGTH_BYTES:] for each in effects if isinstance(each, SendFrame))
    raise AssertionError("the login has no end")


@pytest.mark.parametrize(
    "words", [plain(), *(scram(each, USER, PASSWORD) for each in ScramHash)], ids=["plain", "256", "512"]
)
def test_the_words_of_each_mechanism_prove_who_it_is(words: Words) -> None:
    ended = spoken(words)
    assert isinstance(ended, Authenticated)
    assert ended.principal.name == USER


def test_a_refusal_is_raised_with_the_words_of_the_server() -> None:
    ended = spoken(scram(ScramHash.SHA_256, USER, OTHER_PASSWORD))
    assert isinstance(ended, Fail)
    with pytest.raises(RefusedError, match="Authentication failed during authentication"):
        token_of(ended.response[LENGTH_BYTES:])


async def test_a_crowd_makes_as_many_logins_as_it_should_and_fails_as_soon_as_one_is_refused() -> None:
    broker = ScriptedBroker(1)
    await broker.start()
    async with running_gateway([broker], sasl=SaslServerSettings(failed_authentication_delay_ms=1)) as served:

        def target(words: Words) -> Target:
            return Target(host=LOOPBACK, port=served.port, words=words)

        took_s = await log_in_often(target(plain()), LOGINS, CLIENTS)
        assert len(took_s) == LOGINS == served.counted["logins"]
        later_s = await log_in_often(target(plain()), LOGINS, CLIENTS, leaves_out_first=True)
        assert len(later_s) == LOGINS - CLIENTS
        wrong = of_tokens("PLAIN", itertools.repeat(authenticate(f"\0{USER}\0wrong".encode())))
        with pytest.raises(ExceptionGroup) as failure:
            await log_in_often(target(wrong), LOGINS, CLIENTS)
        assert failure.group_contains(RefusedError, match="Invalid username or password")
        assert broker.connections == 1 + 1, "no login costs the broker a connection"
