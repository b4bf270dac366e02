"""The settings of logins: limits on unauthenticated clients, delegation tokens, unknown user names."""

from typing import Any, Final

from kustos.auth import (
    ALLOWED_LOGIN_MODULES_CONFIG,
    DISALLOWED_LOGIN_MODULES,
    DISALLOWED_LOGIN_MODULES_CONFIG,
)
from kustos.client import ENGINE_FACTORIES, ENGINE_FACTORY_KEY, NO_ENGINES, SettingsError
from kustos.server.settings.kinds import (
    ANY_TEXT,
    INT32_MAX,
    INT64_MAX,
    NETWORKS,
    TEXT,
    Kind,
    Setting,
    TakesEffect,
    whole_number,
)


def _read_login_modules(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _read_engine_factory(text: str) -> str:
    if text not in ENGINE_FACTORIES:
        raise SettingsError(NO_ENGINES)
    return text


DISALLOWED_MODULES: Final = Setting(
    DISALLOWED_LOGIN_MODULES_CONFIG,
    Kind("list", "classes, with commas between them", _read_login_modules),
    tuple(sorted(DISALLOWED_LOGIN_MODULES)),
    "SASL",
    "Login modules that no `sasl.jaas.config` may name. In Kafka it is a property of the Java process.",
)
ALLOWED_MODULES: Final[Setting[tuple[str, ...]]] = Setting(
    ALLOWED_LOGIN_MODULES_CONFIG,
    Kind("list", "classes, with commas between them", _read_login_modules),
    None,
    "SASL",
    f"The only login modules that a `sasl.jaas.config` may name; `{DISALLOWED_LOGIN_MODULES_CONFIG}` then "
    "has no effect. In Kafka it is a property of the Java process.",
)
SSL_ENGINE_FACTORY_CLASS: Final = Setting(
    ENGINE_FACTORY_KEY,
    Kind("string", f"`{ENGINE_FACTORIES[1]}`, or nothing", _read_engine_factory),
    "",
    "Listeners",
    "In Kafka a class that makes TLS engines. There is none here: any but Kafka's own is refused.",
    per_listener=True,
)

LOGIN_TIMEOUT_MS: Final = Setting(
    "kustos.login.timeout.ms",
    whole_number(100, INT32_MAX, "milliseconds"),
    30_000,
    "Limits",
    "How long a client may take from its connection until it has authenticated, the TLS handshake included. "
    "Must be above `connection.failed.authentication.delay.ms`.",
    per_listener=True,
)
MAX_UNAUTHENTICATED_CONNECTIONS: Final = Setting(
    "kustos.max.unauthenticated.connections",
    whole_number(1, INT32_MAX),
    10_000,
    "Limits",
    "How many connections of all listeners together may wait for their authentication; each worker has an "
    "equal part. One more ends the oldest of the address that has most of them. A listener may have a lower "
    "limit of its own.",
    per_listener=True,
)
MAX_UNAUTHENTICATED_CONNECTIONS_PER_IP: Final = Setting(
    "kustos.max.unauthenticated.connections.per.ip",
    whole_number(1, INT32_MAX),
    2_000,
    "Limits",
    "How many of them may come from one address, or from one /64 of IPv6. One more ends its oldest. Where "
    "thousands of clients share an address and connect at once, allow as many.",
    per_listener=True,
)
FAILED_LOGINS_BURST: Final = Setting(
    "kustos.failed.logins.per.ip.burst",
    whole_number(0, INT32_MAX),
    100,
    "Limits",
    "How many logins from one address, or from one /64 of IPv6, may fail at once; 0: any number. Then "
    "kustos closes new connections from there on arrival, until time has given back a try.",
    takes_effect=TakesEffect.RELOAD,
)
FAILED_LOGINS_PER_MINUTE: Final = Setting(
    "kustos.failed.logins.per.ip.per.minute",
    whole_number(1, 1_000_000),
    30,
    "Limits",
    "How many tries an address gets back each minute. A client with a wrong password that waits 10 seconds "
    "between its tries needs 6.",
    takes_effect=TakesEffect.RELOAD,
)
FAILED_LOGINS_UNLIMITED_ADDRESSES: Final = Setting(
    "kustos.failed.logins.unlimited.addresses",
    NETWORKS,
    (),
    "Limits",
    "Addresses or networks whose failed logins are not limited: those that many clients share, such as a "
    "balancer that does not send the PROXY protocol.",
    takes_effect=TakesEffect.RELOAD,
)

DECOY_SECRET: Final[Setting[str]] = Setting(
    "kustos.sasl.scram.decoy.secret",
    TEXT,
    None,
    "SASL",
    "The secret from which kustos derives salt and iterations for unknown SCRAM users, 32 characters at "
    "least. Nodes that serve the same users must have the same secret: otherwise a client that tries a name "
    "on two nodes learns whether the user exists. Without it each metadata directory has its own.",
    secret=True,
)

DELEGATION_TOKEN_SECRET_KEY: Final[Setting[str]] = Setting(
    "delegation.token.secret.key",
    ANY_TEXT,
    None,
    "Delegation tokens",
    "The key for the HMACs of delegation tokens. Without it, or if it is empty, tokens are disabled.",
    secret=True,
)
DELEGATION_TOKEN_MAX_LIFETIME_MS: Final = Setting(
    "delegation.token.max.lifetime.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    604_800_000,
    "Delegation tokens",
    "The longest lifetime of a token, however often it is renewed.",
)
DELEGATION_TOKEN_EXPIRY_TIME_MS: Final = Setting(
    "delegation.token.expiry.time.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    86_400_000,
    "Delegation tokens",
    "How long a token lasts until it must be renewed.",
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS: Final = Setting(
    "delegation.token.expiry.check.interval.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    3_600_000,
    "Delegation tokens",
    "How often kustos removes expired tokens. It refuses them as soon as they expire.",
)

LOGIN_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    DISALLOWED_MODULES,
    ALLOWED_MODULES,
    SSL_ENGINE_FACTORY_CLASS,
    LOGIN_TIMEOUT_MS,
    MAX_UNAUTHENTICATED_CONNECTIONS,
    MAX_UNAUTHENTICATED_CONNECTIONS_PER_IP,
    FAILED_LOGINS_BURST,
    FAILED_LOGINS_PER_MINUTE,
    FAILED_LOGINS_UNLIMITED_ADDRESSES,
    DECOY_SECRET,
    DELEGATION_TOKEN_SECRET_KEY,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
)
