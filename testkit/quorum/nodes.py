"""kustos nodes in cluster mode, and what is asked of them."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.client import ClientSettings, KafkaConnection, NodeAddress, connect, parse_address
from kustos.client.admin.acl_messages import creation_fields, described_bindings, filter_fields
from kustos.metadata.directory.format import format_directory
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK
from testkit.quorum.controllers import Quorum
from testkit.waiting import PATIENCE_S

PASSWORDS = {"admin": "admin-secret", "ann": "ann-secret", "carol": "carol-secret", "broker": "broker-secret"}

DENIED = 29
UNKNOWN_TOPIC = 3


def kraft_properties(quorum: Quorum, mechanism: str = "PLAIN") -> dict[str, str]:
    """Return the settings of cluster mode."""
    client = {f"kustos.quorum.{key}": value for key, value in quorum.client_properties(mechanism).items()}
    return {
        "kustos.metadata.store": "kraft",
        "controller.quorum.bootstrap.servers": quorum.bootstrap,
        **client,
    }


def kraft_node(
    directory: Path,
    quorum: Quorum,
    properties: Mapping[str, str] | None = None,
    mechanism: str = "PLAIN",
) -> KustosNode:
    """Return a node that will follow this quorum, its directory formatted."""
    assert quorum.broker is not None
    settings = KustosSettings(
        users=PASSWORDS, audit=False, properties=kraft_properties(quorum, mechanism) | dict(properties or {})
    )
    node = KustosNode(directory, quorum.broker.bootstrap, settings)
    format_directory(node.metadata_directory, cluster_id=quorum.cluster_id)
    return node


def login(node: KustosNode, user: str) -> ClientSettings:
    """Return the settings by which this user comes to a node."""
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{user}" password="{PASSWORDS[user]}";'
        ),
    }
    return ClientSettings.from_properties(node.bootstrap, properties)


async def logged_in(node: KustosNode, user: str) -> KafkaConnection:
    """Return a connection of this user."""
    return await connect(parse_address(node.bootstrap), login(node, user))


async def create_acls(connection: KafkaConnection, *bindings: AclBinding) -> Message:
    """Return the answer to CreateAcls."""
    return await connection.request(
        ApiKey.CREATE_ACLS,
        lambda codec: codec.new(
            creations=[codec.struct("AclCreation")(**creation_fields(each)) for each in bindings]
        ),
        timeout_ms=int(PATIENCE_S * 1000),
    )


async def acls_of(connection: KafkaConnection, name: str | None = None) -> set[AclBinding]:
    """Return all ACLs that there are, or those of resources of this name."""
    asked = replace(EVERY_BINDING, pattern_filter=replace(EVERY_BINDING.pattern_filter, name=name))
    answer = await connection.request(ApiKey.DESCRIBE_ACLS, lambda codec: codec.new(**filter_fields(asked)))
    assert answer.error_code == 0, answer
    return set(described_bindings(answer))


async def topic_error(connection: KafkaConnection, topic: str) -> int:
    """Return what Metadata says of a topic that does not exist: who may not see it is denied."""
    answer = await connection.request(
        ApiKey.METADATA,
        lambda codec: codec.new(
            topics=[codec.struct("MetadataRequestTopic").fit(name=topic)], allow_auto_topic_creation=False
        ),
        cap=12,
    )
    return int(answer.topics[0].error_code)


async def acls_of_broker(broker: KafkaNode) -> set[AclBinding]:
    """Return the ACLs that a broker's own authorizer has."""
    address = parse_address(broker.bootstrap)
    settings = ClientSettings.from_properties(broker.bootstrap, {})
    async with await connect(NodeAddress(address.host, address.port), settings) as connection:
        return await acls_of(connection)


def allow(topic: str) -> AclBinding:
    """Return the ACL by which ann may see a topic."""
    return ann(topic, AclPermissionType.ALLOW)


def ann(topic: str, permission: AclPermissionType) -> AclBinding:
    """Return what is said of ann and a topic."""
    pattern = ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL)
    return AclBinding(pattern, AccessControlEntry("User:ann", "*", AclOperation.DESCRIBE, permission))


def readiness(node: KustosNode) -> dict[str, Any]:
    """Return what `/ready` says, ready or not."""
    try:
        with urllib.request.urlopen(
            f"http://{LOOPBACK}:{node.http_port}/ready", timeout=PATIENCE_S
        ) as answer:
            told: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        told = json.load(error)
    return told


def leader_of(node: KustosNode) -> tuple[str | None, int]:
    """Return the address of the controller that a node follows, and its epoch."""
    told = readiness(node)
    return told["quorum_leader"], told["quorum_epoch"]
