"""What the Helm chart starts, started here: its init container and its container, with its files."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import NewTopic

from testkit.certificates import Authority
from testkit.kafka import KafkaNode, make_topics
from testkit.kubernetes import Manifest, of_kind, rendered
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.processes import Server
from testkit.waiting import wait_until

PASSWORD = "admin-s3cret"
BROKERS = 4
WAIT_S = 60.0
TOPIC = "charted-orders"


class Pod:
    """The pod of a rendered chart: its files below a folder, its commands as processes."""

    def __init__(self, directory: Path, upstream: str) -> None:
        self.directory = directory
        self.port = free_port_range(BROKERS + 1)
        self.http_port = free_port()
        escaped = upstream.replace(",", "\\,")
        values = {
            "image.repository": "kustos",
            "image.tag": "here",
            "admin.secret.name": "admin",
            "tls.secret": "tls",
            "tls.combined": "combined.pem",
            "listener.port": str(self.port),
            "listener.brokerPorts": str(BROKERS),
            "listener.advertised.host": "localhost",
            r"settings.kustos\.upstream\.bootstrap\.servers": escaped,
        }
        arguments = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
        self.manifests = rendered(*arguments)
        (self.set,) = of_kind(self.manifests, "StatefulSet")
        authority = Authority()
        self.trust = authority.write(directory / "authority.pem")
        for folder in ("etc/tls", "etc/admin", "lib", "log"):
            (directory / folder).mkdir(parents=True)
        authority.issue("kustos", hosts=["localhost"]).write(directory / "etc" / "tls" / "combined.pem")
        # as `kubectl create secret --from-file` keeps the end of a line
        (directory / "etc" / "admin" / "password").write_text(f"{PASSWORD}\n")
        (config,) = of_kind(self.manifests, "ConfigMap")
        text = self.here(config["data"]["kustos.properties"]).replace(
            "0.0.0.0:9404", f"{LOOPBACK}:{self.http_port}"
        )
        (directory / "etc" / "kustos.properties").write_text(text.replace("0.0.0.0", LOOPBACK))

    def here(self, text: str) -> str:
        """Return a text with the pod's folders below ours."""
        for there, own in (("/etc/kustos", "etc"), ("/var/lib/kustos", "lib"), ("/var/log/kustos", "log")):
            text = text.replace(there, str(self.directory / own))
        return text

    def command(self, container: Manifest) -> list[str]:
        return [sys.executable, "-m", "kustos", *map(self.here, container["args"])]

    @property
    def environment(self) -> dict[str, str]:
        # Kubernetes gives each pod its ordinal, which begins where the chart says
        return {"KUSTOS_NODE_ID": str(self.set["spec"]["ordinals"]["start"])}

    def format(self) -> str:
        """Run the init container; return what it prints."""
        (container,) = self.set["spec"]["template"]["spec"]["initContainers"]
        environment = os.environ | self.environment
        done = subprocess.run(
            self.command(container), env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> Server:
        """Run the container until its probe says that it is ready."""
        (container,) = self.set["spec"]["template"]["spec"]["containers"]
        line = [
            "env",
            *(f"{key}={value}" for key, value in self.environment.items()),
            *self.command(container),
        ]
        server = Server("kustos", line, self.directory / "kustos.log")
        path = container["readinessProbe"]["httpGet"]["path"]
        server.wait_ready(lambda: self.answers(path), timeout_s=WAIT_S)
        return server

    def answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.http_port}{path}", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def client(self, **more: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": f"localhost:{self.port}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trust),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
        } | {key.replace("_", "."): value for key, value in more.items()}

    def write_and_read(self, value: bytes) -> None:
        """Send a record through the pod, and wait until a consumer has it."""
        producer = Producer(self.client())
        producer.produce(TOPIC, value)
        assert producer.flush(WAIT_S) == 0
        consumer = Consumer(self.client(group_id="charted", auto_offset_reset="earliest"))
        consumer.subscribe([TOPIC])
        seen: list[bytes | None] = []

        def read() -> bool:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen.append(message.value())
            return value in seen

        wait_until(read, timeout_s=WAIT_S, what="the record comes back")
        consumer.close()


def test_what_the_chart_starts_serves_clients_and_again_after_a_restart(
    tmp_path: Path, kafka: KafkaNode
) -> None:
    make_topics([kafka], NewTopic(TOPIC, 2, 1))
    pod = Pod(tmp_path, kafka.bootstrap)
    pod.format()
    for value in (b"first", b"second"):
        server = pod.start()
        (container,) = pod.set["spec"]["template"]["spec"]["containers"]
        assert pod.answers(container["livenessProbe"]["httpGet"]["path"])
        pod.write_and_read(value)
        assert server.terminate(timeout_s=WAIT_S) == 0
        # a pod that starts again formats again, and nothing is lost
        pod.format()
    assert list((tmp_path / "log").rglob("*.jsonl"))
    assert (tmp_path / "lib" / "metadata").is_dir()
