"""The settings of logins with delegation tokens, and of logins with unknown user names."""

from typing import Any, Final

from kustos.auth import (
    ALLOWED_LOGIN_MODULES_CONFIG,
    DISALLOWED_LOGIN_MODULES,
    DISALLOWED_LOGIN_MODULES_CONFIG,
)
from kustos.client import SettingsError
from kustos.server.settings.kinds import ANY_TEXT, INT64_MAX, TEXT, Kind, Setting, whole_number

SSL_ENGINE_FACTORIES: Final = ("", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory")
"""What stands for TLS as the other keys describe it."""


def _read_login_modules(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _read_engine_factory(text: str) -> str:
    if text not in SSL_ENGINE_FACTORIES:
        raise SettingsError(
            "TLS here is that of OpenSSL, and no factory of Java can make it; leave the key out, and say by "
            "the other `ssl.` keys what is needed"
        )
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
    "ssl.engine.factory.class",
    Kind("string", f"`{SSL_ENGINE_FACTORIES[1]}`, or nothing", _read_engine_factory),
    "",
    "Listeners",
    "In Kafka a class that makes TLS engines. There is none here: any but Kafka's own is refused.",
    per_listener=True,
)

DECOY_SECRET: Final[Setting[str]] = Setting(
    "kustos.sasl.scram.decoy.secret",
    TEXT,
    None,
    "SASL",
    "The secret from which kustos derives salt and iterations for unknown SCRAM users, 32 characters at "
    "least. Nodes that serve the same users must have the same secret: else a client that tries a name on "
    "two nodes learns whether the user exists. Without it each metadata directory has its own.",
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
    DECOY_SECRET,
    DELEGATION_TOKEN_SECRET_KEY,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
)
