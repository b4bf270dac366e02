"""How one listener judges bearer tokens, read from its settings."""

from dataclasses import dataclass
from typing import Final

from kustos.auth import JaasEntry, JaasError
from kustos.auth.jwt import TokenClaimRules, UnsecuredTokenRules, load_signatures
from kustos.client import ClientTls, SettingsError
from kustos.client.oauth import JwksSettings, ProviderEndpoint, checked_url
from kustos.extras import ExtraMissingError
from kustos.server.settings.kinds import Setting
from kustos.server.settings.properties import GivenSettings, keys_of
from kustos.server.settings.table import oauth as table
from kustos.server.settings.table.callbacks import SERVER_CALLBACK_HANDLER_CLASS

OAUTHBEARER: Final = "OAUTHBEARER"
LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@dataclass(frozen=True, slots=True)
class SignedTokenSettings:
    """Tokens are signed by a key of this set, and their claims obey these rules."""

    jwks: JwksSettings
    rules: TokenClaimRules


@dataclass(frozen=True, slots=True)
class HandlerTokenSettings:
    """Tokens are judged by the listener's callback handler."""


OAuthListenerSettings = SignedTokenSettings | UnsecuredTokenRules | HandlerTokenSettings


def oauth_settings(
    given: GivenSettings, listener: str, jaas: JaasEntry | None, *, has_own_handler: bool = False
) -> OAuthListenerSettings:
    """Return how a listener with OAUTHBEARER judges tokens; raise `SettingsError`, warn of what is unsafe.

    `jaas`: its OAuthBearerLoginModule, None if none is given. `has_own_handler`: a class of the operator's
    judges them.
    """
    if has_own_handler:
        return HandlerTokenSettings()
    key, handler = _own(given, SERVER_CALLBACK_HANDLER_CLASS, listener)
    if handler == table.UNSECURED_HANDLER:
        given.warnings.append(
            f"listener `{listener}` takes tokens without a signature: every client may log in as anybody. "
            f"Set `{key}={table.SIGNED_HANDLER}`"
        )
        try:
            return UnsecuredTokenRules.from_jaas_options({} if jaas is None else jaas.options)
        except JaasError as error:
            raise SettingsError(f"the login module of listener `{listener}`: {error}") from None
    if handler != table.SIGNED_HANDLER:
        raise SettingsError(
            f"listener `{listener}` offers `{OAUTHBEARER}`, but `{key}` is "
            f"{'not set' if handler is None else f'`{handler}`'}; set it to `{table.SIGNED_HANDLER}`, or for "
            f"tests to `{table.UNSECURED_HANDLER}`"
        )
    try:
        load_signatures()
    except ExtraMissingError as error:
        raise SettingsError(f"listener `{listener}`: {error}") from None
    return SignedTokenSettings(_jwks(given, listener, jaas), _rules(given, listener))


def _jwks(given: GivenSettings, listener: str, jaas: JaasEntry | None) -> JwksSettings:
    key, text = _own(given, table.JWKS_URL, listener)
    if text is None:
        raise SettingsError(
            f"listener `{listener}` offers `{OAUTHBEARER}`, but `{key}` is not set; set it to the provider's "
            "key set"
        )
    allowed: tuple[str, ...] = given.require(table.ALLOWED_URLS)
    url = checked_url(text, key, frozenset(allowed))
    if url.lower().startswith("http:"):
        given.warnings.append(
            f"`{key}` is not encrypted: whoever can answer in the provider's place can log in as anybody"
        )
    return JwksSettings(
        ProviderEndpoint(url),
        given.require(table.JWKS_REFRESH_MS, listener, OAUTHBEARER),
        given.require(table.JWKS_RETRY_BACKOFF_MS, listener, OAUTHBEARER),
        given.require(table.JWKS_RETRY_BACKOFF_MAX_MS, listener, OAUTHBEARER),
        _tls(listener, jaas),
    )


def _tls(listener: str, jaas: JaasEntry | None) -> ClientTls | None:
    """Return the `ssl.*` options of the login module, as in Kafka; None if it has none."""
    options = {} if jaas is None else {k: v for k, v in jaas.options.items() if k.startswith("ssl.")}
    if not options:
        return None
    try:
        settings = ClientTls.from_properties(options)
        # unusable files are noticed here, before the node starts
        settings.context()
    except SettingsError as error:
        raise SettingsError(f"the login module of listener `{listener}`: {error}") from None
    return settings


def _rules(given: GivenSettings, listener: str) -> TokenClaimRules:
    audiences = given.require(table.EXPECTED_AUDIENCE, listener, OAUTHBEARER)
    issuer = given.get(table.EXPECTED_ISSUER, listener, OAUTHBEARER)
    for setting, is_set, opt_out in (
        (table.EXPECTED_AUDIENCE, bool(audiences), table.ALLOW_UNVERIFIED_AUDIENCE),
        (table.EXPECTED_ISSUER, issuer is not None, table.ALLOW_UNVERIFIED_ISSUER),
    ):
        if is_set:
            continue
        key = next(iter(keys_of(setting, listener, OAUTHBEARER)))
        if not given.require(opt_out, listener, OAUTHBEARER):
            raise SettingsError(
                f"`{key}` is not set, so tokens for others would do; set it, or set `{opt_out.name}=true` if "
                "that is meant"
            )
        given.warnings.append(f"`{key}` is not set: tokens that the provider gave for others can log in")
    return TokenClaimRules(
        frozenset(audiences),
        issuer,
        given.require(table.CLOCK_SKEW_SECONDS, listener, OAUTHBEARER),
        given.require(table.SCOPE_CLAIM_NAME, listener, OAUTHBEARER),
        given.require(table.SUB_CLAIM_NAME, listener, OAUTHBEARER),
    )


def _own(given: GivenSettings, setting: Setting[str], listener: str) -> tuple[str, str | None]:
    """Return the most specific key of a setting, and the value that is in force."""
    return next(iter(keys_of(setting, listener, OAUTHBEARER))), given.get(setting, listener, OAUTHBEARER)
