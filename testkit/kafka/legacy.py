"""A broker of Kafka 2.8.2 with `AclAuthorizer` and its ZooKeeper, on loopback.

It logs its decisions through log4j 1 into a file, in the layout that Kafka shipped then.
"""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from testkit.jars import LEGACY_KAFKA, LEGACY_KAFKA_LOGGING
from testkit.kafka.java import FLAGS, java
from testkit.kafka.listeners import PLAIN_MODULE
from testkit.kafka.tools import TOOL_TIMEOUT_S, write_properties
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

ADMIN: Final = "admin"
"""The super user; the broker itself also logs in as this user."""

START_TIMEOUT_S: Final = 90.0
"""Starting both takes about 6 s on an idle machine, ten times as long on a busy one."""

LOOK_S: Final = 1.0

_ZOOKEEPER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"

_LOGGING: Final = {
    "log4j.rootLogger": "INFO, stdout",
    "log4j.appender.stdout": "org.apache.log4j.ConsoleAppender",
    "log4j.appender.stdout.layout": "org.apache.log4j.PatternLayout",
    "log4j.appender.stdout.layout.ConversionPattern": "[%d] %p %m (%c)%n",
    "log4j.appender.authorizer": "org.apache.log4j.FileAppender",
    "log4j.appender.authorizer.layout": "org.apache.log4j.PatternLayout",
    "log4j.appender.authorizer.layout.ConversionPattern": "[%d] %p %m (%c)%n",
    "log4j.logger.kafka.authorizer.logger": "DEBUG, authorizer",
    "log4j.additivity.kafka.authorizer.logger": "false",
}


@dataclass(frozen=True, slots=True)
class LegacyBroker:
    """A running broker. `authorizer_log` has a line for each of its decisions."""

    bootstrap: str
    users: Mapping[str, str]
    authorizer_log: Path

    def client(self, user: str) -> dict[str, str | int | float | bool]:
        """Return the settings with which a librdkafka client logs in."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": self.users[user],
        }


@contextmanager
def legacy_broker(folder: Path, users: Mapping[str, str]) -> Iterator[LegacyBroker]:
    """Yield a broker whose `users` (PLAIN passwords) include `ADMIN`; both processes are gone at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    zookeeper_port, port = free_port(), free_port()
    broker = LegacyBroker(f"{LOOPBACK}:{port}", dict(users), folder / "authorizer.log")
    write_properties(folder / "zoo.cfg", _zookeeper(folder, zookeeper_port))
    write_properties(folder / "server.properties", _configuration(folder, broker, zookeeper_port))
    write_properties(
        folder / "log4j.properties",
        {**_LOGGING, "log4j.appender.authorizer.File": str(broker.authorizer_log)},
    )
    with ExitStack() as servers:
        for name, main, file in (
            ("zookeeper", _ZOOKEEPER, "zoo.cfg"),
            (f"kafka {LEGACY_KAFKA.version}", "kafka.Kafka", "server.properties"),
        ):
            # the broker waits for its ZooKeeper by itself
            server = Server(name, _command(folder, main, file), folder / f"{file}.log")
            servers.callback(server.kill)
        server.wait_ready(lambda: _serves(broker), timeout_s=START_TIMEOUT_S)
        yield broker


def legacy_acl_tool(*arguments: str) -> str:
    """Return what `kafka-acls` of Kafka 2.8.2 prints."""
    classpath = ":".join(map(str, sorted(LEGACY_KAFKA.resolve().glob("*.jar"))))
    done = subprocess.run(
        [java(), "-Xmx128m", *FLAGS, "-cp", classpath, "kafka.admin.AclCommand", *arguments],
        capture_output=True,
        text=True,
        timeout=TOOL_TIMEOUT_S,
        check=True,
    )
    return done.stdout


def _command(folder: Path, main: str, file: str) -> list[str]:
    jars = [*LEGACY_KAFKA.resolve().glob("*.jar"), *LEGACY_KAFKA_LOGGING.resolve().glob("*.jar")]
    known = {jar.name: jar for jar in jars if not jar.name.startswith("slf4j-simple")}
    classpath = ":".join(str(known[name]) for name in sorted(known))
    logging = f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"
    return [java(), "-Xmx256m", *FLAGS, logging, "-cp", classpath, main, str(folder / file)]


def _zookeeper(folder: Path, port: int) -> dict[str, str]:
    return {
        "dataDir": str(folder / "zookeeper"),
        "clientPort": str(port),
        "clientPortAddress": LOOPBACK,
        "admin.enableServer": "false",
    }


def _configuration(folder: Path, broker: LegacyBroker, zookeeper_port: int) -> dict[str, str]:
    entries = " ".join(f'user_{name}="{password}"' for name, password in broker.users.items())
    own = f'username="{ADMIN}" password="{broker.users[ADMIN]}"'
    return {
        "broker.id": "0",
        "zookeeper.connect": f"{LOOPBACK}:{zookeeper_port}",
        "zookeeper.connection.timeout.ms": str(int(START_TIMEOUT_S * 1000)),
        "log.dirs": str(folder / "data"),
        "listeners": f"SASL_PLAINTEXT://{broker.bootstrap}",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {own} {entries};",
        "authorizer.class.name": _AUTHORIZER,
        "super.users": f"User:{ADMIN}",
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": "10485760",
    }


def _serves(broker: LegacyBroker) -> bool:
    try:
        return bool(AdminClient({**broker.client(ADMIN), "log_level": 0}).list_topics(timeout=LOOK_S).brokers)
    except KafkaException:
        return False
