"""DescribeConfigs of a gateway shows the authorizer settings of the node, not of a broker."""

from pathlib import Path
from typing import Any

import pytest

from kustos.protocol.handlers.configs import AUTHORIZER_SETTINGS, DESCRIBED_RESOURCES_MAX
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import Talker, admin_node

BROKER, DENIED, INVALID = 4, 31, 42
KEYS = sorted(AUTHORIZER_SETTINGS)
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


async def described(talker: Talker, *names: str, keys: list[str] | None = KEYS) -> list[Any]:
    resources = [
        {"resource_type": BROKER, "resource_name": name, "configuration_keys": keys} for name in names
    ]
    return list((await talker.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=resources)).results)


def values(result: Any) -> dict[str, str | None]:
    return {config.name: config.value for config in result.configs}


async def alter(talker: Talker, broker: str, name: str, value: str) -> None:
    change = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": BROKER, "resource_name": broker, "configs": [change]}
    answer = await talker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert [response.error_code for response in answer.responses] == [0]


@pytest.mark.parametrize("name", ["0", "1", "77"])
async def test_a_node_tells_of_its_authorizer_whichever_broker_is_asked(name: str, tmp_path: Path) -> None:
    async with admin_node(tmp_path) as node:
        [result] = await described(await node.talk("viewer", admin=False), name)
        assert (result.error_code, result.resource_name) == (0, name)
        assert values(result) == {
            "authorizer.class.name": STANDARD,
            "super.users": "User:admin",
            "allow.everyone.if.no.acl.found": "false",
        }


async def test_what_the_log_says_is_told_over_what_the_file_says(tmp_path: Path) -> None:
    async with admin_node(tmp_path) as node:
        ops, viewer = await node.talk("ops"), await node.talk("viewer", admin=False)
        await alter(ops, "", "allow.everyone.if.no.acl.found", "true")
        await alter(ops, "1", "super.users", "User:admin;User:other")
        own, everywhere = await described(viewer, "1", "")
        assert values(own)["super.users"] == "User:admin;User:other"
        assert values(own)["allow.everyone.if.no.acl.found"] == "true"
        assert values(everywhere) == {"allow.everyone.if.no.acl.found": "true"}


async def test_only_who_may_describe_configs_is_told(tmp_path: Path) -> None:
    async with admin_node(tmp_path) as node:
        [result] = await described(await node.talk("alice", admin=False), "1")
        assert (result.error_code, list(result.configs)) == (DENIED, [])


async def test_more_resources_than_are_answered_are_refused(tmp_path: Path) -> None:
    async with admin_node(tmp_path) as node:
        names = map(str, range(DESCRIBED_RESOURCES_MAX + 1))
        found = await described(await node.talk("viewer", admin=False), *names)
        assert {result.error_code for result in found} == {INVALID}
