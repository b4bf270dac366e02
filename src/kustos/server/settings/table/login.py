"""The settings of logins by delegation token, and of logins under names that nobody has."""

from typing import Any, Final

from kustos.server.settings.kinds import ANY_TEXT, INT64_MAX, TEXT, Setting, whole_number

DECOY_SECRET: Final[Setting[str]] = Setting(
    "kustos.sasl.scram.decoy.secret",
    TEXT,
    None,
    "SASL",
    "What the salts and iterations that unknown SCRAM users are shown follow from, 32 characters at least. "
    "Nodes that serve the same users must have the same one, else who asks two of them learns who exists. "
    "Without it each metadata directory has its own.",
    secret=True,
)

DELEGATION_TOKEN_SECRET_KEY: Final[Setting[str]] = Setting(
    "delegation.token.secret.key",
    ANY_TEXT,
    None,
    "Delegation tokens",
    "What the HMACs of delegation tokens are made with. Without it, or with an empty one, there are none.",
    secret=True,
)
DELEGATION_TOKEN_MAX_LIFETIME_MS: Final = Setting(
    "delegation.token.max.lifetime.ms",
    whole_number(1, INT64_MAX, "milliseconds"),
    604_800_000,
    "Delegation tokens",
    "How long a token can last at most, however often it is renewed.",
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
    "How often expired tokens are looked for and removed. Here they are refused before that already.",
)

LOGIN_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    DECOY_SECRET,
    DELEGATION_TOKEN_SECRET_KEY,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
)
