"""The settings for tokens of kustos itself: Kafka's client keys (KIP-768, KIP-1139, KIP-1258)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kustos.auth import InitialResponseError, require_valid_extensions
from kustos.client.errors import SettingsError
from kustos.client.oauth.assertion import FILE_KEY, ISSUER_KEY, AssertionSettings
from kustos.client.oauth.http import (
    ALLOWED_URLS_KEY,
    EndpointError,
    ProviderEndpoint,
    allowed_items,
    checked_url,
)
from kustos.client.properties import group_fields
from kustos.client.refreshed import RefreshRules
from kustos.client.tls import ClientTls
from kustos.runtime import SystemEntropy
from kustos.settings import BOOLEAN, INT32_MAX, Setting, whole_number

LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
LOGIN_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
TOKEN_URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 (a key)

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
_RETRIEVER_KEY: Final = "sasl.oauthbearer.jwt.retriever.class"
_JWT_BEARER: Final = _PACKAGE + "JwtBearerJwtRetriever"
_OF_HTTP: Final = (_PACKAGE + "ClientCredentialsJwtRetriever", _JWT_BEARER)
_OF_FILES: Final = (_PACKAGE + "FileJwtRetriever",)
_CLASSES: Final = {
    _RETRIEVER_KEY: (_PACKAGE + "DefaultJwtRetriever", *_OF_HTTP, *_OF_FILES),
    # the cluster checks the signature, not kustos
    "sasl.oauthbearer.jwt.validator.class": (
        _PACKAGE + "DefaultJwtValidator",
        _PACKAGE + "ClientJwtValidator",
    ),
}
_CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 (a key)
_SCOPE: Final = "sasl.oauthbearer.scope"
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
    header_urlencode: bool = Setting(
        "sasl.oauthbearer.header.urlencode",
        BOOLEAN,
        False,
        "Upstream",
        "Whether id, secret and scope are encoded for URLs, as RFC 6749 says, when the secret is sent.",
        since="0.2.0",
    ).field()
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
        allowed = allowed_items(properties.get(ALLOWED_URLS_KEY, ""))
        endpoint = ProviderEndpoint(
            checked_url(text, TOKEN_URL_KEY, allowed), **group_fields(ProviderEndpoint, properties)
        )
        retriever = properties.get(_RETRIEVER_KEY, "").strip()
        if retriever in (_OF_HTTP if endpoint.is_file else _OF_FILES):
            other = "an `https` or `http`" if endpoint.is_file else "a `file`"
            raise SettingsError(f"`{TOKEN_URL_KEY}` is `{text}`, but `{retriever}` needs {other} URL")
        # as in Kafka, a wrong value is an error even if nothing uses it
        declared, of_assertion = group_fields(cls, properties), group_fields(AssertionSettings, properties)
        settings = cls(
            endpoint,
            extensions=_extensions(options),
            refresh=RefreshRules(**group_fields(RefreshRules, properties)),
            tls=_tls(options),
            **declared,
        )
        if endpoint.is_file:
            return settings
        if retriever == _JWT_BEARER:
            return replace(
                settings,
                scope=_value(properties, _SCOPE, {}, "scope"),
                assertion=AssertionSettings.from_properties(properties, of_assertion),
                is_jwt_bearer=True,
            )
        settings = replace(
            settings,
            client_id=_value(properties, _CLIENT_ID, options, "clientId"),
            scope=_value(properties, _SCOPE, options, "scope"),
        )
        # as in Kafka, the issuer of an assertion, not its key, enables client authentication by assertion
        if properties.get(FILE_KEY, "").strip() or ISSUER_KEY in properties:
            return replace(settings, assertion=AssertionSettings.from_properties(properties, of_assertion))
        secret = _value(properties, _CLIENT_SECRET, options, "clientSecret")
        for key, value, option in (
            (_CLIENT_ID, settings.client_id, "clientId"),
            (_CLIENT_SECRET, secret, "clientSecret"),
        ):
            if not value:
                raise SettingsError(f"`{key}` is not set, nor is the option `{option}` of `sasl.jaas.config`")
        return replace(settings, client_secret=secret)

    def require_usable(self) -> None:
        """Raise `SettingsError` if the files of the assertion or of TLS cannot be used; this function blocks.

        Kafka's clients read these files when they start, too.
        """
        if self.tls is not None:
            self.tls.context()
        if self.assertion is not None:
            try:
                self.assertion.create(0, SystemEntropy())
            except EndpointError as error:
                raise SettingsError(str(error)) from None


def _require_known_classes(properties: Mapping[str, str]) -> None:
    for key, known in _CLASSES.items():
        name = properties.get(key, "").strip()
        if name and name not in known:
            shown = ", ".join(f"`{each}`" for each in known)
            raise SettingsError(f"`{key}` is `{name}`, kustos knows only {shown}")


def _value(properties: Mapping[str, str], key: str, options: Mapping[str, str], option: str) -> str:
    """Return the value of a key or, if it is absent, of its older option; empty if neither has one."""
    value = (properties[key] if key in properties else options.get(option, "")).strip()
    try:
        value.encode()
    except UnicodeEncodeError:
        # Python's own error contains the whole text
        raise SettingsError(f"`{key}` is not Unicode text") from None
    return value


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
