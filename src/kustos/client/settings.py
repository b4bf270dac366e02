"""Client settings, as in Kafka's tools: addresses of nodes, and the file of `--command-config`.

kustos uses the security keys of Kafka's clients and a few timeouts. As in Kafka, it ignores unknown keys,
because producers and consumers often use the same file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

from kustos.acl import ANONYMOUS
from kustos.auth import GSSAPI, OAUTHBEARER, JaasError, parse_jaas_config, single_jaas_entry
from kustos.client.connection import ConnectionLimits
from kustos.client.errors import SettingsError
from kustos.client.foreign_keys import refuse_foreign_keys, refuse_quoted
from kustos.client.kerberos import LOGIN_MODULE as KERBEROS_MODULE
from kustos.client.kerberos import KerberosClientSettings, RenewRules
from kustos.client.login import LoginCallbackHandler, LoginHandlerSettings, login_handler_class
from kustos.client.oauth import LOGIN_MODULE as OAUTH_MODULE
from kustos.client.oauth import AssertionSettings, OAuthClientSettings, ProviderEndpoint
from kustos.client.properties import read_properties, whole_number
from kustos.client.refreshed import RefreshRules
from kustos.client.tls import ClientTls

PORT_MAX: Final = 65_535

_NOT_IN_A_HOST: Final = re.compile(r"[\s/;|:\[\]]")

MAX_BOOTSTRAP_ADDRESSES: Final = 100
"""The maximum number of addresses: each is tried in turn, so this bounds the time for an unreachable
cluster."""

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: OAUTH_MODULE,
    GSSAPI: KERBEROS_MODULE,
}
"""Mechanism -> the class that its `sasl.jaas.config` must name."""

LOGIN_GROUPS: Final = (
    ProviderEndpoint,
    OAuthClientSettings,
    RefreshRules,
    AssertionSettings,
    KerberosClientSettings,
    RenewRules,
)
"""The groups that declare keys of a client's login."""


@dataclass(frozen=True, slots=True, order=True)
class NodeAddress:
    """The address of a node."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> NodeAddress:
    """Return the address written as `host:port`; raise `SettingsError` for anything else."""
    given = text.strip()
    scheme, separator, rest = given.partition("://")
    if separator:
        raise SettingsError(
            f"`{text}` begins with `{scheme}://`, write only `{rest.partition('/')[0] or 'host:port'}`; "
            "`security.protocol` says how to connect"
        )
    if _is_ipv6(given):
        raise SettingsError(f"write the IPv6 address `{text}` in brackets, as `[::1]:9092`")
    host, colon, port = given.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif _is_ipv6(host):
        raise SettingsError(f"write the IPv6 address `{text}` in brackets, as `[::1]:9092`")
    elif not colon and given:
        raise SettingsError(f"`{text}` has no port, write it as `host:port`")
    if not host or (_NOT_IN_A_HOST.search(host) and not _is_ipv6(host.partition("%")[0])):
        raise SettingsError(
            f"`{text}` is not an address of a node, write it as `host:port`, with commas between several"
        )
    if not port.isascii() or not port.isdigit() or len(port) > 5 or not 0 < int(port) <= PORT_MAX:
        raise SettingsError(f"`{text}` has the port `{port}`, a port is a number from 1 to {PORT_MAX}")
    return NodeAddress(host, int(port))


def _is_ipv6(text: str) -> bool:
    """Return whether a text is an IPv6 address without brackets."""
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def parse_bootstrap_servers(text: str) -> tuple[NodeAddress, ...]:
    """Return the addresses of a comma-separated list in order, without duplicates."""
    addresses = tuple(dict.fromkeys(parse_address(item) for item in text.split(",") if item.strip()))
    if not addresses:
        raise SettingsError("no bootstrap server is given, write one as `host:port`")
    if len(addresses) > MAX_BOOTSTRAP_ADDRESSES:
        raise SettingsError(f"{len(addresses)} bootstrap servers are more than {MAX_BOOTSTRAP_ADDRESSES}")
    return addresses


@dataclass(frozen=True, slots=True)
class SaslClientSettings:
    """The SASL identity of a client. `token_authenticated`: name and password are the id and HMAC of a
    delegation token.

    `oauth`: the source of bearer tokens; then the name is the client id, and there is no password.
    `kerberos`: the source of tickets; then the name is the Kerberos principal, empty if only the tickets
    contain it. `login`: the class that returns the credentials; then name and password are empty.
    """

    mechanism: str
    username: str
    password: str = field(repr=False)
    token_authenticated: bool = False
    oauth: OAuthClientSettings | None = None
    kerberos: KerberosClientSettings | None = None
    login: LoginHandlerSettings | None = None

    @property
    def shown_name(self) -> str:
        """The identity, for a message."""
        if self.login is not None:
            return f"`{self.login.handler_class.__name__}`"
        return f"`{self.username}`" if self.username else "the ticket cache"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a connection."""

    bootstrap_servers: tuple[NodeAddress, ...]
    security_protocol: str = "PLAINTEXT"
    sasl: SaslClientSettings | None = None
    tls: ClientTls | None = None
    client_id: str | None = "kustos"
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    @property
    def principal(self) -> str | None:
        """The client's principal with Kafka's default principal builder; None if only the cluster knows
        it."""
        if self.sasl is not None:
            sasl = self.sasl
            others = (sasl.oauth, sasl.kerberos, sasl.login)
            is_unknown = sasl.token_authenticated or any(other is not None for other in others)
            return None if is_unknown else f"User:{sasl.username}"
        return str(ANONYMOUS) if self.tls is None or self.tls.settings.keystore is None else None

    @property
    def who(self) -> str:
        """A description of the client's identity on a cluster."""
        if self.principal is not None:
            return f"`{self.principal}`"
        if self.sasl is not None and self.sasl.oauth is not None:
            return f"whom the tokens of `{self.sasl.username}` name"
        if self.sasl is not None and self.sasl.kerberos is not None:
            return f"whom the Kerberos ticket of {self.sasl.shown_name} names"
        if self.sasl is not None and self.sasl.login is not None:
            return f"whom {self.sasl.shown_name} logs in"
        if self.sasl is not None:
            return f"the owner of the delegation token `{self.sasl.username}`"
        return "whom your certificate names"

    @classmethod
    def from_properties(cls, bootstrap_servers: str, properties: Mapping[str, str]) -> "ClientSettings":
        """Return the settings of these keys; raise `SettingsError` naming the wrong key."""
        refuse_foreign_keys(properties)
        refuse_quoted(properties)
        protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if protocol not in SECURITY_PROTOCOLS:
            raise SettingsError(
                f"`security.protocol` is `{protocol}`, use one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        return cls(
            parse_bootstrap_servers(bootstrap_servers),
            protocol,
            _sasl_settings(properties) if protocol.startswith("SASL") else None,
            ClientTls.from_properties(properties) if protocol.endswith("SSL") else None,
            properties.get("client.id", "kustos"),
            _limits(properties),
        )

    @classmethod
    def from_file(cls, bootstrap_servers: str, path: Path | None) -> "ClientSettings":
        """Return the settings of a properties file; without one, the defaults of a plain client."""
        return cls.from_properties(bootstrap_servers, read_properties(path) if path else {})


def _limits(properties: Mapping[str, str]) -> ConnectionLimits:
    keys = {
        "connect_timeout_ms": "socket.connection.setup.timeout.ms",
        "request_timeout_ms": "request.timeout.ms",
    }
    found = {name: whole_number(properties, key, "milliseconds") for name, key in keys.items()}
    return ConnectionLimits(**{name: number for name, number in found.items() if number is not None})


def _sasl_settings(properties: Mapping[str, str]) -> SaslClientSettings:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip()
    if mechanism not in LOGIN_MODULES:
        raise SettingsError(
            f"`sasl.mechanism` is `{mechanism}`, kustos logs in with {', '.join(LOGIN_MODULES)}"
        )
    handler_class = login_handler_class(properties)
    text = properties.get("sasl.jaas.config")
    if handler_class is not None:
        return _of_handler(handler_class, mechanism, properties, text)
    if not text:
        raise SettingsError(
            "`sasl.jaas.config` is missing; it holds the user name and the password, or says where a token "
            f"or ticket comes from: `{LOGIN_MODULES[mechanism]} required …;`"
        )
    try:
        entries = parse_jaas_config(text)
    except JaasError as error:
        raise SettingsError(f"`sasl.jaas.config`: {error}") from None
    if len(entries) != 1 or entries[0].login_module != LOGIN_MODULES[mechanism]:
        raise SettingsError(
            f"`sasl.jaas.config` must hold one entry of `{LOGIN_MODULES[mechanism]}` for `{mechanism}`"
        )
    options = entries[0].options
    if mechanism == OAUTHBEARER:
        oauth = OAuthClientSettings.from_properties(properties, options)
        return SaslClientSettings(mechanism, oauth.client_id or oauth.endpoint.url, "", oauth=oauth)
    if mechanism == GSSAPI:
        kerberos = KerberosClientSettings.from_properties(properties, options)
        return SaslClientSettings(mechanism, kerberos.principal or "", "", kerberos=kerberos)
    for name in ("username", "password"):
        if not options.get(name):
            raise SettingsError(f"`sasl.jaas.config` gives no `{name}`")
    return SaslClientSettings(
        mechanism,
        options["username"],
        options["password"],
        options.get("tokenauth", "").lower() == "true",
    )


SECRET_KEYS: Final = frozenset(
    {
        "sasl.jaas.config",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.truststore.password",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    }
)
"""The keys that a custom class does not get; it gets the options of the login module."""


def _of_handler(
    handler_class: type[LoginCallbackHandler], mechanism: str, properties: Mapping[str, str], text: str | None
) -> SaslClientSettings:
    """Return the identity for a custom login class; its login module may have any name."""
    options: Mapping[str, str] = {}
    if text:
        try:
            options = single_jaas_entry(text).options
        except JaasError as error:
            raise SettingsError(f"`sasl.jaas.config`: {error}") from None
    configs = {key: value for key, value in properties.items() if key not in SECRET_KEYS}
    login = LoginHandlerSettings(handler_class, mechanism, tuple(configs.items()), tuple(options.items()))
    return SaslClientSettings(mechanism, "", "", login=login)
