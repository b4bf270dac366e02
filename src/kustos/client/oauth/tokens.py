"""Tokens of kustos itself, refreshed before they expire: from client credentials (RFC 6749, section 4.4), an
assertion or a file.

The settings `sasl.login.refresh.*` determine the time of a refresh (`kustos.client.refreshed`).
"""

import asyncio
import json
import re
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus, urlencode

import structlog

from kustos.auth import BearerToken
from kustos.auth.jwt import TokenError, TokenParts
from kustos.client.errors import AuthenticationFailedError, CannotConnectError
from kustos.client.oauth.http import EndpointError
from kustos.client.oauth.settings import OAuthClientSettings
from kustos.client.refreshed import PerLoop, Refreshed, in_a_thread, refresh_at_ms, retry_pauses_ms
from kustos.runtime import Clock, Entropy, SystemClock, SystemEntropy

LOG: Final = structlog.get_logger("kustos.client")

_JWT_BEARER_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

LIFE_MAX_S: Final = 10**9
"""The longest accepted lifetime of a token: thirty years."""

_TOKENS: Final = ("access_token", "id_token")
"""The members of an answer with a token, as in Kafka: the first that is there."""

_TOKEN: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")


@dataclass(frozen=True, slots=True)
class HeldToken:
    """The current token and its times (ms, wall time)."""

    value: str = field(repr=False)
    issued_at_ms: int
    expires_at_ms: int


class TokenSource:
    """The tokens of one identity; used within one event loop."""

    def __init__(
        self, settings: OAuthClientSettings, clock: Clock | None = None, entropy: Entropy | None = None
    ) -> None:
        self._settings: Final = settings
        self._clock: Final = clock or SystemClock()
        self._entropy: Final = entropy or SystemEntropy()
        self.refreshed: Final = Refreshed(self._fetch, self._refresh_at, self._clock, self._entropy)

    def __repr__(self) -> str:
        return f"TokenSource({self._settings.endpoint.url})"

    async def token(self) -> BearerToken:
        """Return a valid token.

        Raise `AuthenticationFailedError` if the provider refuses, `CannotConnectError` if it does not answer.
        """
        held = await self.refreshed.get()
        return BearerToken(held.value, dict(self._settings.extensions))

    def _refresh_at(self, held: HeldToken, now_ms: int, chance: float) -> int:
        return refresh_at_ms(self._settings.refresh, chance, now_ms, held.issued_at_ms, held.expires_at_ms)

    async def _fetch(self) -> HeldToken:
        try:
            return await self._attempts()
        except EndpointError as error:
            LOG.warning("could not get a token", url=self._settings.endpoint.url, reason=str(error))
            failure = CannotConnectError if error.may_pass else AuthenticationFailedError
            raise failure(f"cannot get a token: {error}") from None

    async def _attempts(self) -> HeldToken:
        settings = self._settings
        for pause_ms in retry_pauses_ms(settings.retry_backoff_ms, settings.retry_backoff_max_ms):
            try:
                return await in_a_thread(self._once)
            except EndpointError as error:
                if not error.may_pass:
                    raise
            await asyncio.sleep(pause_ms / 1000)
        return await in_a_thread(self._once)

    def _once(self) -> HeldToken:
        """Get a token; in a thread."""
        settings, now_ms = self._settings, self._clock.wall_ms()
        endpoint = settings.endpoint
        if endpoint.is_file:
            return held_token(endpoint.read_file().decode("ascii", "replace").strip(), None, now_ms)
        context = None if settings.tls is None else settings.tls.context()
        proof = settings.assertion
        assertion = None if proof is None else proof.create(now_ms // 1000, self._entropy)
        body, headers = token_request(settings, assertion)
        return read_answer(endpoint.request(context, body, headers), now_ms)


def token_request(
    settings: OAuthClientSettings, assertion: str | None = None
) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of the request for a token; an assertion replaces the secret."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    fields = {"grant_type": "client_credentials"}
    if assertion is None:
        pair = [settings.client_id, settings.client_secret]
        if settings.header_urlencode:
            pair = [quote_plus(text) for text in pair]
        headers["Authorization"] = f"Basic {b64encode(':'.join(pair).encode()).decode()}"
    elif settings.is_jwt_bearer:
        fields = {"grant_type": _JWT_BEARER_GRANT, "assertion": assertion}
    else:
        fields |= {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": assertion}
        fields |= {"client_id": settings.client_id} if settings.client_id else {}
    body = urlencode(fields)
    if settings.scope:
        # with a secret, Kafka's clients encode the scope only on demand: some are written as encoded text
        is_raw = assertion is None and not settings.header_urlencode
        scope = settings.scope.replace(" ", "+") if is_raw else quote_plus(settings.scope)
        body += f"&scope={scope}"
    return body.encode(), headers


def read_answer(data: bytes, now_ms: int) -> HeldToken:
    """Return the token in a provider's answer; raise `EndpointError`, whose text contains no part of it."""
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        raise EndpointError("the provider's answer is not JSON") from None
    if not isinstance(answer, dict):
        raise EndpointError("the provider's answer is not a JSON object")
    life_s = answer.get("expires_in")
    texts = (text.strip() for name in _TOKENS if isinstance(text := answer.get(name), str))
    token = next(filter(None, texts), None)
    if token is None:
        raise EndpointError("the provider's answer has no `access_token`, nor an `id_token`")
    # a bool is an int in Python
    is_usable = type(life_s) is int and 0 < life_s <= LIFE_MAX_S
    return held_token(token, life_s if is_usable else None, now_ms)


def held_token(token: str, life_s: int | None, now_ms: int) -> HeldToken:
    """Return the token with the times of its claims, else with a lifetime of `life_s` seconds from now.

    Raise `EndpointError` for a token that has no expiry, has expired, or cannot be sent.
    """
    if _TOKEN.fullmatch(token) is None:
        raise EndpointError("the token has characters that RFC 6750 does not allow, or is empty")
    issued_s: float | None = None
    expires_s: float | None = None
    try:
        parts = TokenParts.parse(token)
        expires_s, issued_s = parts.number_of("exp"), parts.number_of("iat")
    except TokenError:
        # a token need not be a JWT; then the provider's answer has its lifetime
        expires_s = None
    if expires_s is None and life_s is not None:
        expires_s = now_ms / 1000 + life_s
    if expires_s is None:
        raise EndpointError("the token does not say when it expires, nor does the provider")
    if expires_s * 1000 <= now_ms:
        raise EndpointError("the token has expired already")
    issued_ms = now_ms if issued_s is None else min(int(issued_s * 1000), now_ms)
    return HeldToken(token, issued_ms, int(expires_s * 1000))


_SOURCES: Final = PerLoop(TokenSource)


def token_source(settings: OAuthClientSettings) -> TokenSource:
    """Return the source of these settings in the running loop."""
    return _SOURCES.of(settings)
