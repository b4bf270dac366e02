"""SIGHUP: what may change changes, what is wrong leaves everything as it was, with one error."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import StandardAuthorizerPlugin
from kustos.server.reload import Reloader
from kustos.server.settings.node_settings import load_settings
from testkit.protocol.random_requests import allow
from tests.unit.server.test_settings import LEAST

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
Write = Callable[..., None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kustos.properties"


@pytest.fixture
def write(path: Path) -> Write:
    def written(**keys: str) -> None:
        given = LEAST | {key.replace("_", "."): value for key, value in keys.items()}
        path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))

    return written


@pytest.fixture
async def plugin() -> StandardAuthorizerPlugin:
    made = StandardAuthorizerPlugin(asyncio.get_running_loop().create_future)
    made.standard.load_snapshot([(UUID(int=1), allow(TOPIC, "orders", READ))])
    made.complete_initial_load()
    return made


def reloader(path: Path, plugin: StandardAuthorizerPlugin) -> Reloader:
    settings = load_settings(path)
    plugin.configure(settings.authorizer_configs)
    return Reloader(settings, lambda: load_settings(path), plugin)


@pytest.mark.behaviour("B003")
async def test_super_users_and_the_default_change_and_no_acl_is_lost(
    path: Path, write: Write, plugin: StandardAuthorizerPlugin
) -> None:
    write(super_users="User:root")
    node = reloader(path, plugin)
    root = plugin.standard.session(KafkaPrincipal("User", "root"), "10.0.0.1")
    alice = plugin.standard.session(KafkaPrincipal("User", "alice"), "10.0.0.1")
    assert root.decide(READ, TOPIC, "pay").allowed
    assert not alice.decide(READ, TOPIC, "pay").allowed
    write(super_users="User:alice")
    with capture_logs() as logs:
        node.reload()
    assert logs == [{"event": "the settings were reloaded", "log_level": "info", "changed": ["super.users"]}]
    assert alice.decide(READ, TOPIC, "pay").allowed
    assert not root.decide(READ, TOPIC, "pay").allowed
    write(super_users="User:root")
    node.reload()
    assert alice.decide(READ, TOPIC, "orders").allowed
    assert not alice.decide(READ, TOPIC, "pay").allowed
    write(allow_everyone_if_no_acl_found="true")
    node.reload()
    assert alice.decide(READ, TOPIC, "pay").allowed
    assert plugin.standard.super_users == frozenset()
    assert plugin.acl_count == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"super.users": "nobody"},
        {"super.users": "User:*"},
        {"allow.everyone.if.no.acl.found": "perhaps"},
        {"max.connections": "-1"},
        {"kustos.no.such": "1"},
    ],
)
async def test_settings_that_are_wrong_change_nothing(
    path: Path, write: Write, plugin: StandardAuthorizerPlugin, wrong: dict[str, str]
) -> None:
    write(super_users="User:root")
    node = reloader(path, plugin)
    version = plugin.standard.version
    write(**({"super_users": "User:other"} | {key.replace(".", "_"): text for key, text in wrong.items()}))
    with capture_logs() as logs:
        node.reload()
    assert [log["log_level"] for log in logs] == ["error"]
    assert plugin.standard.super_users == {"User:root"}
    assert plugin.standard.version == version


async def test_a_file_that_is_gone_changes_nothing(
    path: Path, write: Write, plugin: StandardAuthorizerPlugin
) -> None:
    write(super_users="User:root")
    node = reloader(path, plugin)
    path.rename(path.with_suffix(".gone"))  # noqa: ASYNC240 - a test, and nobody waits
    with capture_logs() as logs:
        node.reload()
    assert [log["log_level"] for log in logs] == ["error"]
    assert plugin.standard.super_users == {"User:root"}


async def test_what_takes_a_restart_is_told(
    path: Path, write: Write, plugin: StandardAuthorizerPlugin
) -> None:
    write(super_users="User:root")
    node = reloader(path, plugin)
    write(super_users="User:root", max_connections="7")
    with capture_logs() as logs:
        node.reload()
    assert [log["log_level"] for log in logs] == ["warning", "info"]
    assert logs[0]["of"] == ["max_connections"]
    assert logs[1]["changed"] == []


async def test_without_an_authorizer_nothing_is_reconfigured(path: Path, write: Write) -> None:
    write(authorizer_class_name="", kustos_authorization_mode="off")
    settings = load_settings(path)
    with capture_logs() as logs:
        Reloader(settings, lambda: load_settings(path), None).reload()
    assert [log["log_level"] for log in logs] == ["info"]
