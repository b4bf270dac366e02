"""Kafka's own tools against the admin listener, by `--bootstrap-controller` (KIP-919)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit.kafka.tools import KafkaTools, ToolResult, write_properties
from testkit.ports import LOOPBACK
from tests.unit.server.admin_worlds import MODULE, PASSWORD, House, house


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as made:
        yield made


async def tool(node: House, directory: Path, name: str, *arguments: str, user: str = "ops") -> ToolResult:
    """Run a tool as a user; the node goes on meanwhile."""
    file = directory / f"{user}.properties"
    login = f'{MODULE} required username="{user}" password="{PASSWORD}";'
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    write_properties(file, properties)
    where = ("--bootstrap-controller", f"{LOOPBACK}:{node.admin_port}", "--command-config", str(file))
    return await asyncio.to_thread(KafkaTools().run, name, *where, *arguments)


async def test_kafka_features_raises_the_metadata_version(node: House, tmp_path: Path) -> None:
    raised = await tool(node, tmp_path, "FeatureCommand", "upgrade", "--feature", "metadata.version=33")
    assert raised.require() == "metadata.version was upgraded to 33.\n"
    assert node.node.store.image.metadata_version == 33
    lowered = await tool(node, tmp_path, "FeatureCommand", "downgrade", "--feature", "metadata.version=30")
    assert lowered.exit_code == 1
    assert "Unsupported metadata.version downgrade from 33 to 30" in lowered.stdout
    assert node.node.store.image.metadata_version == 33


async def test_kafka_metadata_quorum_shows_the_node(node: House, tmp_path: Path) -> None:
    status = (await tool(node, tmp_path, "MetadataQuorumCommand", "describe", "--status")).require()
    words = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert words["ClusterId"].strip() == node.node.store.properties.cluster_id
    assert words["LeaderId"].strip() == "1"
    assert int(words["HighWatermark"]) == node.node.store.last_offset + 1
    assert f"ADMIN://{LOOPBACK}:{node.admin_port}" in words["CurrentVoters"]


async def test_kafka_configs_changes_and_shows_settings(node: House, tmp_path: Path) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    added = "super.users=User:admin;User:alice"
    changed = await tool(node, tmp_path, "ConfigCommand", *broker, "--alter", "--add-config", added)
    assert changed.require() == "Completed updating config for broker 1.\n"
    shown = (await tool(node, tmp_path, "ConfigCommand", *broker, "--describe", user="alice")).require()
    assert "super.users=User:admin;User:alice sensitive=false" in shown
    assert "STATIC_BROKER_CONFIG:super.users=User:admin" in shown


async def test_kafka_configs_changes_levels_of_loggers(node: House, tmp_path: Path) -> None:
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    change = ("--alter", "--add-config", "kustos.gateway=ERROR")
    refused = await tool(node, tmp_path, "ConfigCommand", *loggers, *change)
    assert "ClusterAuthorizationException" in refused.stdout + refused.stderr, "it takes CLUSTER_ACTION"
    changed = await tool(node, tmp_path, "ConfigCommand", *loggers, *change, user="admin")
    assert changed.require() == "Completed updating config for broker-logger 1.\n"
