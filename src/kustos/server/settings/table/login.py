"""The settings of logins with delegation tokens, and of logins with unknown user names."""

from typing import Any, Final

from kustos.server.settings.kinds import ANY_TEXT, INT64_MAX, TEXT, Setting, whole_number

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
    DECOY_SECRET,
    DELEGATION_TOKEN_SECRET_KEY,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
)
