"""The SASL server of one connection, as a state machine without IO.

The input is a complete frame and the output is effects; the machine has no socket and never waits. It first
classifies each frame as one event (`_understand*`), then the table in `sasl_table` determines the action and
the next state, and the action creates the effects. Before the mechanism is negotiated, only ApiVersions and
SaslHandshake are parsed, afterwards only SaslAuthenticate; for any other request only the header is parsed.
After SaslHandshake v1, tokens are in SaslAuthenticate (KIP-152); after v0 they are bare frames and a refusal
has no text. Any error leads to FAILED, and FAILED accepts nothing. Every refused credential is answered after
the same delay, regardless of the reason.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.auth.builders import principal_of_login, refuse_change
from kustos.auth.effects import (
    Authenticated,
    Close,
    Fail,
    LoginStep,
    RunInThread,
    SaslEffect,
    SendFrame,
)
from kustos.auth.errors import SaslErrorCode, SaslMechanismError
from kustos.auth.mechanisms import (
    BlockingStep,
    Challenge,
    Claimant,
    MechanismFactory,
    Proven,
    ServerMechanism,
)
from kustos.auth.mechanisms.base import UNGUESSABLE
from kustos.auth.sasl_requests import (
    NO_REQUEST_HINT,
    SASL_HANDSHAKE,
    TOKENS,
    ApiVersionsBody,
    ErrorBody,
    SaslRequest,
    answer,
    handshake_answer,
    read_opening,
    read_request,
    state_refusal,
    token_in,
    token_refusal,
    top_level_error,
    versions_refusal,
)
from kustos.auth.sasl_seen import AnyStep, Seen, carry, refused, understand_versions
from kustos.auth.sasl_table import SaslAction, SaslEvent, SaslState, Transition, transition
from kustos.auth.settings import (
    CLAIMED_NAME_MAX_CHARACTERS,
    FRAMES_PER_AUTHENTICATION,
    MIN_REAUTHENTICATION_INTERVAL_MS,
    SaslServerSettings,
    session_life,
)
from kustos.runtime import Clock
from kustos.wire import ApiKey, MalformedMessageError

# members are looked up once: a look-up in an enumeration takes longer than the comparison
_API_VERSIONS, _HANDSHAKE = int(ApiKey.API_VERSIONS), int(ApiKey.SASL_HANDSHAKE)
_AGREES, _CONTINUES, _ACCEPTED = SaslEvent.HANDSHAKE, SaslEvent.PROOF_CONTINUES, SaslEvent.PROOF_ACCEPTED
_ENDS: Final = frozenset({SaslState.FAILED, SaslState.COMPLETE})
"""The states in which the exchange is over."""


class SaslServerMachine:
    """Turns a connection's first frames into a principal, or closes it.

    `mechanisms` are the enabled ones in the order shown to clients; `api_versions` builds the listener's
    ApiVersions body. `error_body` builds the body that refuses another API during a login, if its answer has
    one error code for the whole request; for other APIs the connection is closed without an answer, because a
    refusal would have to list the requested items. `principal_of_login` builds the principal from the result
    of a mechanism. Raise ValueError if no mechanism is given.
    """

    def __init__(
        self,
        settings: SaslServerSettings,
        mechanisms: Mapping[str, MechanismFactory],
        api_versions: ApiVersionsBody,
        clock: Clock,
        error_body: ErrorBody = top_level_error,
        principal_of_login: Callable[[str, Proven], KafkaPrincipal] = principal_of_login,
    ) -> None:
        if not mechanisms:
            raise ValueError("no SASL mechanism is enabled, set `sasl.enabled.mechanisms`")
        self._settings = settings
        self._factories = mechanisms
        self._api_versions = api_versions
        self._clock = clock
        self._error_body = error_body
        self._principal_of_login = principal_of_login
        self._state = SaslState.INITIAL
        self._frames = 0
        self._exchange: ServerMechanism | None = None
        self._waiting: SaslRequest | None = None
        self._mechanism = self._requested = ""
        self._claimed_name: str | None = None
        self._proven: Claimant | None = None
        self._in_requests = False
        self._principal: KafkaPrincipal | None = None
        self._expires_at_ms: int | None = None
        self._reauthenticating = False
        self._reauthentication_began_ms: int | None = None

    def __repr__(self) -> str:
        return f"SaslServerMachine({self._state.name}, mechanism={self._mechanism!r})"

    @property
    def state(self) -> SaslState:
        """The state of the session."""
        return self._state

    @property
    def principal(self) -> KafkaPrincipal | None:
        """The principal of the session, None before the login; it does not change during a
        re-authentication."""
        return self._principal if self._state is not SaslState.FAILED else None

    @property
    def mechanism(self) -> str:
        """The negotiated mechanism, empty before that."""
        return self._mechanism

    @property
    def claimed_name(self) -> str | None:
        """The name claimed in the last exchange, proven or not, truncated; None if none was claimed."""
        return self._claimed_name

    @property
    def is_reauthenticating(self) -> bool:
        """Whether a session is re-authenticating, or failed to."""
        return self._reauthenticating

    def wants(self, frame: bytes) -> bool:
        """Return whether a frame of a session may belong to a re-authentication, or the session has
        expired."""
        is_over = self._expires_at_ms is not None and self.is_expired()
        return is_over or self._state is not SaslState.COMPLETE or frame[:2] == SASL_HANDSHAKE

    def is_expired(self, in_ms: int = 0) -> bool:
        """Return whether the session expires within `in_ms`: then any frame but a SaslHandshake closes it."""
        return self._expires_at_ms is not None and self._clock.monotonic_ms() + in_ms >= self._expires_at_ms

    def receive(self, frame: bytes) -> tuple[SaslEffect, ...]:
        """Return the effects of one frame, given without its length prefix; never raise for its bytes.

        Return no effects once the machine has failed. The caller enforces the frame limit
        (`max_receive_size`), see `oversized`.
        """
        understand = _UNDERSTAND.get(self._state)
        if understand is None:
            return ()
        self._frames += 1
        if self._frames > FRAMES_PER_AUTHENTICATION:
            reason = f"more than {FRAMES_PER_AUTHENTICATION} frames"
            return self._follow(Seen(SaslEvent.TOO_MANY_FRAMES, reason=reason))
        return self._follow(understand(self, frame))

    def resume(self, outcome: LoginStep) -> tuple[SaslEffect, ...]:
        """Return the effects after the step of a `RunInThread` has ended; `outcome` returns or raises it."""
        if self._state is not SaslState.VERIFYING or self._exchange is None:
            return ()
        return self._follow(self._judge(self._exchange, self._waiting, outcome))

    def may_guess(self, frame: bytes) -> bool:
        """Return whether this frame of a re-authentication may guess a password, without checking it.

        It cannot if it has the user of the session's own login, or credentials that cannot be guessed.
        """
        token = token_in(frame) if self._in_requests else frame
        if self._exchange is None or self._proven is None or token is None:
            return True
        claimed = self._exchange.claim(token)
        return claimed is not UNGUESSABLE and claimed != self._proven

    def oversized(self) -> tuple[SaslEffect, ...]:
        """Return the effects of a frame length that is negative or above `max_receive_size`."""
        if self._state is SaslState.FAILED:
            return ()
        self._state = SaslState.FAILED
        return (self._fail(b"", "invalid receive size"),)

    def begin_reauthentication(self, frame: bytes) -> tuple[SaslEffect, ...] | None:
        """Return the effects of a SaslHandshake in a session (KIP-368).

        None if it does not start a re-authentication (the session cannot expire, or the last one started less
        than a second ago): then it is an ordinary request, answered with ILLEGAL_SASL_STATE. Later frames go
        to `receive` until the state is COMPLETE again.
        """
        if self._state is not SaslState.COMPLETE or self._expires_at_ms is None:
            return None
        now_ms = self._clock.monotonic_ms()
        began_ms = self._reauthentication_began_ms
        if began_ms is not None and now_ms - began_ms < MIN_REAUTHENTICATION_INTERVAL_MS:
            return None
        self._reauthentication_began_ms = now_ms
        self._reauthenticating = True
        self._in_requests = False
        self._exchange = None
        self._frames = 0
        self._follow(Seen(SaslEvent.REAUTHENTICATION))
        return self.receive(frame)

    def _understand_handshake(self, frame: bytes) -> Seen:
        try:
            request = read_opening(frame)
        except MalformedMessageError as error:
            hint = NO_REQUEST_HINT if self._state is SaslState.INITIAL else str(error)
            return Seen(SaslEvent.UNREADABLE, reason=hint)
        if request.api_key == _API_VERSIONS:
            return understand_versions(request)
        if request.api_key != _HANDSHAKE or request.body is None:
            return Seen(SaslEvent.OTHER_API, reason=f"{request.api_name} request during SASL handshake")
        mechanism = request.body.mechanism
        if mechanism not in self._factories:
            return Seen(SaslEvent.HANDSHAKE_UNKNOWN_MECHANISM, request, reason="unsupported SASL mechanism")
        self._requested = mechanism
        if self._reauthenticating and mechanism != self._mechanism:
            return Seen(SaslEvent.HANDSHAKE_CHANGED_MECHANISM, request)
        return Seen(_AGREES, request)

    def _understand_token(self, frame: bytes) -> Seen:
        if not self._in_requests:
            return self._step(None, frame)
        try:
            request = read_request(frame, TOKENS)
        except MalformedMessageError as error:
            return Seen(SaslEvent.UNREADABLE, reason=str(error))
        if request.body is None:
            reason = f"{request.api_name} request during SASL authentication"
            return Seen(SaslEvent.OTHER_API, request, reason=reason)
        return self._step(request, request.body.auth_bytes)

    def _step(self, request: SaslRequest | None, token: bytes) -> Seen:
        """Pass a token to the mechanism."""
        exchange = self._exchange
        if exchange is None:
            return Seen(SaslEvent.UNREADABLE, reason="no exchange is under way")
        return self._judge(exchange, request, partial(exchange.respond, token))

    def _judge(self, exchange: ServerMechanism, request: SaslRequest | None, take: AnyStep) -> Seen:
        """Classify a step of the mechanism; every kind of refusal is one event."""
        try:
            try:
                step = take()
            finally:
                self._claimed_name = (exchange.claimed_name or "")[:CLAIMED_NAME_MAX_CHARACTERS] or None
            if isinstance(step, Challenge):
                return Seen(_CONTINUES, request, step)
            if isinstance(step, BlockingStep):
                return Seen(SaslEvent.PROOF_PENDING, request, step)
            principal = self._principal_of(step)
        except Exception as error:  # noqa: BLE001 - fail closed: a broken credential store must deny
            return refused(request, error, self._mechanism, is_reauthentication=self._reauthenticating)
        return Seen(_ACCEPTED, request, step, principal)

    def _principal_of(self, step: Proven) -> KafkaPrincipal:
        expires_at_ms = step.credential_expires_at_ms
        if expires_at_ms is not None and expires_at_ms <= self._clock.wall_ms():
            # Kafka admits it with a session that has already expired; kustos refuses it
            raise SaslMechanismError("the credential has expired")
        principal = self._principal_of_login(self._mechanism, step)
        if self._reauthenticating:
            refuse_change(self._principal, principal)
        return principal

    def _understand_bad_mechanism(self, frame: bytes) -> Seen:
        del frame  # Kafka waits for this frame only to fail on it
        return Seen(
            SaslEvent.BAD_MECHANISM_FOLLOWS,
            reason=f"SASL mechanism '{self._requested}' requested by client is not supported for "
            f"re-authentication of mechanism '{self._mechanism}'",
        )

    def _understand_nothing(self, frame: bytes) -> Seen:
        del frame
        return Seen(SaslEvent.UNREADABLE, reason=f"no frame is expected in state {self._state.name}")

    def _follow(self, seen: Seen) -> tuple[SaslEffect, ...]:
        row = transition(self._state, seen.event)
        self._state = row.target
        effects = _ACT[row.action](self, seen, row)
        if self._state in _ENDS:
            self._exchange = None
        return effects

    def _fail(self, response: bytes, reason: str) -> Fail:
        return Fail(response, reason, self._settings.failed_authentication_delay_ms)

    def _answer_versions(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        request = seen.request
        if request is None:
            return self._close(seen, row)
        return (SendFrame(answer(request, self._api_versions(request.api_version))),)

    def _refuse_versions(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        if seen.request is None:
            return self._close(seen, row)
        unknown = row.action is SaslAction.REFUSE_VERSION
        code = SaslErrorCode.UNSUPPORTED_VERSION if unknown else SaslErrorCode.INVALID_REQUEST
        return (SendFrame(versions_refusal(seen.request, code)),)

    def _agree(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        if seen.request is None:
            return self._close(seen, row)
        if seen.event is _AGREES:
            self._mechanism = self._requested
            self._exchange = self._factories[self._mechanism]()
        self._in_requests = seen.request.api_version >= 1
        self._claimed_name = None
        return (SendFrame(handshake_answer(seen.request, SaslErrorCode.NONE, tuple(self._factories))),)

    def _refuse_mechanism(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        if seen.request is None:
            return self._close(seen, row)
        code = SaslErrorCode.UNSUPPORTED_SASL_MECHANISM
        return (self._fail(handshake_answer(seen.request, code, tuple(self._factories)), seen.reason),)

    def _wait(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        self._waiting, step = seen.request, seen.step
        if not isinstance(step, BlockingStep):
            return self._close(seen, row)
        return (RunInThread(step.run, step.group, step.timeout_ms),)

    def _challenge(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        if not isinstance(seen.step, Challenge):
            return self._close(seen, row)
        sent = SendFrame(carry(seen.request, seen.step.token, 0))
        return (sent,) if seen.step.refusal is None else (seen.step.refusal, sent)

    def _admit(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        step, principal = seen.step, seen.principal
        if not isinstance(step, Proven) or principal is None:
            return self._close(seen, row)
        max_reauth_ms = self._settings.connections_max_reauth_ms.get(self._mechanism, 0)
        life = session_life(self._clock, step.credential_expires_at_ms, max_reauth_ms)
        authenticated = Authenticated(
            principal, self._mechanism, life.lifetime_ms, life.expires_at_ms, self._reauthenticating
        )
        name = "" if self._exchange is None else self._exchange.claimed_name
        self._proven = Claimant(name or "", step.token_authenticated)
        self._principal = principal
        self._expires_at_ms = life.expires_at_ms
        self._reauthenticating = False
        if seen.request is None and not step.has_last_token:
            return (authenticated,)
        return SendFrame(carry(seen.request, step.token, life.lifetime_ms)), authenticated

    def _refuse_proof(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        del row
        response = b"" if seen.request is None else token_refusal(seen.request, seen.text)
        delay_ms = self._settings.failed_authentication_delay_ms
        return (Fail(response, seen.reason, delay_ms, seen.was_judged, seen.was_announced),)

    def _refuse_state(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        if seen.request is None:
            return self._close(seen, row)
        return (self._fail(state_refusal(seen.request, self._error_body), seen.reason),)

    def _fail_silently(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        del row
        return (self._fail(b"", seen.reason),)

    def _close(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        self._state = SaslState.FAILED
        reason = seen.reason or f"unexpected {seen.event.value} in state {row.state.name}"
        return (Close(reason),)

    def _begin(self, seen: Seen, row: Transition) -> tuple[SaslEffect, ...]:
        del seen, row
        return ()


_M = SaslServerMachine
_UNDERSTAND: Final[Mapping[SaslState, Callable[[_M, bytes], Seen]]] = {
    SaslState.INITIAL: _M._understand_handshake,
    SaslState.HANDSHAKE_OR_VERSIONS: _M._understand_handshake,
    SaslState.HANDSHAKE: _M._understand_handshake,
    SaslState.REAUTHENTICATION_HANDSHAKE: _M._understand_handshake,
    SaslState.REAUTHENTICATION_BAD_MECHANISM: _M._understand_bad_mechanism,
    SaslState.AUTHENTICATE: _M._understand_token,
    SaslState.VERIFYING: _M._understand_nothing,
    SaslState.COMPLETE: _M._understand_nothing,
}
_ACT: Final[Mapping[SaslAction, Callable[[_M, Seen, Transition], tuple[SaslEffect, ...]]]] = {
    SaslAction.ANSWER_VERSIONS: _M._answer_versions,
    SaslAction.REFUSE_VERSION: _M._refuse_versions,
    SaslAction.REFUSE_SOFTWARE: _M._refuse_versions,
    SaslAction.AGREE: _M._agree,
    SaslAction.REFUSE_MECHANISM: _M._refuse_mechanism,
    SaslAction.WAIT: _M._wait,
    SaslAction.CHALLENGE: _M._challenge,
    SaslAction.ADMIT: _M._admit,
    SaslAction.REFUSE_PROOF: _M._refuse_proof,
    SaslAction.REFUSE_STATE: _M._refuse_state,
    SaslAction.FAIL_SILENTLY: _M._fail_silently,
    SaslAction.CLOSE: _M._close,
    SaslAction.BEGIN: _M._begin,
}
