"""A real ZooKeeper whose tree Kafka 2.8's own classes write, and what they decide from it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kustos.acl import AclBinding
from testkit.jars import LEGACY_KAFKA
from testkit.kafka import java
from testkit.kafka.compiled import compiled
from testkit.legacy_probe import decoded, each_of, encoded
from testkit.processes import spawn
from tests.conformance.tls_stores import Stores

PROBE = Path(__file__).with_name("ZooKeeperProbe.java")
SASL_USER, SASL_PASSWORD = "migrator", "migrator-secret"


class ZooKeeperProbe:
    """Speaks with the process; every method raises AssertionError for an error of its."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.port, self.tls_port = map(int, self._line().split())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        assert line, "the process ended"
        return line

    def tell(self, verb: str, *fields: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join([verb, *map(encoded, fields)]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._line()
        assert not answer.startswith("error"), answer
        return answer

    def open(self, chroot: str = "", super_users: str = "User:root", everyone: bool = False) -> None:
        """Begin again with an AclAuthorizer that has read what is there."""
        self.tell("open", chroot, super_users, str(everyone).lower())

    def connect(self, chroot: str = "") -> str:
        return f"127.0.0.1:{self.port}{chroot}"

    def create(self, bindings: Sequence[AclBinding]) -> list[bool]:
        fields = [str(field) for binding in bindings for field in each_of(binding)]
        return [word == "yes" for word in self.tell("create", *fields).split()]

    def ask(self, principal: str, host: str, operation: str, kind: str, name: str) -> bool:
        return self.tell("ask", principal, host, operation, kind, name) == "ALLOWED"

    def acls(self) -> set[str]:
        return set(decoded(self.tell("acls")).splitlines())

    def configure(self, *arguments: str) -> None:
        """Run Kafka's own ConfigCommand."""
        self.tell("configure", *arguments)

    def add_scram(self, user: str, *configs: str) -> None:
        self.configure(
            "--alter", "--entity-type", "users", "--entity-name", user, "--add-config", ",".join(configs)
        )

    def node(self, path: str, data: bytes | str, *readers: str) -> None:
        import base64

        raw = data if isinstance(data, bytes) else data.encode()
        self.tell("node", path, base64.b64encode(raw).decode(), *readers)

    def tree(self) -> str:
        return decoded(self.tell("tree"))

    def zxid(self) -> int:
        return int(self.tell("zxid"))

    def transactions(self, after: int) -> list[int]:
        """The kinds of the transactions that the server logged since."""
        return [int(word) for word in self.tell("transactions", str(after)).split()]


@contextmanager
def running(folder: Path, stores: Stores) -> Iterator[ZooKeeperProbe]:
    """Start one and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    jaas = folder / "jaas.conf"
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas.write_text(f'Server {{ {module} required user_{SASL_USER}="{SASL_PASSWORD}"; }};\n')
    command = [
        java.java(), "-Xmx256m", *java.FLAGS,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        f"-Djava.security.auth.login.config={jaas}",
        "-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "-Dzookeeper.sasl.client=false",
        "-Dzookeeper.authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        f"-Dzookeeper.ssl.keyStore.location={stores.broker}", "-Dzookeeper.ssl.keyStore.type=PEM",
        f"-Dzookeeper.ssl.trustStore.location={stores.authority}", "-Dzookeeper.ssl.trustStore.type=PEM",
        "-cp", f"{LEGACY_KAFKA.classpath}:{compiled(PROBE, [LEGACY_KAFKA])}", PROBE.stem,
        str(folder / "data"),
    ]  # fmt: skip
    with (folder / "probe.log").open("wb") as log:
        process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            yield ZooKeeperProbe(process)
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
