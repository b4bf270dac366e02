"""Kafka's own tools against the admin listener, by `--bootstrap-controller` (KIP-919)."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kustos.metadata.features import DEFAULT_LEVEL
from testkit.gateway.admin_node import MODULE, PASSWORD, AdminNode, admin_node
from testkit.kafka.tools import KafkaTools, ToolResult, write_properties
from testkit.ports import LOOPBACK


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[AdminNode]:
    async with admin_node(tmp_path) as made:
        yield made


async def tool(node: AdminNode, directory: Path, name: str, *arguments: str, user: str = "ops") -> ToolResult:
    """Run a tool as a user; the node goes on meanwhile."""
    file = directory / f"{user}.properties"
    login = f'{MODULE} required username="{user}" password="{PASSWORD}";'
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    write_properties(file, properties)
    where = ("--bootstrap-controller", f"{LOOPBACK}:{node.admin_port}", "--command-config", str(file))
    return await asyncio.to_thread(KafkaTools().run, name, *where, *arguments)


async def test_kafka_features_raises_the_metadata_version(node: AdminNode, tmp_path: Path) -> None:
    raised = await tool(node, tmp_path, "FeatureCommand", "upgrade", "--feature", "metadata.version=33")
    assert raised.require() == "metadata.version was upgraded to 33.\n"
    assert node.node.store.image.metadata_version == 33
    lowered = await tool(node, tmp_path, "FeatureCommand", "downgrade", "--feature", "metadata.version=30")
    assert lowered.exit_code == 1
    assert "Unsupported metadata.version downgrade from 33 to 30" in lowered.stdout
    assert node.node.store.image.metadata_version == 33


async def test_a_range_of_addresses_is_refused_with_the_command_that_lets_it_be_made(
    node: AdminNode, tmp_path: Path
) -> None:
    await tool(node, tmp_path, "FeatureCommand", "describe")  # writes the properties of `ops`
    address, file = f"{LOOPBACK}:{node.admin_port}", str(tmp_path / "ops.properties")

    async def kustos(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "kustos", *arguments, "--command-config", file]
        return await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, check=False)

    made = ("acls", "add", "--bootstrap-server", address, "--topic", "t", "--allow-principal", "User:a")
    refused = await kustos(*made, "--allow-host", "10.0.0.0/8")
    assert refused.returncode == 1
    remedy = re.search(r"`kustos (features upgrade) --config \S+ ([^`]*)`", refused.stderr)
    assert remedy is not None, refused.stderr
    # the node runs, so it is asked for by its admin listener, as the message says
    raised = await kustos(*remedy[1].split(), "--bootstrap-controller", address, *remedy[2].split())
    assert raised.returncode == 0, raised.stderr
    assert (await kustos(*made, "--allow-host", "10.0.0.0/8")).returncode == 0


async def test_kustos_features_does_as_kafka_features(node: AdminNode, tmp_path: Path) -> None:
    await tool(node, tmp_path, "FeatureCommand", "describe")  # writes the properties of `ops`
    words = [sys.executable, "-m", "kustos", "features"]
    where = ["--bootstrap-controller", f"{LOOPBACK}:{node.admin_port}"]
    where += ["--command-config", str(tmp_path / "ops.properties"), "-o", "json"]

    async def kustos(*arguments: str) -> tuple[int, Any]:
        line = [*words, *arguments, *where]
        done = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout or done.stderr)

    to = ("upgrade", "--feature", "metadata.version=33")
    assert (await kustos(*to, "--dry-run"))[0] == 0
    assert node.node.store.image.metadata_version == DEFAULT_LEVEL
    assert (await kustos(*to))[0] == 0
    assert node.node.store.image.metadata_version == 33
    [shown] = (await kustos("describe"))[1]["features"]
    assert (shown["feature"], shown["finalized_version_level"]) == ("metadata.version", "4.4-IV2")
    exit_code, refused = await kustos("upgrade", "--release-version", "4.3")
    assert (exit_code, refused["error"]["code"]) == (1, "INVALID_UPDATE_VERSION")
    for flags in ((), ("--unsafe",)):
        lower = ("downgrade", "--feature", "metadata.version=30", *flags)
        theirs = await tool(node, tmp_path, "FeatureCommand", *lower)
        why = theirs.stdout.splitlines()[0].partition(" to 30. ")[2]
        exit_code, refused = await kustos(*lower)
        assert exit_code == theirs.exit_code == 1
        assert why
        assert why in refused["error"]["message"]
        assert node.node.store.image.metadata_version == 33


async def test_a_level_without_records_of_its_own_is_left_by_both_tools(
    node: AdminNode, tmp_path: Path
) -> None:
    level = ("--feature", "metadata.version=31")
    await tool(node, tmp_path, "FeatureCommand", "upgrade", *level)
    lowered = await tool(node, tmp_path, "FeatureCommand", "downgrade", "--feature", "metadata.version=30")
    assert lowered.require() == "metadata.version was downgraded to 30.\n"
    await tool(node, tmp_path, "FeatureCommand", "upgrade", *level)
    assert node.node.store.image.metadata_version == 31
    line = [sys.executable, "-m", "kustos", "features", "downgrade", "--release-version", "4.3"]
    line += ["--bootstrap-controller", f"{LOOPBACK}:{node.admin_port}"]
    line += ["--command-config", str(tmp_path / "ops.properties")]
    done = await asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "metadata.version is now 4.3-IV0\n", "")
    assert node.node.store.image.metadata_version == 30


async def test_kafka_metadata_quorum_shows_the_node(node: AdminNode, tmp_path: Path) -> None:
    status = (await tool(node, tmp_path, "MetadataQuorumCommand", "describe", "--status")).require()
    words = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert words["ClusterId"].strip() == node.node.store.properties.cluster_id
    assert words["LeaderId"].strip() == "1"
    assert int(words["HighWatermark"]) == node.node.store.last_offset + 1
    assert f"ADMIN://{LOOPBACK}:{node.admin_port}" in words["CurrentVoters"]


async def test_kafka_configs_changes_and_shows_settings(node: AdminNode, tmp_path: Path) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    added = "super.users=User:admin;User:alice"
    changed = await tool(node, tmp_path, "ConfigCommand", *broker, "--alter", "--add-config", added)
    assert changed.require() == "Completed updating config for broker 1.\n"
    shown = (await tool(node, tmp_path, "ConfigCommand", *broker, "--describe", user="alice")).require()
    assert "super.users=User:admin;User:alice sensitive=false" in shown
    assert "STATIC_BROKER_CONFIG:super.users=User:admin" in shown


async def test_kafka_configs_changes_levels_of_loggers(node: AdminNode, tmp_path: Path) -> None:
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    change = ("--alter", "--add-config", "kustos.gateway=ERROR")
    refused = await tool(node, tmp_path, "ConfigCommand", *loggers, *change)
    assert "ClusterAuthorizationException" in refused.stdout + refused.stderr, "it takes CLUSTER_ACTION"
    changed = await tool(node, tmp_path, "ConfigCommand", *loggers, *change, user="admin")
    assert changed.require() == "Completed updating config for broker-logger 1.\n"
