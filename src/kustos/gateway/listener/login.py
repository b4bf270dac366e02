"""The logins of one connection: passes frames to the SASL machine, and performs its effects.

The first login precedes the session; later ones happen within it (KIP-368). While too many logins from the
client's network fail, the credentials of a first login are not checked. The credentials of a later one are
checked only if they are the session's own, or cannot be guessed; otherwise every owner of an account could
guess the passwords of others. A bad client behind a shared address therefore blocks new logins, but ends no
session.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

import structlog

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    SASL_HANDSHAKE,
    Authenticated,
    Close,
    Fail,
    LoginStep,
    ProofRefused,
    RunInThread,
    SaslEffect,
    SaslServerMachine,
    SaslState,
    SendFrame,
)
from kustos.gateway.listener.handshakes import THROTTLED, HandshakeRefusal
from kustos.gateway.listener.login_threads import Cancel
from kustos.gateway.listener.port import Port
from kustos.gateway.session.logins import LOG_IS_FULL, live_login, login_among

# looked up once, because every frame uses them
_VERIFYING: Final = SaslState.VERIFYING
_COMPLETE: Final = SaslState.COMPLETE

PIECE_PAUSES_S: Final = (0.01, 0.02, 0.04, 0.08)
"""The pauses between the pieces of an answer, which a Java client finds only if its socket wakes it often
enough. There are as many pieces as a producer has requests in flight by default. During a pause the client
reads earlier answers; a busy client needs a longer one."""

LOG: Final = structlog.get_logger("kustos.gateway")


class LoginOwner(Protocol):
    """The connection of a login."""

    host: str

    def write(self, frame: bytes) -> None:
        """Send a whole frame to the client."""

    def close(self, reason: str, *, logged: bool = True) -> None:
        """End the connection."""

    def refuse(self, refusal: HandshakeRefusal) -> None:
        """End a connection that may not log in, whatever its credentials."""

    def admitted(self, principal: KafkaPrincipal) -> None:
        """Serve this principal from now on, unless a session serves it already."""

    def verified(self, go_on: Callable[[], None]) -> None:
        """Continue the login after its thread has finished, then take the frames that arrived meanwhile."""

    def login_failed(self) -> None:
        """Read nothing more: the refusal follows after a delay and ends the connection."""


class ConnectionLogin:
    """The logins of one connection; `principal` is the principal of the live session."""

    def __init__(self, owner: LoginOwner, port: Port, machine: SaslServerMachine) -> None:
        self._owner: Final = owner
        self._port: Final = port
        self._admission: Final = port.gateway.admission
        self._machine: Final = machine
        self.wants: Final = machine.wants
        """Returns whether a frame of a live session is for the login, or the session has expired."""
        self._timer: asyncio.TimerHandle | None = None
        self._pieces: Final[deque[bytes]] = deque()
        self._cancel: Cancel = lambda: None
        self._has_ended = False

    def receive(self, frame: bytes) -> None:
        """Take a frame of the first login."""
        owner = self._owner
        if self._admission.is_throttled(owner.host):
            owner.refuse(THROTTLED)
            return
        effects = self._machine.receive(frame)
        if (answer := _only_answer(effects)) is not None:
            owner.write(answer)
        else:
            self._perform_all(effects)

    @property
    def is_verifying(self) -> bool:
        """Whether a thread or an answer in pieces has to finish before the next frame is taken."""
        return self._machine.state is _VERIFYING or bool(self._pieces)

    def oversized(self) -> None:
        """Take a frame that is longer than a login may send."""
        self._perform_all(self._machine.oversized())

    def take(self, frame: bytes, principal: KafkaPrincipal) -> bool:
        """Handle such a frame in the session of a principal; return whether it is not a request."""
        machine, port = self._machine, self._port
        if machine.state is SaslState.AUTHENTICATE and self._is_throttled_guess(frame):
            self._perform_all((Close(THROTTLED.reason),))
        elif machine.state is not _COMPLETE:
            self._perform_all(machine.receive(frame))
        elif frame[:2] == SASL_HANDSHAKE:
            effects = machine.begin_reauthentication(frame)
            if effects is None:
                return False
            self._answer_handshake(effects)
        else:
            login = live_login(machine, principal, port.name, port.security_protocol, self._owner.host)
            port.parts.observer.session_expired(login)
            self._owner.close("the session has expired (KIP-368)")
        return True

    def _answer_handshake(self, effects: tuple[SaslEffect, ...]) -> None:
        """Answer the first frame of a re-authentication, over TLS in pieces.

        A Java client with requests in flight takes one answer each time its socket wakes it. Over TLS, one
        read may return several answers: the client would find this one, the last, only when its request times
        out after 30 seconds (`Selector.poll` counts no progress while a channel re-authenticates). Each piece
        wakes the client again.
        """
        answer = _only_answer(effects)
        if answer is None or self._port.tls is None:
            self._perform_all(effects)
            return
        size_bytes = -(-len(answer) // (len(PIECE_PAUSES_S) + 1))
        self._pieces.extend(answer[at : at + size_bytes] for at in range(0, len(answer), size_bytes))
        self._send_piece()

    def _send_piece(self) -> None:
        self._owner.write(self._pieces.popleft())
        if self._pieces:
            pause_s = PIECE_PAUSES_S[-len(self._pieces)]
            self._timer = asyncio.get_running_loop().call_later(pause_s, self._send_piece)
        else:
            self._owner.verified(lambda: None)

    def _is_throttled_guess(self, frame: bytes) -> bool:
        return self._admission.is_throttled(self._owner.host) and self._machine.may_guess(frame)

    def is_expired(self, in_ms: int = 0) -> bool:
        """Return whether the session will have expired in `in_ms`; it then accepts only a login."""
        return self._machine.is_expired(in_ms)

    def end(self) -> None:
        """Send nothing more: the connection has ended."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._cancel()

    def _perform_all(self, effects: tuple[SaslEffect, ...]) -> None:
        if not self._is_recorded(effects):
            self._owner.close(LOG_IS_FULL)
            return
        for effect in effects:
            self._perform(effect)

    def _is_recorded(self, effects: tuple[SaslEffect, ...]) -> bool:
        """Record and count the login that these effects end, if any; return whether it may take effect."""
        port, host = self._port, self._owner.host
        login = login_among(effects, self._machine, port.name, port.security_protocol, host)
        if login is None:
            return True
        if login.failure is not None and any(map(_is_guess, effects)):
            port.gateway.login_failed(host)
        is_recorded = port.parts.observer.login_ended(login)
        succeeded = is_recorded and login.failure is None
        port.parts.metrics.authenticated(login.mechanism, succeeded, login.is_reauthentication)
        return is_recorded

    def _perform(self, effect: SaslEffect) -> None:
        """Perform an effect of the SASL machine."""
        owner, port = self._owner, self._port
        match effect:
            case SendFrame():
                owner.write(effect.data)
            case Authenticated():
                owner.admitted(effect.principal)
            case RunInThread():
                self._cancel = port.gateway.login_threads.run(effect, self._resume)
            case ProofRefused(reason=reason):
                LOG.info("authentication failed", listener=port.name, host=owner.host, reason=reason)
            case Fail(response=frame, reason=reason, delay_ms=delay_ms, was_announced=was_announced):
                # answer and close are both delayed, so that guesses are slow and reveal nothing (KIP-306)
                owner.login_failed()
                if not was_announced:
                    LOG.info("authentication failed", listener=port.name, host=owner.host, reason=reason)
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(delay_ms / 1000, self._end_failed, frame)
            case Close(reason=reason):
                owner.close(reason)

    def _resume(self, outcome: LoginStep) -> None:
        """Continue a login whose step has ended in its thread."""
        effects = self._machine.resume(outcome)
        if not self._has_ended:
            self._owner.verified(partial(self._perform_all, effects))
        elif not any(isinstance(effect, Authenticated) for effect in effects):
            # the client did not wait for the refusal, which counts nevertheless
            self._is_recorded(effects)
            for effect in effects:
                if isinstance(effect, RunInThread):
                    self._perform(effect)

    def _end_failed(self, frame: bytes) -> None:
        if frame:
            self._owner.write(frame)
        self._owner.close("authentication failed", logged=False)


def _only_answer(effects: tuple[SaslEffect, ...]) -> bytes | None:
    """Return the frame to send if it is the only effect, as for most frames of a login."""
    if len(effects) == 1 and isinstance(only := effects[0], SendFrame):
        return only.data
    return None


def _is_guess(effect: SaslEffect) -> bool:
    """Return whether credentials were checked and are wrong; only that counts against a network."""
    return isinstance(effect, ProofRefused | Fail) and effect.was_judged
