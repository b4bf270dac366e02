"""SIGHUP in a serving node changes limits, users of PLAIN and the audit budget."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.server.main import reload_of
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import MODULE, PASSWORD, AdminNode, NoAnswerError, Talker, admin_node
from testkit.gateway.gateways import Caller

Reload = Callable[..., list[str]]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[AdminNode]:
    made: AbstractAsyncContextManager[AdminNode] = admin_node(tmp_path)
    async with made as serving:
        yield serving


@pytest.fixture
def reload(node: AdminNode, tmp_path: Path) -> Reload:
    """Return what reloads the file of the node with some keys changed, and returns the keys now in force."""
    path = tmp_path / "kustos.properties"
    hang_up = reload_of(node.node, node.node.settings, path)

    def reloaded(**keys: str) -> list[str]:
        changed = {key.replace("_", "."): value for key, value in keys.items()}
        path.write_text("".join(f"{key}={value}\n" for key, value in (node.properties | changed).items()))
        with capture_logs() as logs:
            hang_up()
        assert [log["log_level"] for log in logs] == ["info"]
        found: list[str] = logs[0]["changed"]
        return found

    return reloaded


async def login(node: AdminNode, user: str, password: str) -> Message:
    """Return the answer to a login; raise `NoAnswerError` if the connection is closed."""
    talker = Talker(await Caller.at(node.client_port))
    node.talkers.append(talker)
    await talker.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    token = f"\0{user}\0{password}".encode()
    return await talker.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=token)


async def serves(talker: Talker) -> bool:
    return not (await talker.ask(ApiKey.API_VERSIONS, 0)).error_code


@pytest.mark.parametrize("key", ["max_connections", "max_connections_per_ip"])
async def test_a_lower_limit_turns_newcomers_away_and_leaves_the_others(
    node: AdminNode, reload: Reload, key: str
) -> None:
    ops = await node.talk("ops")
    assert reload(**{key: "1"}) == [key.replace("_", ".")]
    with pytest.raises(NoAnswerError):
        await login(node, "alice", PASSWORD)
    assert await serves(ops)
    assert reload(**{key: "3"}) == [key.replace("_", ".")]
    assert (await login(node, "alice", PASSWORD)).error_code == 0
    assert reload(**{key: "3"}) == [], "nothing changed since"


async def test_failed_logins_have_the_limit_of_the_last_reload(node: AdminNode, reload: Reload) -> None:
    for _ in range(3):
        assert (await login(node, "alice", "wrong")).error_code
    key = "kustos.failed.logins.per.ip.burst"
    assert reload(**{key: "3"}) == [key]
    with pytest.raises(NoAnswerError):
        await login(node, "alice", PASSWORD)
    unlimited = "kustos.failed.logins.unlimited.addresses"
    assert reload(**{key: "3", unlimited: "127.0.0.0/8"}) == [unlimited]
    assert (await login(node, "alice", PASSWORD)).error_code == 0


async def test_users_of_plain_come_and_go_and_who_is_logged_in_stays(node: AdminNode, reload: Reload) -> None:
    ops = await node.talk("ops")
    key = "plain.sasl.jaas.config"
    module = f'{MODULE} required user_alice="newer" user_carol="of-carol";'
    assert reload(**{key: module}) == [key]
    assert (await login(node, "alice", PASSWORD)).error_code
    assert (await login(node, "ops", PASSWORD)).error_code
    assert (await login(node, "alice", "newer")).error_code == 0
    assert (await login(node, "carol", "of-carol")).error_code == 0
    assert await serves(ops)


async def test_what_is_in_force_is_described_and_recorded(node: AdminNode, reload: Reload) -> None:
    ops = await node.talk("ops")

    async def described(key: str) -> list[str | None]:
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": [key]}
        answer = await ops.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=False)
        return [config.value for config in answer.results[0].configs]

    key = "kustos.audit.allowed.max.bytes.per.hour"
    own = "listener.name.clients.plain.sasl.jaas.config"
    assert await described(key) == ["1073741824"]
    module = f'{MODULE} required user_alice="newer";'
    assert reload(**{key: "100", own: module}) == [key, own]
    assert await described(key) == ["100"]
    assert await described(own) == [None], "a secret is named and not shown"
    assert node.node.audit.budgets.use.bytes_per_hour == 100
    assert reload() == [key, own]
    assert await described(key) == ["1073741824"]
    assert await described(own) == [], "the file has it no more"
    assert node.node.audit.budgets.use.bytes_per_hour == 1_073_741_824


async def test_a_file_that_is_wrong_changes_no_limit(node: AdminNode, tmp_path: Path) -> None:
    path = tmp_path / "wrong.properties"
    changed = node.properties | {"max.connections": "1", "connections.max.idle.ms": "none"}
    path.write_text("".join(f"{key}={value}\n" for key, value in changed.items()))
    await node.talk("ops")
    with capture_logs() as logs:
        reload_of(node.node, node.node.settings, path)()
    assert [log["log_level"] for log in logs] == ["error"]
    assert (await login(node, "alice", PASSWORD)).error_code == 0
