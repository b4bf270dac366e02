"""The gateway beside a direct connection: the same clients, the same SASL, the same broker.

`theirs` is Kafka 4.3.1 itself over SASL_PLAINTEXT without an authorizer, `ours` the same broker behind
kustos with SASL, ACLs and audit, so a ratio of 1 would be a guard that costs nothing. Broker, gateway and
client share the machine. Rounds alternate, medians are compared. Kafka's own perf tools make the load;
the latency of a single record is taken by a small producer of the same client library, since those
tools round to milliseconds.
"""

import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import QUICK, Figure, emit, progress
from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from testkit.kafka import KafkaNode, NodeSettings
from testkit.kafka.java import command
from testkit.kafka.listeners import PLAINTEXT, SASL_PLAINTEXT
from testkit.kustos import KustosNode, KustosSettings

RECORDS = 60_000 if QUICK else 500_000
SENDS = 1_000 if QUICK else 5_000
WARM_UP_SENDS = 500 if QUICK else 2_000
ROUNDS = 1 if QUICK else 5
RECORD_BYTES = 1000
TOPIC = "bench"
USER = "bench"
PASSWORD = "bench-secret"
TOOLS = "org.apache.kafka.tools"
TOOL_TIMEOUT_S = 600
NOISE_ACLS = 1_000
"""Other people's ACLs, so that the index is not empty."""


def allow(resource_type: ResourceType, name: str, principal: str, operation: AclOperation) -> AclBinding:
    """Return an ACL that allows this on names that begin so."""
    pattern = ResourcePattern(resource_type, name, PatternType.PREFIXED)
    return AclBinding(pattern, AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW))


def acls() -> list[AclBinding]:
    """Return what the client may do, among the ACLs of others."""
    others = [
        allow(ResourceType.TOPIC, f"other-{n}-", f"User:other-{n}", AclOperation.ALL)
        for n in range(NOISE_ACLS)
    ]
    own = [
        allow(ResourceType.TOPIC, TOPIC, f"User:{USER}", AclOperation.ALL),
        allow(ResourceType.GROUP, TOPIC, f"User:{USER}", AclOperation.ALL),
    ]
    return others + own


class Load:
    """Kafka's perf tools against one address."""

    def __init__(self, directory: Path, name: str, bootstrap: str) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.properties = directory / f"{name}.properties"
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        self.properties.write_text(
            f"bootstrap.servers={bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            f'sasl.jaas.config={module} required username="{USER}" password="{PASSWORD}";\n'
        )
        self.groups = 0

    def run(self, main: str, *arguments: str) -> str:
        """Return what a tool printed, run by a JVM that optimizes as it does in real life."""
        line = command(main, *arguments, heap="512m", peak=True)
        done = subprocess.run(line, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{main} failed\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def create_topic(self) -> None:
        """Create the topic, through whatever is at the address."""
        common = ("--bootstrap-server", self.bootstrap, "--command-config", str(self.properties))
        self.run(f"{TOOLS}.TopicCommand", *common, "--create", "--topic", TOPIC, "--partitions", "1")

    def produce(self) -> float:
        """Return records per second."""
        text = self.run(
            f"{TOOLS}.ProducerPerformance", "--topic", TOPIC, "--num-records", str(RECORDS),
            "--record-size", str(RECORD_BYTES), "--throughput", "-1",
            "--command-config", str(self.properties), "--command-property", "acks=1",
        )  # fmt: skip
        return float(re.findall(r"([\d.]+) records/sec", text)[-1])

    def consume(self) -> float:
        """Return MB per second."""
        self.groups += 1
        text = self.run(
            f"{TOOLS}.ConsumerPerformance", "--bootstrap-server", self.bootstrap, "--topic", TOPIC,
            "--num-records", str(RECORDS), "--group", f"{TOPIC}-{self.name}-{self.groups}",
            "--command-config", str(self.properties),
        )  # fmt: skip
        return float(text.strip().splitlines()[-1].split(",")[3])

    def latency(self) -> float:
        """Return the median microseconds from a send to its acknowledgement."""
        source = Path(__file__).parent / "java" / "SendLatency.java"
        sizes = (str(WARM_UP_SENDS), str(SENDS))
        return float(self.run(str(source), str(self.properties), TOPIC, *sizes).strip().splitlines()[-1])


def compare(
    name: str, unit: str, ours: Callable[[], float], theirs: Callable[[], float], size: int
) -> Figure:
    """Return the figure of alternating rounds."""
    pairs = []
    for number in range(1, ROUNDS + 1):
        pairs.append((theirs(), ours()))
        progress(f"  {name} {number}/{ROUNDS}: direct {pairs[-1][0]:.1f}, kustos {pairs[-1][1]:.1f} {unit}")
    return Figure(
        name=name,
        unit=unit,
        ours=statistics.median(pair[1] for pair in pairs),
        theirs=statistics.median(pair[0] for pair in pairs),
        size=size,
        higher_is_better=unit != "µs",
    )


def main() -> None:
    """Run the benchmark and print its figures."""
    directory = Path(tempfile.mkdtemp(prefix="kustos-bench-"))
    users = {USER: PASSWORD, "admin": "admin-secret"}
    broker = NodeSettings(listeners=(PLAINTEXT, SASL_PLAINTEXT), users=users, peak=True, heap="1g")
    guard = KustosSettings(users=users, acls=acls())
    try:
        progress("starting Kafka 4.3.1 and kustos")
        with (
            KafkaNode(directory / "kafka", broker) as kafka,
            KustosNode(directory / "kustos", kafka.address("PLAINTEXT"), guard) as kustos,
        ):
            direct = Load(directory, "direct", kafka.address("SASL_PLAINTEXT"))
            through = Load(directory, "kustos", kustos.bootstrap)
            through.create_topic()
            direct.produce()
            figures = [
                compare("gateway-produce", "records/s", through.produce, direct.produce, RECORDS),
                compare("gateway-consume", "MB/s", through.consume, direct.consume, RECORDS),
                compare("gateway-latency-p50", "µs", through.latency, direct.latency, SENDS),
            ]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    emit(figures)


if __name__ == "__main__":
    main()
