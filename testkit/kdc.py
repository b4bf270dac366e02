"""A Kerberos realm on loopback: MIT's KDC with a database, ports and a `krb5.conf` of its own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from testkit.ports import LOOPBACK, free_port
from testkit.processes import ChildError, Server
from testkit.waiting import whole_lines

REALM = "EXAMPLE.COM"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
START_TIMEOUT_S = 60.0
COMMAND_TIMEOUT_S = 60.0
TOOLS = "/usr/sbin:/sbin"
"""Where Debian puts the tools of a KDC; not everybody's PATH has it."""


def jaas(principal: str, keytab: Path) -> str:
    """Return the `sasl.jaas.config` of a server or a client with this keytab."""
    return (
        f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'
    )


def client_keys(principal: str, keytab: Path, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    """Return the keys of a client that logs in with this keytab."""
    return {
        "security.protocol": protocol,
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": jaas(principal, keytab),
    }


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

    def keytab(self, principal: str, max_life: str = "1 day") -> Path:
        """Add a principal with a random key, whose tickets last as long; return its keytab."""
        self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", "-maxlife", max_life, principal)
        return self.new_key(principal)

    def change_key(self, principal: str) -> None:
        """Give a principal another random key, which no keytab has."""
        self._run("kadmin.local", "-r", REALM, "cpw", "-randkey", principal)

    def fill_cache(self, cache: Path, principal: str, keytab: Path, *options: str) -> Path:
        """Put a ticket of this principal into a cache, as a user does; return the cache."""
        self._run("kinit", "-c", str(cache), "-k", "-t", str(keytab), *options, principal)
        return cache

    def logins(self, principal: str) -> int:
        """Return how often the KDC gave this principal a ticket of its own."""
        lines = whole_lines(self.directory / "kdc.log")
        wanted = f"{principal}@{REALM} for krbtgt/{REALM}@{REALM}"
        return sum("AS_REQ" in line and "ISSUE" in line and line.endswith(wanted) for line in lines)

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


@contextmanager
def kdc_of_this_process(directory: Path) -> Iterator[Kdc]:
    """Run a realm for the Kerberos library of this process, whose environment names its files meanwhile."""
    with pytest.MonkeyPatch.context() as patch, Kdc(directory) as running:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running
