"""The settings of one listener for bearer tokens."""

from dataclasses import dataclass
from typing import Final

from kustos.auth import OAUTHBEARER, JaasEntry, JaasError
from kustos.auth.jwt import GROUPS_CLAIM_PATH, TokenClaimRules, UnsecuredTokenRules, load_signatures
from kustos.client import ClientTls, SettingsError
from kustos.client.oauth import (
    ALLOWED_FILES_KEY,
    ALLOWED_URLS_KEY,
    JwksSettings,
    ProviderEndpoint,
    checked_url,
)
from kustos.extras import ExtraMissingError
from kustos.server.settings.plugins import SERVER_CALLBACK_HANDLER_CLASS, SIGNED_HANDLER, UNSECURED_HANDLER
from kustos.server.settings.properties import GivenSettings, listener_key
from kustos.settings import BOOLEAN, TEXT, Scope, Setting, list_of

JWKS_URL: Final[Setting[str]] = Setting(
    "sasl.oauthbearer.jwks.endpoint.url",
    TEXT,
    None,
    "Bearer tokens",
    "Where the provider's keys are: a JSON Web Key Set at an `https`, `http` or `file` URL. It must stand in "
    f"`{ALLOWED_URLS_KEY}`, too.",
    scope=Scope.MECHANISM,
    since="0.2.0",
)
ALLOW_UNVERIFIED_AUDIENCE: Final[Setting[bool]] = Setting(
    "sasl.oauthbearer.allow.unverified.audience",
    BOOLEAN,
    False,
    "Bearer tokens",
    "Whether tokens for any audience may log in, where no audience is expected.",
    scope=Scope.MECHANISM,
    since="0.2.0",
)
ALLOW_UNVERIFIED_ISSUER: Final[Setting[bool]] = Setting(
    "sasl.oauthbearer.allow.unverified.issuer",
    BOOLEAN,
    False,
    "Bearer tokens",
    "Whether tokens that name any issuer may log in, where no issuer is expected.",
    scope=Scope.MECHANISM,
    since="0.2.0",
)
ALLOWED_URLS: Final[Setting[tuple[str, ...]]] = Setting(
    ALLOWED_URLS_KEY,
    list_of(),
    (),
    "Bearer tokens",
    "The URLs that settings of bearer tokens may have, as written there, with commas between them. In Kafka "
    "it is a property of the JVM.",
    since="0.2.0",
)
ALLOWED_FILES: Final[Setting[tuple[str, ...]]] = Setting(
    ALLOWED_FILES_KEY,
    list_of(),
    (),
    "Bearer tokens",
    "The files that `sasl.oauthbearer.assertion.*` may name, as absolute paths, with commas between them. In "
    "Kafka it is a property of the JVM.",
    since="0.3.0",
)


@dataclass(frozen=True, slots=True)
class SignedTokenSettings:
    """Tokens must be signed with a key of this set, and their claims must match these rules."""

    jwks: JwksSettings
    rules: TokenClaimRules


@dataclass(frozen=True, slots=True)
class HandlerTokenSettings:
    """The listener's callback handler validates tokens."""


OAuthListenerSettings = SignedTokenSettings | UnsecuredTokenRules | HandlerTokenSettings


def oauth_settings(
    given: GivenSettings, listener: str, jaas: JaasEntry | None, *, has_own_handler: bool = False
) -> OAuthListenerSettings:
    """Return the token settings of a listener with OAUTHBEARER; raise `SettingsError`, and warn about unsafe
    ones.

    `jaas`: its OAuthBearerLoginModule, None if none is given. `has_own_handler`: a custom class validates
    them.
    """
    groups_claim_path = given.get(GROUPS_CLAIM_PATH, listener, OAUTHBEARER)
    if has_own_handler:
        if groups_claim_path is not None:
            raise SettingsError(
                f"listener `{listener}`: its callback handler returns the groups of clients, leave out "
                f"`{GROUPS_CLAIM_PATH.name}`"
            )
        return HandlerTokenSettings()
    key, handler = _own(given, SERVER_CALLBACK_HANDLER_CLASS, listener)
    if handler == UNSECURED_HANDLER:
        given.warnings.append(
            f"listener `{listener}` takes tokens without a signature: every client may log in as any user. "
            f"Set `{key}={SIGNED_HANDLER}`"
        )
        try:
            options = {} if jaas is None else jaas.options
            return UnsecuredTokenRules.from_jaas_options(options, groups_claim_path)
        except JaasError as error:
            raise SettingsError(f"the login module of listener `{listener}`: {error}") from None
    if handler != SIGNED_HANDLER:
        raise SettingsError(
            f"listener `{listener}` offers `{OAUTHBEARER}`, but `{key}` is "
            f"{'not set' if handler is None else f'`{handler}`'}; set it to `{SIGNED_HANDLER}`, or for "
            f"tests to `{UNSECURED_HANDLER}`"
        )
    try:
        load_signatures()
    except ExtraMissingError as error:
        raise SettingsError(f"listener `{listener}`: {error}") from None
    return SignedTokenSettings(_jwks(given, listener, jaas), _rules(given, listener))


def _jwks(given: GivenSettings, listener: str, jaas: JaasEntry | None) -> JwksSettings:
    key, text = _own(given, JWKS_URL, listener)
    if text is None:
        raise SettingsError(
            f"listener `{listener}` offers `{OAUTHBEARER}`, but `{key}` is not set; set it to the provider's "
            "key set"
        )
    allowed: tuple[str, ...] = given.require(ALLOWED_URLS)
    url = checked_url(text, key, frozenset(allowed))
    if url.lower().startswith("http:"):
        given.warnings.append(
            f"`{key}` is not encrypted: an attacker who can answer as the provider can log in as any user"
        )
    return JwksSettings(
        ProviderEndpoint(url), tls=_tls(listener, jaas), **given.fields(JwksSettings, listener, OAUTHBEARER)
    )


def _tls(listener: str, jaas: JaasEntry | None) -> ClientTls | None:
    """Return the `ssl.*` options of the login module, as in Kafka; None if it has none."""
    options = {} if jaas is None else {k: v for k, v in jaas.options.items() if k.startswith("ssl.")}
    if not options:
        return None
    try:
        settings = ClientTls.from_properties(options)
        # report unusable files here, before the node starts
        settings.context()
    except SettingsError as error:
        raise SettingsError(f"the login module of listener `{listener}`: {error}") from None
    return settings


def _rules(given: GivenSettings, listener: str) -> TokenClaimRules:
    rules = TokenClaimRules(**given.fields(TokenClaimRules, listener, OAUTHBEARER))
    for claim, is_set, opt_out in (
        ("audience", bool(rules.expected_audiences), ALLOW_UNVERIFIED_AUDIENCE),
        ("issuer", rules.expected_issuer is not None, ALLOW_UNVERIFIED_ISSUER),
    ):
        if is_set:
            continue
        key = listener_key(f"sasl.oauthbearer.expected.{claim}", listener, OAUTHBEARER)
        if not given.require(opt_out, listener, OAUTHBEARER):
            raise SettingsError(
                f"`{key}` is not set, so tokens for others would do; set it, or set `{opt_out.name}=true` if "
                "that is meant"
            )
        given.warnings.append(f"`{key}` is not set: tokens that the provider gave for others can log in")
    return rules


def _own(given: GivenSettings, setting: Setting[str], listener: str) -> tuple[str, str | None]:
    """Return the most specific key of a setting, and the value that is in force."""
    return listener_key(setting.name, listener, OAUTHBEARER), given.get(setting, listener, OAUTHBEARER)
