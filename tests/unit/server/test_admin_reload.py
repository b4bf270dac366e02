"""SIGHUP with an admin listener: the file is read again, and the log still overrides it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from kustos.server.reload import Reloader
from kustos.server.settings.node import KustosSettings
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import AdminNode, Talker, admin_node

SUPER_USERS = "super.users"


def with_super_users(settings: KustosSettings, text: str) -> KustosSettings:
    """Return what the file says with other super users in it."""
    entries = (
        replace(each, value=text) if each.name == SUPER_USERS else each for each in settings.config_entries
    )
    return replace(
        settings,
        super_users=frozenset({text}),
        authorizer_configs={SUPER_USERS: text},
        config_entries=tuple(entries),
    )


def super_users(node: AdminNode) -> set[str]:
    authorizer: Any = node.node.authorization.authorizer
    return set(authorizer.standard.super_users)


async def alter(talker: Talker, operation: int, value: str | None) -> None:
    change = {"name": SUPER_USERS, "config_operation": operation, "value": value}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
    answer = await talker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert [response.error_code for response in answer.responses] == [0]


async def shown(talker: Talker) -> list[tuple[str, int]]:
    resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": [SUPER_USERS]}
    answer = await talker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=True)
    [config] = answer.results[0].configs
    return [(synonym.value, synonym.source) for synonym in config.synonyms]


async def test_what_the_log_says_stays_in_force_when_the_file_is_read_again(tmp_path: Path) -> None:
    async with admin_node(tmp_path) as node:
        settings = node.node.settings
        said = ["User:newer"]
        reloader = Reloader(
            settings,
            lambda: with_super_users(settings, said[0]),
            node.node.authorization.authorizer,
            node.node.admin,
        )
        ops = await node.talk("ops")
        await alter(ops, 0, "User:log")
        assert super_users(node) == {"User:log"}
        reloader.reload()
        assert super_users(node) == {"User:log"}
        assert await shown(ops) == [("User:log", 2), ("User:newer", 4), ("", 5)]
        await alter(ops, 1, None)
        assert super_users(node) == {"User:newer"}
        said[0] = "User:newest"
        reloader.reload()
        assert super_users(node) == {"User:newest"}
        assert await shown(ops) == [("User:newest", 4), ("", 5)]
        await alter(ops, 0, "User:log")
        assert super_users(node) == {"User:log"}


async def test_settings_that_are_read_again_are_an_event_with_their_keys(tmp_path: Path) -> None:
    more: dict[str, Any] = {"kustos_audit_sinks": "json", "kustos_audit_json_dir": str(tmp_path / "audit")}
    async with admin_node(tmp_path, **more) as node:
        reloader = Reloader(
            node.node.settings,
            lambda: with_super_users(node.node.settings, "User:newer"),
            node.node.authorization.authorizer,
            node.node.admin,
            node.node.settings_reloaded,
        )
        assert reloader.reload()
        assert reloader.reload(), "nothing changes by the second"
    (file,) = (tmp_path / "audit").glob("audit-*.jsonl")
    (event,) = map(json.loads, file.read_text().splitlines())
    expected = ("event_type", "result", "change", "subject", "detail", "principal_name", "host")
    assert [event[name] for name in expected] == [
        "SETTING_CHANGE",
        "SUCCESS",
        "RELOAD",
        "BROKER:1",
        "super.users",
        None,
        None,
    ]
    assert "newer" not in file.read_text()
