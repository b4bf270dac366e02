"""The settings of logins by bearer token (OAUTHBEARER), by Kafka's names."""

from typing import Any, Final

from kustos.client.oauth import (
    ALLOWED_URLS_KEY,
    DEFAULT_REFRESH_MS,
    DEFAULT_RETRY_BACKOFF_MAX_MS,
    DEFAULT_RETRY_BACKOFF_MS,
)
from kustos.server.settings.kinds import BOOLEAN, INT32_MAX, TEXT, Kind, Setting, list_of, whole_number

SIGNED_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
UNSECURED_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
_MILLISECONDS: Final[Kind[int]] = whole_number(1, INT32_MAX, "milliseconds")


def _setting(name: str, kind: Kind[Any], default: Any, doc: str) -> Setting[Any]:
    """A setting that each listener may have for itself."""
    return Setting(name, kind, default, "Bearer tokens", doc, per_listener=True, per_mechanism=True)


JWKS_URL: Final[Setting[str]] = _setting(
    "sasl.oauthbearer.jwks.endpoint.url",
    TEXT,
    None,
    "Where the provider's keys are: a JSON Web Key Set at an `https`, `http` or `file` URL. It must stand in "
    f"`{ALLOWED_URLS_KEY}`, too.",
)
JWKS_REFRESH_MS: Final[Setting[int]] = _setting(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    _MILLISECONDS,
    DEFAULT_REFRESH_MS,
    "How often kustos fetches the keys; it checks a file every 10 seconds at least. A token with an "
    "unknown key id brings the keys sooner.",
)
JWKS_RETRY_BACKOFF_MS: Final[Setting[int]] = _setting(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    _MILLISECONDS,
    DEFAULT_RETRY_BACKOFF_MS,
    "The first pause after a failure to get the keys; each further one is twice as long.",
)
JWKS_RETRY_BACKOFF_MAX_MS: Final[Setting[int]] = _setting(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    _MILLISECONDS,
    DEFAULT_RETRY_BACKOFF_MAX_MS,
    "The longest pause after a failure, and the shortest one between two refreshes for unknown key ids.",
)
EXPECTED_AUDIENCE: Final[Setting[tuple[str, ...]]] = _setting(
    "sasl.oauthbearer.expected.audience",
    list_of(),
    (),
    "The claim `aud` must have one of these. It must be set, as from Kafka 4.4 on, unless "
    "`sasl.oauthbearer.allow.unverified.audience` is true.",
)
EXPECTED_ISSUER: Final[Setting[str]] = _setting(
    "sasl.oauthbearer.expected.issuer",
    TEXT,
    None,
    "The claim `iss` must be this. It must be set, as from Kafka 4.4 on, unless "
    "`sasl.oauthbearer.allow.unverified.issuer` is true.",
)
ALLOW_UNVERIFIED_AUDIENCE: Final[Setting[bool]] = _setting(
    "sasl.oauthbearer.allow.unverified.audience",
    BOOLEAN,
    False,
    "Whether tokens for any audience may log in, where no audience is expected.",
)
ALLOW_UNVERIFIED_ISSUER: Final[Setting[bool]] = _setting(
    "sasl.oauthbearer.allow.unverified.issuer",
    BOOLEAN,
    False,
    "Whether tokens that name any issuer may log in, where no issuer is expected.",
)
CLOCK_SKEW_SECONDS: Final[Setting[int]] = _setting(
    "sasl.oauthbearer.clock.skew.seconds",
    whole_number(0, INT32_MAX, "seconds"),
    30,
    "How far the clocks of provider and node may differ, for the claims `iat` and `nbf`. A token whose `exp` "
    "has passed can no longer log in.",
)
SCOPE_CLAIM_NAME: Final[Setting[str]] = _setting(
    "sasl.oauthbearer.scope.claim.name", TEXT, "scope", "The claim with the scopes."
)
SUB_CLAIM_NAME: Final[Setting[str]] = _setting(
    "sasl.oauthbearer.sub.claim.name", TEXT, "sub", "The claim that names the principal."
)
ALLOWED_URLS: Final[Setting[tuple[str, ...]]] = Setting(
    ALLOWED_URLS_KEY,
    list_of(),
    (),
    "Bearer tokens",
    "The URLs that settings of bearer tokens may have, as written there, with commas between them. In Kafka "
    "it is a property of the JVM.",
)


OAUTH_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    JWKS_URL,
    JWKS_REFRESH_MS,
    JWKS_RETRY_BACKOFF_MS,
    JWKS_RETRY_BACKOFF_MAX_MS,
    EXPECTED_AUDIENCE,
    EXPECTED_ISSUER,
    ALLOW_UNVERIFIED_AUDIENCE,
    ALLOW_UNVERIFIED_ISSUER,
    CLOCK_SKEW_SECONDS,
    SCOPE_CLAIM_NAME,
    SUB_CLAIM_NAME,
    ALLOWED_URLS,
)
