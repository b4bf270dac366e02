"""Metrics of Java clients on their way through kustos to a broker's plug-in (KIP-714)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.guarded.cluster import GuardedCluster, Op, Type, acl
from testkit.kafka import KafkaTools, NodeSettings
from testkit.kafka.telemetry import TelemetryPlugin
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosSettings
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "tom")}
ACLS = (acl("tom", Op.WRITE, Type.TOPIC, "orders"),)
OFTEN_MS = 100
"""The shortest time between two pushes that a broker accepts."""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> TelemetryPlugin:
    return TelemetryPlugin.made_in(tmp_path_factory.mktemp("plugin"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, plugin: TelemetryPlugin) -> Iterator[GuardedCluster]:
    """A broker that takes metrics of clients."""
    kafka = NodeSettings(properties=plugin.properties, jars=(plugin.jar,))
    settings = KustosSettings(users=USERS, acls=ACLS)
    with GuardedCluster(
        tmp_path_factory.mktemp("telemetry"), settings, topics=("orders",), kafka=kafka
    ) as made:
        yield made


def test_a_client_pushes_what_it_is_asked_for(
    scene: GuardedCluster, kafka_tools: KafkaTools, plugin: TelemetryPlugin, tmp_path: Path
) -> None:
    def tool(name: str, user: str, *arguments: str, stdin: str | None = None, flag: str) -> str:
        settings = tmp_path / f"{user}.properties"
        write_properties(settings, scene.java(user) | {"enable.metrics.push": "true"})
        common = ("--bootstrap-server", scene.bootstrap, flag, str(settings))
        return kafka_tools.run(name, *common, *arguments, stdin=stdin).require()

    wanted = (
        "--alter",
        "--name",
        "all",
        "--metrics",
        "org.apache.kafka.producer.",
        "--interval",
        f"{OFTEN_MS}",
    )
    tool("ClientMetricsCommand", "admin", *wanted, flag="--command-config")

    def pushes() -> list[tuple[str, int, bool]]:
        # a client whose first question came before the broker knew of the subscription pushes nothing
        records = "".join(f"record-{number}\n" for number in range(100))
        tool("ConsoleProducer", "tom", "--topic", "orders", stdin=records, flag="--command-config")
        return plugin.pushes()

    wait_until(
        lambda: any(size > 0 and last for _, size, last in pushes()), what="the last metrics of a client"
    )
    scene.assert_proper()
