"""The admin listener: answers about the node, required rights, and persistent changes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kustos.protocol.admin_table import ADMIN_OFFERED
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import AdminNode, NoAnswerError, Talker, admin_node
from testkit.ports import LOOPBACK

BROKER, LOGGER = 4, 8
SET, DELETE = 0, 1
DENIED = 31
CONFIGS, ALTER_CONFIGS = ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS
SUPER_USERS = "super.users"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[AdminNode]:
    async with admin_node(tmp_path) as made:
        yield made


async def alter(talker: Talker, name: str, *changes: tuple[str, int, str | None], kind: int = BROKER) -> Any:
    """Return code and text of one resource's change."""
    configs = [{"name": key, "config_operation": op, "value": value} for key, op, value in changes]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    answer = await talker.ask(ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    [response] = answer.responses
    return response.error_code, response.error_message


async def described(talker: Talker, name: str, *keys: str, kind: int = BROKER) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    answer = await talker.ask(
        CONFIGS, 4, resources=[resource], include_synonyms=True, include_documentation=True
    )
    [result] = answer.results
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


async def test_it_offers_what_its_table_has_and_the_features_of_the_log(node: AdminNode) -> None:
    talker = await node.talk("alice")
    answer = await talker.ask(ApiKey.API_VERSIONS, 4, client_software_name="t", client_software_version="1")
    offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert offered == ADMIN_OFFERED
    assert ApiKey.METADATA not in offered
    assert ApiKey.ENVELOPE in offered
    [supported], [finalized] = answer.supported_features, answer.finalized_features
    assert (supported.name, supported.min_version, supported.max_version) == ("metadata.version", 7, 33)
    assert (finalized.name, finalized.max_version_level) == ("metadata.version", 30)
    assert answer.finalized_features_epoch == node.node.store.last_offset


@pytest.mark.parametrize("api", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.CREATE_TOPICS])
async def test_what_has_no_row_closes_the_connection(node: AdminNode, api: ApiKey) -> None:
    talker = await node.talk("admin")
    with pytest.raises(NoAnswerError):
        await talker.ask(api, 7)


async def test_listeners_for_clients_have_only_what_goes_upstream(node: AdminNode) -> None:
    talker = await node.talk("admin", admin=False)
    address = bytes((127, 0, 0, 1))
    with pytest.raises(NoAnswerError):
        await talker.ask(
            ApiKey.ENVELOPE, 0, request_data=b"", request_principal=None, client_host_address=address
        )


async def test_the_quorum_is_the_node_itself(node: AdminNode) -> None:
    talker = await node.talk("viewer")
    topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    answer = await talker.ask(ApiKey.DESCRIBE_QUORUM, 2, topics=topics)
    [partition] = answer.topics[0].partitions
    end = node.node.store.last_offset + 1
    assert (partition.leader_id, partition.high_watermark, partition.observers) == (1, end, [])
    [voter] = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, end)
    directory_id = node.node.store.properties.directory_id
    assert directory_id is not None
    assert voter.replica_directory_id == directory_id.bytes
    [itself] = answer.nodes
    [listener] = itself.listeners
    assert (itself.node_id, listener.name, listener.host) == (1, "ADMIN", LOOPBACK)
    assert listener.port == node.admin_port


async def test_the_cluster_is_the_node_itself(node: AdminNode) -> None:
    talker = await node.talk("ops")
    fields = {"endpoint_type": 2, "include_cluster_authorized_operations": True}
    answer = await talker.ask(ApiKey.DESCRIBE_CLUSTER, 2, **fields)
    assert (answer.error_code, answer.controller_id, answer.endpoint_type) == (0, 1, 2)
    assert answer.cluster_id == node.node.store.properties.cluster_id
    [controller] = answer.brokers
    assert (controller.broker_id, controller.host, controller.port) == (1, LOOPBACK, node.admin_port)
    bits = {bit for bit in range(32) if answer.cluster_authorized_operations & (1 << bit)}
    assert bits == {7, 8, 10, 11}, "ALTER, DESCRIBE, and both of configurations"


@pytest.mark.parametrize(
    ("api", "fields"),
    [
        (ApiKey.DESCRIBE_QUORUM, {"topics": []}),
        (ApiKey.UPDATE_FEATURES, {"feature_updates": []}),
        (ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 2}),
        (ApiKey.ENVELOPE, {"request_data": b"", "request_principal": b"", "client_host_address": b""}),
    ],
)
async def test_who_has_no_acl_is_told_nothing(node: AdminNode, api: ApiKey, fields: dict[str, Any]) -> None:
    talker = await node.talk("alice")
    highest = ADMIN_OFFERED[api][1]
    assert (await talker.ask(api, highest, **fields)).error_code == DENIED


async def test_who_has_no_acl_neither_sees_nor_changes_settings(node: AdminNode) -> None:
    talker = await node.talk("alice")
    for kind in (BROKER, LOGGER):
        assert await alter(talker, "1", (SUPER_USERS, SET, "User:alice"), kind=kind) == (
            DENIED,
            "Cluster authorization failed.",
        )
        resource = {"resource_type": kind, "resource_name": "1", "configuration_keys": None}
        answer = await talker.ask(CONFIGS, 4, resources=[resource])
        assert [(each.error_code, each.configs) for each in answer.results] == [(DENIED, [])]
    assert node.node.store.image.configs == {}


async def test_features_are_raised_for_good(tmp_path: Path) -> None:
    update = {"feature": "metadata.version", "max_version_level": 33, "upgrade_type": 1}
    async with admin_node(tmp_path) as node:
        talker = await node.talk("ops")
        answer = await talker.ask(ApiKey.UPDATE_FEATURES, 2, feature_updates=[update], validate_only=True)
        assert answer.error_code == 0
        assert node.node.store.image.metadata_version == 30
        answer = await talker.ask(ApiKey.UPDATE_FEATURES, 2, feature_updates=[update], validate_only=False)
        assert (answer.error_code, answer.error_message) == (0, None)
        update["max_version_level"] = 30
        answer = await talker.ask(ApiKey.UPDATE_FEATURES, 2, feature_updates=[update])
        assert answer.error_code == 95, "INVALID_UPDATE_VERSION"
    async with admin_node(tmp_path) as node:
        assert node.node.store.image.metadata_version == 33


@pytest.mark.parametrize("setting", [SUPER_USERS, "allow.everyone.if.no.acl.found"])
async def test_who_may_only_alter_configs_cannot_make_himself_a_super_user(
    node: AdminNode, setting: str
) -> None:
    value = "User:settings" if setting == SUPER_USERS else "true"
    talker = await node.talk("settings")
    code, _ = await alter(talker, "1", (setting, SET, value))
    assert code == DENIED
    code, _ = await alter(talker, "", (setting, SET, value))
    assert code == DENIED
    code, _ = await alter(talker, "1", (setting, DELETE, None))
    assert code == DENIED
    code, _ = await alter(await node.talk("ops"), "1", (setting, SET, value))
    assert code == 0


async def test_super_users_change_at_once_and_for_good(tmp_path: Path) -> None:
    async with admin_node(tmp_path) as node:
        ops, alice = await node.talk("ops"), await node.talk("alice")
        everything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
        acls = everything | {"permission_type": 1, "resource_name_filter": None}
        nobody = acls | {"principal_filter": None, "host_filter": None}
        assert (await alice.ask(ApiKey.DESCRIBE_ACLS, 3, **nobody)).error_code == DENIED
        assert await alter(ops, "", (SUPER_USERS, SET, "User:admin;User:alice")) == (0, None)
        assert (await alice.ask(ApiKey.DESCRIBE_ACLS, 3, **nobody)).error_code == 0
        assert await alter(ops, "1", (SUPER_USERS, SET, "User:admin")) == (0, None)
        assert (await alice.ask(ApiKey.DESCRIBE_ACLS, 3, **nobody)).error_code == DENIED
        assert await alter(ops, "1", (SUPER_USERS, DELETE, None)) == (0, None)
        assert (await alice.ask(ApiKey.DESCRIBE_ACLS, 3, **nobody)).error_code == 0
    async with admin_node(tmp_path) as node:
        alice = await node.talk("alice")
        assert (await alice.ask(ApiKey.DESCRIBE_ACLS, 3, **nobody)).error_code == 0
        ops = await node.talk("ops")
        assert await alter(ops, "", (SUPER_USERS, DELETE, None)) == (0, None)
        assert (await alice.ask(ApiKey.DESCRIBE_ACLS, 3, **nobody)).error_code == DENIED


async def test_a_setting_is_shown_with_all_its_values(node: AdminNode) -> None:
    ops = await node.talk("ops")
    await alter(ops, "", (SUPER_USERS, SET, "User:all"))
    await alter(ops, "1", (SUPER_USERS, SET, "User:one"))
    own = (await described(ops, "1", SUPER_USERS))[SUPER_USERS]
    assert (own.value, own.config_source, own.read_only, own.is_sensitive) == ("User:one", 2, False, False)
    assert [(each.value, each.source) for each in own.synonyms] == [
        ("User:one", 2),
        ("User:all", 3),
        ("User:admin", 4),
        ("", 5),
    ]
    assert own.documentation.startswith("Principals")
    everywhere = await described(ops, "")
    assert {name: config.value for name, config in everywhere.items()} == {SUPER_USERS: "User:all"}


async def test_no_secret_is_ever_shown(node: AdminNode) -> None:
    ops = await node.talk("ops")
    shown = await described(ops, "1")
    jaas = shown["plain.sasl.jaas.config"]
    assert (jaas.value, jaas.is_sensitive, jaas.config_type) == (None, True, 9)
    assert all(synonym.value is None for synonym in jaas.synonyms)
    assert "s3cret" not in str([config.to_dict() for config in shown.values()])
    assert (shown["node.id"].value, shown["node.id"].read_only) == ("1", True)


@pytest.mark.parametrize(("count", "code"), [(100, 0), (101, 42)])
async def test_a_request_shows_so_many_resources_at_most(node: AdminNode, count: int, code: int) -> None:
    viewer = await node.talk("viewer")
    asked = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["node.id"]}
    answer = await viewer.ask(CONFIGS, 4, resources=[asked] * count)
    assert [result.error_code for result in answer.results] == [code] * count
    assert {len(result.configs) for result in answer.results} == {int(code == 0)}


async def test_levels_of_loggers_change_for_this_run(node: AdminNode) -> None:
    admin = await node.talk("admin")
    assert (await described(admin, "1", "kustos.metadata.log", kind=LOGGER))[
        "kustos.metadata.log"
    ].value == "INFO"
    assert await alter(admin, "1", ("kustos.metadata", SET, "ERROR"), kind=LOGGER) == (0, None)
    shown = await described(admin, "1", kind=LOGGER)
    assert (shown["kustos.metadata.log"].value, shown["kustos.server"].value) == ("ERROR", "INFO")
    assert await alter(admin, "1", ("kustos.metadata", DELETE, None), kind=LOGGER) == (0, None)
    assert (await described(admin, "1", kind=LOGGER))["kustos.metadata"].value == "INFO"
    assert await alter(admin, "1", ("nobody", SET, "INFO"), kind=LOGGER) == (
        40,
        "Logger nobody does not exist!",
    )
    assert node.node.store.image.configs == {}
