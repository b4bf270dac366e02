"""How we get a token for ourselves: Kafka's keys of a client (KIP-768, KIP-1139, KIP-1258)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.auth import InitialResponseError, require_valid_extensions
from kustos.client.errors import SettingsError
from kustos.client.oauth.assertion import (
    EXPIRES_KEY,
    FILE_KEY,
    ISSUER_KEY,
    NOT_BEFORE_KEY,
    AssertionSettings,
)
from kustos.client.oauth.http import (
    ALLOWED_URLS_KEY,
    DEFAULT_CONNECT_TIMEOUT_MS,
    DEFAULT_READ_TIMEOUT_MS,
    ProviderEndpoint,
    allowed_urls,
    checked_url,
)
from kustos.client.refreshed import RefreshRules
from kustos.client.tls import ClientTls

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
_INT32_MAX: Final = 2**31 - 1
_NUMBERS: Final = {
    "sasl.login.connect.timeout.ms": (DEFAULT_CONNECT_TIMEOUT_MS, 1, _INT32_MAX),
    "sasl.login.read.timeout.ms": (DEFAULT_READ_TIMEOUT_MS, 1, _INT32_MAX),
    "sasl.login.retry.backoff.ms": (100, 0, _INT32_MAX),
    "sasl.login.retry.backoff.max.ms": (10_000, 0, _INT32_MAX),
    "sasl.login.refresh.min.period.seconds": (60, 0, 900),
    "sasl.login.refresh.buffer.seconds": (300, 0, 3600),
    EXPIRES_KEY: (300, 0, 86_400),
    NOT_BEFORE_KEY: (60, 0, 3600),
}
"""Key -> default, least and greatest value: Kafka's, which has no default for the timeouts."""

_PARTS: Final = {
    "sasl.login.refresh.window.factor": (0.8, 0.5, 1.0),
    "sasl.login.refresh.window.jitter": (0.05, 0.0, 0.25),
}


@dataclass(frozen=True, slots=True)
class OAuthClientSettings:
    """Where our tokens come from. A file has no client id and no secret, an assertion no secret.

    `is_jwt_bearer`: the assertion itself is the grant (RFC 7523, section 2.1), not only our authentication.
    """

    endpoint: ProviderEndpoint
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    header_urlencode: bool = False
    extensions: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    refresh: RefreshRules = field(default_factory=RefreshRules)
    tls: ClientTls | None = None
    assertion: AssertionSettings | None = None
    is_jwt_bearer: bool = False

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], options: Mapping[str, str]
    ) -> "OAuthClientSettings":
        """Return the settings of these keys, and of the options of the login module.

        Raise `SettingsError` naming the wrong key. As in Kafka a key counts before its older option.
        """
        _require_known_classes(properties)
        text = properties.get(TOKEN_URL_KEY, "").strip()
        if not text:
            raise SettingsError(f"`{TOKEN_URL_KEY}` is not set; it says where the token comes from")
        allowed = allowed_urls(properties.get(ALLOWED_URLS_KEY, ""))
        numbers = {key: _number(properties, key) for key in _NUMBERS}
        parts = {key: _part(properties, key) for key in _PARTS}
        endpoint = ProviderEndpoint(
            checked_url(text, TOKEN_URL_KEY, allowed),
            numbers["sasl.login.connect.timeout.ms"],
            numbers["sasl.login.read.timeout.ms"],
        )
        is_jwt_bearer = properties.get(_RETRIEVER_KEY, "").strip() == _JWT_BEARER
        assertion: AssertionSettings | None = None
        # as in Kafka the issuer of an assertion, not its key, says that one authenticates us
        if is_jwt_bearer or any(properties.get(key, "").strip() for key in (FILE_KEY, ISSUER_KEY)):
            life_s, earlier_s = numbers[EXPIRES_KEY], numbers[NOT_BEFORE_KEY]
            assertion = AssertionSettings.from_properties(properties, life_s, earlier_s)
        client_id, secret = _credentials(properties, options, endpoint, with_assertion=assertion is not None)
        return cls(
            endpoint,
            client_id,
            secret,
            properties.get("sasl.oauthbearer.scope", "").strip() or options.get("scope", "").strip(),
            properties.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
            _extensions(options),
            numbers["sasl.login.retry.backoff.ms"],
            numbers["sasl.login.retry.backoff.max.ms"],
            RefreshRules(
                parts["sasl.login.refresh.window.factor"],
                parts["sasl.login.refresh.window.jitter"],
                numbers["sasl.login.refresh.min.period.seconds"],
                numbers["sasl.login.refresh.buffer.seconds"],
            ),
            _tls(options),
            assertion,
            is_jwt_bearer,
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
    """Return client id and secret; empty for a file, and where an assertion takes their place."""
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
            # Python's own error holds the whole text
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


def _number(properties: Mapping[str, str], key: str) -> int:
    default, least, greatest = _NUMBERS[key]
    text = properties.get(key, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 10) or not least <= int(text) <= greatest:
        raise SettingsError(f"`{key}` is `{text}`, use a whole number from {least} to {greatest}")
    return int(text)


def _part(properties: Mapping[str, str], key: str) -> float:
    default, least, greatest = _PARTS[key]
    text = properties.get(key, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not least <= value <= greatest:
        raise SettingsError(f"`{key}` is `{text}`, use a number from {least} to {greatest}")
    return value
