"""Custom callback handlers and mechanisms: created for each listener, and closed with the node."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Final

import structlog

from kustos.auth import (
    AuthenticateCallbackHandler,
    CallbackServer,
    CustomServer,
    HandlerCredentials,
    HandlerExtensions,
    HandlerPasswords,
    HandlerTokens,
    MechanismFactory,
    OAuthBearerServer,
    OAuthBearerValidatorCallbackHandler,
    PlainServer,
    PlainServerCallbackHandler,
    SaslServerMechanism,
    ScramDecoys,
    ScramHash,
    ScramServer,
    ScramServerCallbackHandler,
    Surroundings,
    TokenLookup,
    configured_handler,
)
from kustos.runtime import Entropy
from kustos.server.settings.listeners import SaslListenerSettings

LOG: Final = structlog.get_logger("kustos.server")

CLOSING_TIMEOUT_S: Final = 5.0
"""The time limit for closing all handlers; after that, the node ends without them."""


def close_in_thread(
    handler: AuthenticateCallbackHandler, closed: Callable[[AuthenticateCallbackHandler, str | None], None]
) -> None:
    """Close a handler in a background thread, then call `closed` on the event loop."""
    loop = asyncio.get_running_loop()

    def close() -> None:
        failure = None
        try:
            handler.close()
        except BaseException as error:  # noqa: BLE001 - whatever it raises, the node ends
            failure = type(error).__name__
        with suppress(RuntimeError):
            # the loop may be closed
            loop.call_soon_threadsafe(closed, handler, failure)

    threading.Thread(target=close, name="close a callback handler", daemon=True).start()


class CallbackHandlers:
    """All custom handlers and mechanisms of a process. `configs`: their configuration."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        self._configs: Final = configs
        self._open: Final[list[AuthenticateCallbackHandler]] = []

    def factory(
        self,
        listener: str,
        sasl: SaslListenerSettings,
        mechanism: str,
        decoys: ScramDecoys,
        entropy: Entropy,
        tokens: TokenLookup | None,
    ) -> MechanismFactory | None:
        """Return the factory of a mechanism with a custom class, None if it has none.

        Raise `CallbackError` if the class cannot be configured.
        """
        settings, module = sasl.callbacks.get(mechanism), sasl.jaas.get(mechanism)
        if settings is None:
            return None
        options = {} if module is None else module.options
        handler = configured_handler(settings.handler_class, self._configs, mechanism, options)
        self._open.append(handler)
        around = Surroundings(f"{listener} {mechanism}", settings.timeout_ms)
        make: Callable[[], PlainServer | ScramServer | OAuthBearerServer]
        match handler:
            case SaslServerMechanism():
                return CustomServer.factory(handler, around)
            case PlainServerCallbackHandler():
                passwords = HandlerPasswords(handler)
                make = lambda: PlainServer(passwords)  # noqa: E731 - one of three
            case ScramServerCallbackHandler():
                found = HandlerCredentials(handler)
                scram_hash = next(each for each in ScramHash if each.mechanism_name == mechanism)
                # the result is valid for one login, so the handler is called once
                make = lambda: ScramServer(scram_hash, cache(found), decoys, entropy, tokens)  # noqa: E731
            case OAuthBearerValidatorCallbackHandler():
                validate, extensions = HandlerTokens(handler), HandlerExtensions(handler)
                make = lambda: OAuthBearerServer(validate, extensions)  # noqa: E731
            case _:
                return None
        return CallbackServer.factory(make, around)

    async def close(self) -> None:
        """Close all handlers, even if one fails or hangs; further calls have no effect."""
        handlers = [self._open.pop() for _ in range(len(self._open))]
        if not handlers:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = len(handlers)

        def closed(handler: AuthenticateCallbackHandler, failure: str | None) -> None:
            nonlocal left
            left -= 1
            if failure is not None:
                LOG.warning(
                    "a callback handler did not close", handler=type(handler).__name__, reason=failure
                )
            if not left and not done.done():
                done.set_result(None)

        for each in handlers:
            close_in_thread(each, closed)
        try:
            await asyncio.wait_for(done, CLOSING_TIMEOUT_S)
        except TimeoutError:
            LOG.warning("callback handlers do not close, the node ends without them", handlers=left)
