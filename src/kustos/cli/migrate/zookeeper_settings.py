"""How to reach a ZooKeeper: the connect string, and the properties of `--source-config`.

Keys are those of Kafka's `server.properties` where it has them. Secrets come from this file only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from kustos.cli.failures import usage_error

DIGEST_LOGIN_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"

_ADDRESS: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
_SESSION_TIMEOUT_MS: Final = 18_000
"""Kafka's default of `zookeeper.session.timeout.ms`."""

_CONNECTION_TIMEOUT_MS: Final = 10_000
"""Shorter than Kafka's default: a person waits, and names are often mistyped."""


@dataclass(frozen=True, slots=True)
class ZookeeperSettings:
    """Everything a connection needs; `hosts` has no chroot, `chroot` starts with a slash or is empty."""

    hosts: str
    chroot: str = ""
    session_timeout_ms: int = _SESSION_TIMEOUT_MS
    connection_timeout_ms: int = _CONNECTION_TIMEOUT_MS
    digest: str | None = field(default=None, repr=False)
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    truststore: Path | None = None
    keystore: Path | None = None
    keystore_password: str | None = field(default=None, repr=False)
    is_tls: bool = False
    checks_host_name: bool = True

    @property
    def name(self) -> str:
        """The name for messages."""
        return f"ZooKeeper at {self.hosts}{self.chroot}"

    @classmethod
    def of(cls, connect: str, file: Path | None) -> Self:
        """Return the settings; raise a usage error that names the problem, never a secret."""
        from kustos.client import SettingsError, parse_address, read_properties

        hosts, slash, path = connect.partition("/")
        try:
            for host in (connect,) if "://" in connect else hosts.split(","):
                # here an address may have no port
                if ":" in host.rpartition("]")[2]:
                    parse_address(host)
        except SettingsError as error:
            raise usage_error(str(error)) from None
        if not hosts or not all(_ADDRESS.fullmatch(host) for host in hosts.split(",")):
            raise usage_error(
                f"`{connect}` is not the address of a ZooKeeper, use `zookeeper://host:port[,host:port][/chroot]`"
            )
        if slash and (path.startswith("/") or path.endswith("/") or "//" in path):
            raise usage_error(f"`/{path}` is not a chroot, write it as `/kafka`")
        return cls(
            hosts, f"/{path}" if path else "", **_optional_fields(read_properties(file) if file else {})
        )


def _optional_fields(properties: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in ("session_timeout_ms", "connection_timeout_ms"):
        key = "zookeeper." + name.replace("_", ".")
        if text := properties.get(key, "").strip():
            if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 2**31:
                raise usage_error(f"`{key}` is `{text}`, use a whole number of milliseconds above 0")
            fields[name] = int(text)
    if digest := properties.get("kustos.zookeeper.digest"):
        if ":" not in digest:
            raise usage_error("`kustos.zookeeper.digest` is not written as `user:password`")
        fields["digest"] = digest
    if jaas := properties.get("kustos.zookeeper.sasl.jaas.config"):
        fields["sasl_username"], fields["sasl_password"] = _sasl(jaas)
    return fields | _tls(properties)


def _sasl(text: str) -> tuple[str, str]:
    from kustos.auth import JaasError, parse_jaas_config

    key = "kustos.zookeeper.sasl.jaas.config"
    try:
        entries = parse_jaas_config(text)
    except JaasError as error:
        raise usage_error(f"`{key}`: {error}") from None
    if len(entries) != 1 or entries[0].login_module != DIGEST_LOGIN_MODULE:
        raise usage_error(f"`{key}` must hold one entry of `{DIGEST_LOGIN_MODULE}`")
    options = entries[0].options
    if not options.get("username") or not options.get("password"):
        raise usage_error(f"`{key}` lacks `username` or `password`")
    return options["username"], options["password"]


def _tls(properties: Mapping[str, str]) -> dict[str, Any]:
    enabled = properties.get("zookeeper.ssl.client.enable", "false").strip().lower()
    if enabled not in {"true", "false"}:
        raise usage_error(f"`zookeeper.ssl.client.enable` is `{enabled}`, use `true` or `false`")
    if enabled == "false":
        return {}
    fields: dict[str, Any] = {"is_tls": True}
    for name in ("truststore", "keystore"):
        location = properties.get(f"zookeeper.ssl.{name}.location", "").strip()
        if not location:
            continue
        kind = properties.get(f"zookeeper.ssl.{name}.type", "").strip()
        if kind != "PEM":
            raise usage_error(f"`zookeeper.ssl.{name}.type` is `{kind}`, only `PEM` is read here")
        fields[name] = Path(location)
    if "truststore" not in fields:
        raise usage_error(
            "`zookeeper.ssl.truststore.location` is missing, a server must be known by its certificate"
        )
    algorithm = properties.get("zookeeper.ssl.endpoint.identification.algorithm", "HTTPS").strip()
    fields["checks_host_name"] = bool(algorithm)
    fields["keystore_password"] = properties.get("zookeeper.ssl.keystore.password") or None
    return fields
