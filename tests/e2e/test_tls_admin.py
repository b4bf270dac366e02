"""The admin listener over TLS: Kafka's own tool and ours administer a node by their certificates."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testkit.certificates import Authority
from testkit.kafka import KafkaNode, KafkaTools
from testkit.kafka.tools import ToolResult, write_properties
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port

PEM = "PEM"


class AdminScene:
    """A node with an admin listener that wants certificates, and the stores of those who come."""

    def __init__(self, directory: Path, kafka: KafkaNode) -> None:
        self.directory = directory
        self.authority, self.stranger = Authority(), Authority("stranger")
        self.trust = self.authority.write(directory / "authority.pem")
        self.address = f"{LOOPBACK}:{free_port()}"
        store = self.authority.issue("kustos", hosts=["localhost"]).write(directory / "node.pem")
        own = {
            "listener.security.protocol.map": "ADMIN:SSL",
            "controller.listener.names": "ADMIN",
            "listener.name.admin.ssl.client.auth": "required",
            "listener.name.admin.ssl.keystore.type": PEM,
            "listener.name.admin.ssl.keystore.location": str(store),
            "listener.name.admin.ssl.truststore.type": PEM,
            "listener.name.admin.ssl.truststore.location": str(self.trust),
            "super.users": "User:CN=ops",
        }
        settings = KustosSettings(users={"alice": "alice-secret"}, properties=own)
        self.node = KustosNode(directory / "kustos", kafka.bootstrap, settings)
        own["listeners"] = f"SASL_PLAINTEXT://{self.node.bootstrap},ADMIN://{self.address}"
        self.node.settings = replace(settings, properties=own)

    def config(self, name: str, authority: Authority) -> Path:
        """Return the client properties of a holder."""
        file = self.directory / f"{name}.properties"
        own = {
            "security.protocol": "SSL",
            "ssl.truststore.type": PEM,
            "ssl.truststore.location": str(self.trust),
            "ssl.keystore.type": PEM,
            "ssl.keystore.location": str(
                authority.issue(name, address=None).write(self.directory / f"{name}.pem")
            ),
        }
        write_properties(file, own)
        return file

    def kafkas(self, config: Path, *arguments: str) -> ToolResult:
        where = ("--bootstrap-controller", self.address, "--command-config", str(config))
        return KafkaTools().run("FeatureCommand", *where, *arguments)


@pytest.fixture
def scene(tmp_path: Path, kafka: KafkaNode) -> Iterator[AdminScene]:
    made = AdminScene(tmp_path, kafka)
    with made.node:
        yield made


@pytest.mark.slow
def test_a_certificate_administers_the_node_and_no_other_does(scene: AdminScene) -> None:
    ops = scene.config("ops", scene.authority)
    upgraded = scene.kafkas(ops, "upgrade", "--feature", "metadata.version=33")
    assert upgraded.require() == "metadata.version was upgraded to 33.\n"
    where = ["--bootstrap-controller", scene.address, "--command-config", str(ops), "-o", "json"]
    line = [sys.executable, "-m", "kustos", "features", "describe", *where]
    described = subprocess.run(line, capture_output=True, text=True, check=True)
    [shown] = json.loads(described.stdout)["features"]
    assert (shown["feature"], shown["finalized_version_level"]) == ("metadata.version", "4.4-IV2")
    # known, and not allowed
    clerk = scene.config("clerk", scene.authority)
    denied = scene.kafkas(clerk, "upgrade", "--feature", "metadata.version=34")
    assert denied.exit_code != 0
    assert "Cluster authorization failed" in denied.stdout
    # unknown: the handshake fails
    mallory = scene.config("mallory", scene.stranger)
    line[line.index(str(ops))] = str(mallory)
    refused = subprocess.run(line, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert 'kustos_failed_handshakes_total{kind="untrusted",listener="ADMIN"}' in scene.node.metrics()
