"""The key set of a provider, refreshed outside the event loop.

The set is refreshed every `refresh_ms`. An unknown key id causes an earlier refresh, at most one per
`retry_backoff_max_ms`. After a failure the old keys remain, and the next attempt follows after a time that
doubles from `retry_backoff_ms` to `retry_backoff_max_ms`. No token is valid before the first keys are
available.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from kustos.auth.jwt import JWKS_MAX_BYTES, NO_KEYS, JwksError, SigningKeys, parse_jwks
from kustos.client.oauth.http import EndpointError, ProviderEndpoint
from kustos.client.refreshed import in_a_thread
from kustos.client.supervision import supervised
from kustos.client.tls import ClientTls
from kustos.runtime import Clock
from kustos.settings import INT32_MAX, Scope, Setting, whole_number

LOG: Final = structlog.get_logger("kustos.client")

FILE_REFRESH_MS: Final = 10_000
"""The maximum interval between reads of a file; it is parsed only if it has changed."""

REFRESH_MIN_MS: Final = 100
"""The minimum time between two successful refreshes, regardless of the settings."""

MISSING_KEY_IDS_MAX: Final = 16
"""The number of unknown key ids that are remembered, as in Kafka; the oldest is evicted."""

MISSING_KEY_ID_MS: Final = 60_000
"""The time during which one unknown key id causes no further refresh, as in Kafka."""


@dataclass(frozen=True, slots=True)
class JwksSettings:
    """The location of a key set and its refresh times (`sasl.oauthbearer.jwks.endpoint.*`)."""

    endpoint: ProviderEndpoint
    refresh_ms: int = Setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        whole_number(1, INT32_MAX, "milliseconds"),
        3_600_000,
        "Bearer tokens",
        "How often kustos fetches the keys; it checks a file every 10 seconds at least. A token with an "
        "unknown key id brings the keys sooner.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    retry_backoff_ms: int = Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        whole_number(1, INT32_MAX, "milliseconds"),
        100,
        "Bearer tokens",
        "The first pause after a failure to get the keys; each further one is twice as long.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    retry_backoff_max_ms: int = Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        whole_number(1, INT32_MAX, "milliseconds"),
        10_000,
        "Bearer tokens",
        "The longest pause after a failure, and the shortest one between two refreshes for unknown key ids.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    tls: ClientTls | None = None


class RefreshingKeys:
    """A key set that is refreshed between `start` and `stop`; `keys` does not wait."""

    def __init__(self, settings: JwksSettings, clock: Clock) -> None:
        self.settings: Final = settings
        self.keys: SigningKeys = NO_KEYS
        self.is_loaded = False
        self._clock: Final = clock
        self._text: bytes | None = None
        self._missing: Final[dict[str, int]] = {}
        self._wanted: Final = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    def start(self) -> None:
        """Start refreshing; raise `SettingsError` for unusable TLS files."""
        if self.settings.tls is not None:
            # report unusable stores now and not at the first request
            self.settings.tls.context()
        self._task = supervised("key-set", self._run)

    async def stop(self) -> None:
        """Stop refreshing. A request in progress ends within its time limits."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def miss(self, key_id: str) -> bool:
        """Record that a token names an unknown key; return whether this causes a refresh."""
        now_ms = self._clock.monotonic_ms()
        if self._missing.get(key_id, 0) > now_ms:
            return False
        self._missing.pop(key_id, None)
        while len(self._missing) >= MISSING_KEY_IDS_MAX:
            del self._missing[next(iter(self._missing))]
        self._missing[key_id] = now_ms + MISSING_KEY_ID_MS
        self._wanted.set()
        return True

    async def _run(self) -> None:
        settings = self.settings
        while True:
            self._wanted.clear()
            if await self._refresh():
                limit_ms = FILE_REFRESH_MS if settings.endpoint.is_file else settings.refresh_ms
                await self._pause(settings.retry_backoff_max_ms, min(settings.refresh_ms, limit_ms))
            else:
                doubled_ms = settings.retry_backoff_ms * 2 ** min(self._failures - 1, 30)
                await asyncio.sleep(min(doubled_ms, settings.retry_backoff_max_ms) / 1000)

    async def _pause(self, at_least_ms: int, at_most_ms: int) -> None:
        """Wait for the time of the next refresh, or for an unknown key id before that."""
        at_most_ms = max(at_most_ms, REFRESH_MIN_MS)
        at_least_ms = min(at_least_ms, at_most_ms)
        await asyncio.sleep(at_least_ms / 1000)
        with suppress(TimeoutError):
            async with asyncio.timeout((at_most_ms - at_least_ms) / 1000):
                await self._wanted.wait()

    async def _refresh(self) -> bool:
        url = self.settings.endpoint.url
        try:
            text, keys = await in_a_thread(self._fetch)
        except (EndpointError, JwksError) as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - whatever a library raises must not end the refreshes
            # only the type: the text may contain bytes of the provider
            return self._failed(type(error).__name__)
        if keys is not None:
            self.keys = keys
            for key in keys.keys:
                self._missing.pop(key.key_id or "", None)
            LOG.info("key set loaded", url=url, keys=len(keys.keys), left_out=keys.left_out)
        elif self._failures:
            LOG.info("the key set can be refreshed again", url=url)
        self._text, self._failures, self.is_loaded = text, 0, True
        return True

    def _failed(self, reason: str) -> bool:
        self._failures += 1
        if self._failures == 1:
            url = self.settings.endpoint.url
            LOG.warning("the key set was not refreshed, the old keys stay", url=url, reason=reason)
        return False

    def _fetch(self) -> tuple[bytes, SigningKeys | None]:
        """Return the key set's text, and its keys if the text has changed; runs in a thread."""
        endpoint, tls = self.settings.endpoint, self.settings.tls
        if endpoint.is_file:
            text = endpoint.read_file(JWKS_MAX_BYTES)
        else:
            # its stores may have changed since the last request
            text = endpoint.request(None if tls is None else tls.context())
        return text, None if text == self._text else parse_jwks(text)
