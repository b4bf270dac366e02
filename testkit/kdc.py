"""A Kerberos realm on loopback: MIT's KDC with a database, ports and a `krb5.conf` of its own."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from testkit.ports import LOOPBACK, free_port
from testkit.processes import ChildError, Server

REALM = "EXAMPLE.COM"
START_TIMEOUT_S = 60.0
COMMAND_TIMEOUT_S = 60.0
TOOLS = "/usr/sbin:/sbin"
"""Where Debian puts the tools of a KDC; not everybody's PATH has it."""


class Kdc:
    """A realm; as a context manager its KDC runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.config = directory / "krb5.conf"
        self._server: Server | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What programs need to find the realm: MIT's library, and Java."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "JAVA_TOOL_OPTIONS": f"-Djava.security.krb5.conf={self.config}",
        }

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        address = f"{LOOPBACK}:{self.port}"
        self.config.write_text(
            f"[libdefaults]\n  default_realm = {REALM}\n"
            "  dns_lookup_kdc = false\n  dns_lookup_realm = false\n"
            "  dns_canonicalize_hostname = false\n  rdns = false\n  udp_preference_limit = 1\n"
            f"[realms]\n  {REALM} = {{\n    kdc = {address}\n  }}\n"
        )
        (self.directory / "kdc.conf").write_text(
            f"[kdcdefaults]\n  kdc_listen = {address}\n  kdc_tcp_listen = {address}\n"
            f"[realms]\n  {REALM} = {{\n    database_name = {self.directory}/principal\n"
            f"    key_stash_file = {self.directory}/stash\n    acl_file = {self.directory}/acl\n  }}\n"
            f"[logging]\n  kdc = FILE:{self.directory}/kdc.log\n"
        )
        self._run("kdb5_util", "create", "-s", "-P", "of-a-test", "-r", REALM)
        command = ["env", *self._environment(), "krb5kdc", "-n"]
        self._server = Server("krb5kdc", command, self.directory / "krb5kdc.log")
        self._server.wait_ready(self._listens, timeout_s=START_TIMEOUT_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.terminate(timeout_s=COMMAND_TIMEOUT_S)

    def keytab(self, principal: str) -> Path:
        """Add a principal with a random key; return its keytab."""
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        return self.new_key(principal)

    def new_key(self, principal: str) -> Path:
        """Give a principal another random key, and add it to its keytab; return that."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def _environment(self) -> list[str]:
        path = f"PATH={os.environ.get('PATH', '')}:{TOOLS}"
        return [path, *(f"{name}={value}" for name, value in self.environment.items())]

    def _listens(self) -> bool:
        log = self.directory / "kdc.log"
        return log.exists() and "commencing operation" in log.read_text()

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            ["env", *self._environment(), *command],
            capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise ChildError(f"`{command[0]}` ended with {done.returncode}\n{done.stdout}{done.stderr}")
