"""The validators of bearer tokens of all listeners, and the key sets that they share."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from kustos.auth import AcceptedToken, RefusedToken, TokenValidator
from kustos.auth.jwt import UnsecuredTokenRules, validate_signed, validate_unsecured
from kustos.client.oauth import JwksSettings, RefreshingKeys
from kustos.runtime import Clock
from kustos.server.settings.listeners import ListenerSettings
from kustos.server.settings.oauth import HandlerTokenSettings, OAuthListenerSettings, SignedTokenSettings


class BearerTokens:
    """Validates the tokens of these listeners. Each key set is fetched once for all listeners that use it."""

    def __init__(self, listeners: Iterable[ListenerSettings], clock: Clock) -> None:
        self._clock: Final = clock
        settings = [each.sasl.oauth for each in listeners if each.sasl is not None]
        self._keys: Final[dict[JwksSettings, RefreshingKeys]] = {
            each.jwks: RefreshingKeys(each.jwks, clock)
            for each in settings
            if isinstance(each, SignedTokenSettings)
        }

    @property
    def readiness(self) -> dict[str, bool]:
        """Whether every key set was loaded once; empty if there is none."""
        return {"jwks": all(each.is_loaded for each in self._keys.values())} if self._keys else {}

    def start(self) -> None:
        """Begin to fetch the key sets; raise `SettingsError` for unusable TLS files."""
        for each in self._keys.values():
            each.start()

    async def stop(self) -> None:
        """End it."""
        for each in self._keys.values():
            await each.stop()

    def validator(self, settings: OAuthListenerSettings | None) -> TokenValidator | None:
        """Return the validator of a listener's tokens, None if it accepts none or has a callback handler."""
        if settings is None or isinstance(settings, HandlerTokenSettings):
            return None
        if isinstance(settings, UnsecuredTokenRules):
            return partial(self._judge_unsecured, settings)
        return partial(self._judge, settings, self._keys[settings.jwks])

    def _judge(
        self, settings: SignedTokenSettings, known: RefreshingKeys, token: str
    ) -> AcceptedToken | RefusedToken:
        verdict = validate_signed(token, known.keys, settings.rules, self._clock.wall_ms())
        if verdict.unknown_key_id is not None:
            known.miss(verdict.unknown_key_id)
        return verdict.outcome

    def _judge_unsecured(self, rules: UnsecuredTokenRules, token: str) -> AcceptedToken | RefusedToken:
        return validate_unsecured(token, rules, self._clock.wall_ms())
