"""SIGHUP applies reloadable settings; an invalid file changes nothing and logs one error."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import StandardAuthorizerPlugin
from kustos.server.reload import Reloader
from kustos.server.settings.node_settings import load_settings, settings_from
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
    secret = "a-secret-of-32-characters-or-more"
    changed = {
        "socket_request_max_bytes": "98765",
        "kustos_sasl_scram_decoy_secret": secret,
        "other_key": "77",
    }
    write(super_users="User:root", **changed)
    for _ in range(2):
        with capture_logs() as logs:
            node.reload()
        assert [log["log_level"] for log in logs] == ["warning", "info"], "it waits until there is a restart"
        keys = ["kustos.sasl.scram.decoy.secret", "other.key", "socket.request.max.bytes"]
        assert logs[0]["keys"] == keys
        assert logs[1]["changed"] == []
        assert not any(value in str(logs) for value in changed.values())
    write(super_users="User:root")
    with capture_logs() as logs:
        node.reload()
    assert [log["log_level"] for log in logs] == ["info"], "all is as it was at the start"


async def test_what_the_authorizer_takes_needs_no_restart_also_if_the_key_is_gone(
    path: Path, write: Write, plugin: StandardAuthorizerPlugin
) -> None:
    write(super_users="User:root")
    node = reloader(path, plugin)
    write()
    with capture_logs() as logs:
        node.reload()
    assert logs == [{"event": "the settings were reloaded", "log_level": "info", "changed": ["super.users"]}]
    assert plugin.standard.super_users == frozenset()


async def test_without_an_authorizer_its_settings_wait_for_a_restart(path: Path, write: Write) -> None:
    write(authorizer_class_name="", kustos_authorization_mode="off")
    node = Reloader(load_settings(path), lambda: load_settings(path), None)
    write(authorizer_class_name="", kustos_authorization_mode="off", super_users="User:root")
    with capture_logs() as logs:
        node.reload()
    assert [log["log_level"] for log in logs] == ["warning", "info"]
    assert logs[0]["keys"] == ["super.users"]


@pytest.mark.parametrize(
    ("own_classes_at", "expected"),
    [
        ("", {"plain.sasl.jaas.config", "listener.name.a.plain.sasl.jaas.config"}),
        ("a", set()),
        ("b", {"listener.name.a.plain.sasl.jaas.config"}),
    ],
)
def test_users_of_plain_change_unless_somebody_else_judges_them(
    own_classes_at: str, expected: set[str]
) -> None:
    handler_class = f"listener.name.{own_classes_at}.plain.sasl.server.callback.handler.class"
    more = {handler_class: "tests.unit.auth.test_callbacks.Plain"} if own_classes_at else {}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    properties = LEAST | {
        "listeners": "A://127.0.0.1:9092,B://127.0.0.1:9292",
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "plain.sasl.jaas.config": f'{module} user_alice="of-all";',
        "listener.name.a.plain.sasl.jaas.config": f'{module} user_alice="of-a";',
        "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    }
    assert settings_from(properties | more, {}).reloadable_keys == expected


async def test_without_an_authorizer_nothing_is_reconfigured(path: Path, write: Write) -> None:
    write(authorizer_class_name="", kustos_authorization_mode="off")
    settings = load_settings(path)
    with capture_logs() as logs:
        Reloader(settings, lambda: load_settings(path), None).reload()
    assert [log["log_level"] for log in logs] == ["info"]
