"""Sessions that reauthenticate over real sockets (KIP-368), within the limits of failed logins."""

from uuid import UUID

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kustos.auth import (
    INVALID_TOKEN,
    AcceptedToken,
    CallbackServer,
    OAuthBearerServer,
    PlainServer,
    RefusedToken,
    SaslServerSettings,
    Surroundings,
)
from kustos.auth.settings import MIN_REAUTHENTICATION_INTERVAL_MS
from kustos.gateway.listener import FailedLoginLimits
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import USERS, Caller, RunningGateway, handshake, running_gateway, token
from testkit.gateway.sessions import heartbeat, request, versions
from tests.unit.gateway.test_client import broker

AGAIN = SaslServerSettings(connections_max_reauth_ms={"PLAIN": 60_000}, failed_authentication_delay_ms=20)
ONE_GUESS = FailedLoginLimits(burst=1, per_minute=1)
CALLBACKS = CallbackServer.factory(lambda: PlainServer(USERS), Surroundings("CLIENTS", 60_000))
BEARER = OAuthBearerServer.factory(
    lambda text: (
        AcceptedToken("alice", 1_000_000_000) if text == "of-alice" else RefusedToken(INVALID_TOKEN, "forged")
    )
)


OF_GROUPS = OAuthBearerServer.factory(
    lambda text: AcceptedToken("alice", 1_000_000_000, groups=tuple(text.split("-")[1:]))
)


def bearer(correlation_id: int, text: str) -> bytes:
    auth_bytes = f"n,,\x01auth=Bearer {text}\x01\x01".encode()
    return request(ApiKey.SASL_AUTHENTICATE, 1, correlation_id, auth_bytes=auth_bytes)


async def test_an_invalid_client_at_a_shared_address_ends_no_bearer_session() -> None:
    async with running_gateway([await broker()], sasl=AGAIN, failed_logins=ONE_GUESS, plain=BEARER) as served:
        good, mistaken, bad = [await Caller.at(served.port) for _ in range(3)]
        for caller in (good, mistaken):
            caller.send(handshake(1), bearer(2, "of-alice"))
            assert await caller.correlation_ids(2) == [1, 2]
        bad.send(handshake(1), bearer(2, "forged"))
        assert await bad.correlation_ids(2) == [1, 2]
        newcomer = await Caller.at(served.port)
        assert await newcomer.is_closed(), "it may be another guess of a password"
        good.send(handshake(3), bearer(4, "of-alice"), heartbeat(5))
        assert await good.correlation_ids(3) == [3, 4, 5]
        mistaken.send(handshake(3), bearer(4, "forged"))
        assert await mistaken.correlation_ids(2) == [3, 4], "its refusal is not lost"
        mistaken.send(request(ApiKey.SASL_AUTHENTICATE, 1, 6, auth_bytes=b"\x01"))
        assert await mistaken.correlation_ids(1) == [6]
        assert await mistaken.is_closed()
        assert (served.counted["logins again"], served.counted["failed logins again"]) == (1, 1)
        good.close()


async def test_a_session_has_the_groups_of_its_last_login() -> None:
    denied = AclBinding(
        ResourcePattern(ResourceType.GROUP, "group-one"),
        AccessControlEntry("Group:guests", "*", AclOperation.ALL, AclPermissionType.DENY),
    )
    async with running_gateway([await broker()], sasl=AGAIN, plain=OF_GROUPS) as served:
        served.authorizer.add_acl(UUID(int=10_000), denied)
        caller = await Caller.at(served.port)
        asked = served.brokers[0].asked
        for login, text, passes in ((0, "in-ops", True), (100, "in-ops-guests", False), (200, "in", True)):
            served.clock.now_ms += MIN_REAUTHENTICATION_INTERVAL_MS
            caller.send(handshake(login), bearer(login + 1, text))
            assert await caller.correlation_ids(2) == [login, login + 1]
            before = asked.count(ApiKey.HEARTBEAT)
            for number in range(3):
                # the second one repeats the first, whose decisions are remembered
                caller.send(heartbeat(login + 2 + number))
                assert await caller.correlation_ids(1) == [login + 2 + number]
            assert asked.count(ApiKey.HEARTBEAT) - before == (3 if passes else 0)
        assert [login.event(0).detail for login in served.logins] == [
            "Group:ops", "Group:ops, Group:guests", None,
        ]  # fmt: skip
        caller.close()


async def sessions(served: RunningGateway, count: int) -> list[Caller]:
    """Return sessions of alice, after which her address has no tries left."""
    made = [await Caller.at(served.port) for _ in range(count)]
    for caller in made:
        assert await caller.log_in() is not None
    guessing = await Caller.at(served.port)
    await guessing.log_in("wrong")
    assert await guessing.is_closed()
    return made


@pytest.mark.parametrize("password", ["b0b-s3cret", "wrong"])
async def test_a_throttled_address_learns_nothing_about_other_passwords_by_reauthentication(
    password: str,
) -> None:
    async with running_gateway([await broker()], sasl=AGAIN, failed_logins=ONE_GUESS) as served:
        (caller,) = await sessions(served, 1)
        caller.send(handshake(1))
        assert await caller.correlation_ids(1) == [1]
        caller.send(token(2, password, "bob"), heartbeat(3))
        assert await caller.is_closed(), "without an answer"
        assert served.counted["failed logins again"] == 1
        assert served.counted["handshake: throttled"] == 0, "only new connections count so"


async def test_a_session_at_a_throttled_address_may_renew_its_own_identity() -> None:
    async with running_gateway([await broker()], sasl=AGAIN, failed_logins=ONE_GUESS) as served:
        caller, mistaken = await sessions(served, 2)
        caller.send(handshake(1), token(2), heartbeat(3))
        assert await caller.correlation_ids(3) == [1, 2, 3]
        mistaken.send(handshake(1), token(2, "wrong"), heartbeat(3))
        assert await mistaken.correlation_ids(2) == [1, 2], "its refusal is not lost"
        assert await mistaken.is_closed()
        assert served.counted["handshake: throttled"] == 0
        assert ApiKey.HEARTBEAT in served.brokers[0].asked
        caller.close()


async def test_a_guessed_password_in_a_reauthentication_counts_whether_right_or_wrong() -> None:
    limits = FailedLoginLimits(burst=2, per_minute=1)
    async with running_gateway([await broker()], sasl=AGAIN, failed_logins=limits) as served:
        callers = [await Caller.at(served.port) for _ in range(3)]
        for caller in callers:
            assert await caller.log_in() is not None
        for caller, password, answers in zip(
            callers, ("b0b-s3cret", "wrong", "b0b-s3cret"), (2, 2, 1), strict=True
        ):
            caller.send(handshake(1), token(2, password, "bob"))
            assert await caller.correlation_ids(answers) == [1, 2][:answers]
            assert await caller.is_closed()


async def test_a_request_after_a_reauthentication_waits_for_its_verification() -> None:
    async with running_gateway([await broker()], sasl=AGAIN, plain=CALLBACKS) as served:
        caller = await Caller.at(served.port)
        assert await caller.log_in() is not None
        caller.send(handshake(1), token(2), heartbeat(3), versions(4))
        assert await caller.correlation_ids(4) == [1, 2, 3, 4]
        assert (served.counted["logins"], served.counted["logins again"]) == (1, 1)
        caller.close()


async def test_a_request_after_a_failed_reauthentication_is_never_served() -> None:
    async with running_gateway([await broker()], sasl=AGAIN, plain=CALLBACKS) as served:
        caller = await Caller.at(served.port)
        assert await caller.log_in() is not None
        caller.send(handshake(1), token(2, "wrong"), heartbeat(3))
        assert await caller.correlation_ids(2) == [1, 2]
        assert await caller.is_closed()
        assert served.counted["failed logins again"] == 1
        assert ApiKey.HEARTBEAT not in served.brokers[0].asked
