"""Each listener has only the users of its own JAAS config."""

from collections.abc import Mapping

import pytest

from kustos.auth import Authenticated, Fail, PlainServer, SaslServerMachine, ScramDecoys
from kustos.metadata.image import EMPTY_IMAGE
from kustos.runtime import SystemClock, SystemEntropy
from kustos.server.sasl import mechanism_factories
from kustos.server.settings.node_settings import settings_from
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import request
from tests.unit.server.test_settings import LEAST

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS = {
    "listeners": "A://127.0.0.1:9092,B://127.0.0.1:9392,C://127.0.0.1:9692",
    "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT,C:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
}
USERS = {
    "listener.name.a.plain.sasl.jaas.config": f'{MODULE} required user_alice="of-a";',
    "listener.name.b.plain.sasl.jaas.config": f'{MODULE} required user_alice="of-b" user_bob="of-b";',
    "plain.sasl.jaas.config": f'{MODULE} required user_alice="of-all";',
}


def can_log_in(properties: Mapping[str, str], listener: int, user: str, password: str) -> bool:
    sasl = settings_from(LEAST | LISTENERS | dict(properties), {}).listeners[listener].sasl
    assert sasl is not None
    factories = mechanism_factories(sasl, lambda: EMPTY_IMAGE, ScramDecoys(bytes(32)), SystemEntropy())
    assert isinstance(factories["PLAIN"](), PlainServer)
    machine = SaslServerMachine(sasl.server, factories, lambda _: b"", SystemClock())
    machine.receive(request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PLAIN"))
    token = f"\0{user}\0{password}".encode()
    effects = machine.receive(request(ApiKey.SASL_AUTHENTICATE, 1, 2, auth_bytes=token))
    assert isinstance(effects[-1], Authenticated | Fail)
    return isinstance(effects[-1], Authenticated)


@pytest.mark.behaviour("B238")
def test_users_of_one_listener_are_nobody_at_another() -> None:
    admitted = {
        (listener, user, password)
        for listener in range(3)
        for user in ("alice", "bob")
        for password in ("of-a", "of-b", "of-all")
        if can_log_in(USERS, listener, user, password)
    }
    assert admitted == {
        (0, "alice", "of-a"),
        (1, "alice", "of-b"),
        (1, "bob", "of-b"),
        (2, "alice", "of-all"),
    }


@pytest.mark.behaviour("B238")
def test_other_text_gives_other_users() -> None:
    changed = USERS | {"listener.name.a.plain.sasl.jaas.config": f'{MODULE} required user_carol="new";'}
    assert can_log_in(changed, 0, "carol", "new")
    assert not can_log_in(changed, 0, "alice", "of-a")
