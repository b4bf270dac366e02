"""The settings for tokens of kustos itself: Kafka's client keys (KIP-768, KIP-1139, KIP-1258)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.auth import InitialResponseError, require_valid_extensions
from kustos.client.errors import SettingsError
from kustos.client.oauth.assertion import FILE_KEY, ISSUER_KEY, AssertionSettings
from kustos.client.oauth.http import ALLOWED_URLS_KEY, ProviderEndpoint, allowed_urls, checked_url
from kustos.client.properties import group_fields
from kustos.client.refreshed import RefreshRules
from kustos.client.tls import ClientTls
from kustos.settings import INT32_MAX, Setting, whole_number

LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
TOKEN_URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 (a key)

_RETRIEVER_KEY: Final = "sasl.oauthbearer.jwt.retriever.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
_JWT_BEARER: Final = _PACKAGE + "JwtBearerJwtRetriever"
_RETRIEVERS: Final = (
    _PACKAGE + "DefaultJwtRetriever",
    _PACKAGE + "ClientCredentialsJwtRetriever",
    _PACKAGE + "FileJwtRetriever",
    _JWT_BEARER,
)
_EXTENSION: Final = "extension_"


@dataclass(frozen=True, slots=True)
class OAuthClientSettings:
    """The source of tokens. A file needs no client id and no secret, an assertion needs no secret.

    `is_jwt_bearer`: the assertion is the grant itself (RFC 7523, section 2.1), and not only the client
    authentication.
    """

    endpoint: ProviderEndpoint
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    header_urlencode: bool = False
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    retry_backoff_ms: int = Setting(
        "sasl.login.retry.backoff.ms",
        whole_number(0, INT32_MAX),
        100,
        "Upstream",
        "The first pause between two attempts to get a token.",
        since="0.2.0",
    ).field()
    retry_backoff_max_ms: int = Setting(
        "sasl.login.retry.backoff.max.ms",
        whole_number(0, INT32_MAX),
        10_000,
        "Upstream",
        "How long all pauses may take.",
        since="0.2.0",
    ).field()
    refresh: RefreshRules = field(default_factory=RefreshRules)
    tls: ClientTls | None = None
    assertion: AssertionSettings | None = None
    is_jwt_bearer: bool = False

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], options: Mapping[str, str]
    ) -> "OAuthClientSettings":
        """Return the settings of these keys, and of the options of the login module.

        Raise `SettingsError` naming the wrong key. As in Kafka, a key overrides its older option.
        """
        _require_known_classes(properties)
        text = properties.get(TOKEN_URL_KEY, "").strip()
        if not text:
            raise SettingsError(f"`{TOKEN_URL_KEY}` is not set; it says where the token comes from")
        allowed = allowed_urls(properties.get(ALLOWED_URLS_KEY, ""))
        own, times = group_fields(cls, properties), group_fields(AssertionSettings, properties)
        refresh = RefreshRules(**group_fields(RefreshRules, properties))
        endpoint = ProviderEndpoint(
            checked_url(text, TOKEN_URL_KEY, allowed), **group_fields(ProviderEndpoint, properties)
        )
        is_jwt_bearer = properties.get(_RETRIEVER_KEY, "").strip() == _JWT_BEARER
        assertion: AssertionSettings | None = None
        # as in Kafka, the issuer of an assertion, not its key, enables client authentication by assertion
        if is_jwt_bearer or any(properties.get(key, "").strip() for key in (FILE_KEY, ISSUER_KEY)):
            assertion = AssertionSettings.from_properties(properties, times)
        client_id, secret = _credentials(properties, options, endpoint, with_assertion=assertion is not None)
        return cls(
            endpoint,
            client_id,
            secret,
            properties.get("sasl.oauthbearer.scope", "").strip() or options.get("scope", "").strip(),
            properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
            _extensions(options),
            refresh=refresh,
            tls=_tls(options),
            assertion=assertion,
            is_jwt_bearer=is_jwt_bearer,
            **own,
        )


def _require_known_classes(properties: Mapping[str, str]) -> None:
    retriever = properties.get(_RETRIEVER_KEY, "").strip()
    if retriever and retriever not in _RETRIEVERS:
        known = ", ".join(f"`{name}`" for name in _RETRIEVERS)
        raise SettingsError(f"`{_RETRIEVER_KEY}` is `{retriever}`, kustos knows only {known}")


def _credentials(
    properties: Mapping[str, str],
    options: Mapping[str, str],
    endpoint: ProviderEndpoint,
    *,
    with_assertion: bool,
) -> tuple[str, str]:
    """Return client id and secret; empty for a file, and if an assertion replaces them."""
    if endpoint.is_file:
        return "", ""
    found: list[str] = []
    for name, option in (("client.id", "clientId"), ("client.secret", "clientSecret")):
        key = f"sasl.oauthbearer.client.credentials.{name}"
        value = properties.get(key, "").strip() or options.get(option, "")
        if not value and not with_assertion:
            raise SettingsError(f"`{key}` is not set, nor is the option `{option}` of `sasl.jaas.config`")
        try:
            value.encode()
        except UnicodeEncodeError:
            # Python's own error contains the whole text
            raise SettingsError(f"`{key}` is not Unicode text") from None
        found.append(value)
    return found[0], found[1]


def _extensions(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = {
        name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)
    }
    try:
        require_valid_extensions(found)
    except InitialResponseError as error:
        raise SettingsError(f"`sasl.jaas.config`: {error}") from None
    return tuple(found.items())


def _tls(options: Mapping[str, str]) -> ClientTls | None:
    given = {name: value for name, value in options.items() if name.startswith("ssl.")}
    return ClientTls.from_properties(given) if given else None
