"""SIGHUP beside the admin listener: the file is read again, and the log still has the last word."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kustos.server.config_entries import config_entries
from kustos.server.given import GivenSettings
from kustos.server.reloading import Reloader
from kustos.server.settings import KustosSettings
from kustos.wire.api_keys import ApiKey
from tests.unit.server.admin_worlds import House, Talker, house
from tests.unit.server.test_settings import LEAST

SUPER_USERS = "super.users"


def with_super_users(settings: KustosSettings, text: str) -> KustosSettings:
    """Return what the file says with other super users in it."""
    properties = LEAST | {SUPER_USERS: text}
    entries = config_entries(properties, GivenSettings.read(properties, {}))
    return replace(
        settings,
        super_users=frozenset({text}),
        authorizer_configs={SUPER_USERS: text},
        config_entries=entries,
    )


def super_users(node: House) -> set[str]:
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
    async with house(tmp_path) as node:
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
