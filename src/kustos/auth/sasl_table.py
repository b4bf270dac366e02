"""The transitions of the SASL server as a table (Kafka's SaslServerAuthenticator, KIP-43, KIP-152, KIP-368).

The server first classifies a frame as one event; the table determines the action and the next state. Any
event that is not in the table closes the connection, and so does a re-authentication with a mechanism that is
not enabled, as in Kafka. The diagram in the documentation is generated from the table.
"""

from dataclasses import dataclass
from enum import auto, unique
from typing import Final

from kustos.runtime import Symbol


@unique
class SaslState(Symbol):
    """The states of a session during its authentication."""

    INITIAL = auto()
    """No valid frame has been received yet."""
    HANDSHAKE_OR_VERSIONS = auto()
    """An ApiVersions was refused; the client may try again or shake hands."""
    HANDSHAKE = auto()
    """ApiVersions was answered; only SaslHandshake may follow."""
    AUTHENTICATE = auto()
    """The mechanism is negotiated; tokens follow, bare or in SaslAuthenticate."""
    VERIFYING = auto()
    """A token is being checked outside the event loop; no frame may arrive in the meantime."""
    COMPLETE = auto()
    """The client has a principal."""
    REAUTHENTICATION_HANDSHAKE = auto()
    """A SaslHandshake of a session will be read next."""
    REAUTHENTICATION_BAD_MECHANISM = auto()
    """The handshake named another mechanism than the session's; the next frame ends it."""
    FAILED = auto()
    """The login failed; nothing is accepted."""


@unique
class SaslEvent(Symbol):
    """The meaning of a frame in the current state."""

    UNREADABLE = "not a readable request"
    OTHER_API = "another API"
    VERSIONS = "ApiVersions"
    VERSIONS_UNSUPPORTED = "ApiVersions of an unknown version"
    VERSIONS_INVALID = "ApiVersions with an invalid software name"
    HANDSHAKE = "SaslHandshake"
    HANDSHAKE_UNKNOWN_MECHANISM = "SaslHandshake for a mechanism not enabled"
    HANDSHAKE_CHANGED_MECHANISM = "SaslHandshake for another mechanism"
    PROOF_PENDING = "token, checked off the loop"
    PROOF_CONTINUES = "token, more needed"
    PROOF_ACCEPTED = "token that proves"
    PROOF_REFUSED = "token refused"
    BAD_MECHANISM_FOLLOWS = "any frame"
    TOO_MANY_FRAMES = "too many frames"
    REAUTHENTICATION = "SaslHandshake on a session that can expire"


@unique
class SaslAction(Symbol):
    """The action for an event."""

    ANSWER_VERSIONS = "answer"
    REFUSE_VERSION = "answer UNSUPPORTED_VERSION"
    REFUSE_SOFTWARE = "answer INVALID_REQUEST"
    AGREE = "answer with the mechanisms"
    REFUSE_MECHANISM = "fail with UNSUPPORTED_SASL_MECHANISM"
    WAIT = "wait"
    CHALLENGE = "answer the token"
    ADMIT = "answer, then authenticated"
    REFUSE_PROOF = "fail with SASL_AUTHENTICATION_FAILED"
    REFUSE_STATE = "fail with ILLEGAL_SASL_STATE"
    FAIL_SILENTLY = "fail without an answer"
    CLOSE = "close"
    BEGIN = "read the handshake"


@dataclass(frozen=True, slots=True)
class Transition:
    """In `state`, on `event`: do `action` and be in `target`."""

    state: SaslState
    event: SaslEvent
    action: SaslAction
    target: SaslState


_S, _E, _A = SaslState, SaslEvent, SaslAction


def _before_handshake(state: SaslState) -> tuple[Transition, ...]:
    """Return the rows shared by the two states that allow an ApiVersions."""
    return (
        Transition(state, _E.VERSIONS, _A.ANSWER_VERSIONS, _S.HANDSHAKE),
        Transition(state, _E.VERSIONS_UNSUPPORTED, _A.REFUSE_VERSION, _S.HANDSHAKE_OR_VERSIONS),
        Transition(state, _E.VERSIONS_INVALID, _A.REFUSE_SOFTWARE, _S.HANDSHAKE_OR_VERSIONS),
        Transition(state, _E.HANDSHAKE, _A.AGREE, _S.AUTHENTICATE),
        Transition(state, _E.HANDSHAKE_UNKNOWN_MECHANISM, _A.REFUSE_MECHANISM, _S.FAILED),
    )


def _after_a_token(state: SaslState) -> tuple[Transition, ...]:
    """Return the rows of a checked token, for checks within and outside the event loop."""
    return (
        Transition(state, _E.PROOF_CONTINUES, _A.CHALLENGE, _S.AUTHENTICATE),
        Transition(state, _E.PROOF_ACCEPTED, _A.ADMIT, _S.COMPLETE),
        Transition(state, _E.PROOF_REFUSED, _A.REFUSE_PROOF, _S.FAILED),
    )


SASL_SERVER_TRANSITIONS: Final[tuple[Transition, ...]] = (
    *_before_handshake(_S.INITIAL),
    *_before_handshake(_S.HANDSHAKE_OR_VERSIONS),
    Transition(_S.HANDSHAKE, _E.HANDSHAKE, _A.AGREE, _S.AUTHENTICATE),
    Transition(_S.HANDSHAKE, _E.HANDSHAKE_UNKNOWN_MECHANISM, _A.REFUSE_MECHANISM, _S.FAILED),
    *_after_a_token(_S.AUTHENTICATE),
    *_after_a_token(_S.VERIFYING),
    Transition(_S.AUTHENTICATE, _E.PROOF_PENDING, _A.WAIT, _S.VERIFYING),
    # a callback handler found the credential; its threads must not hash
    Transition(_S.VERIFYING, _E.PROOF_PENDING, _A.WAIT, _S.VERIFYING),
    Transition(_S.AUTHENTICATE, _E.OTHER_API, _A.REFUSE_STATE, _S.FAILED),
    Transition(_S.COMPLETE, _E.REAUTHENTICATION, _A.BEGIN, _S.REAUTHENTICATION_HANDSHAKE),
    Transition(_S.REAUTHENTICATION_HANDSHAKE, _E.HANDSHAKE, _A.AGREE, _S.AUTHENTICATE),
    Transition(
        _S.REAUTHENTICATION_HANDSHAKE,
        _E.HANDSHAKE_CHANGED_MECHANISM,
        _A.AGREE,
        _S.REAUTHENTICATION_BAD_MECHANISM,
    ),
    Transition(_S.REAUTHENTICATION_BAD_MECHANISM, _E.BAD_MECHANISM_FOLLOWS, _A.FAIL_SILENTLY, _S.FAILED),
)

_INDEX: Final = {(row.state, row.event): row for row in SASL_SERVER_TRANSITIONS}


def transition(state: SaslState, event: SaslEvent) -> Transition:
    """Return the row for this state and event, the closing row if the table has none."""
    return _INDEX.get((state, event)) or Transition(state, event, SaslAction.CLOSE, SaslState.FAILED)


def sasl_server_diagram() -> str:
    """Return the diagram as Mermaid source, one arrow per transition; a note lists the closing ones."""
    lines = ["stateDiagram-v2", f"    [*] --> {SaslState.INITIAL.name}"]
    lines += [
        f"    {row.state.name} --> {row.target.name}: {row.event.value} / {row.action.value}"
        for row in SASL_SERVER_TRANSITIONS
    ]
    lines += [
        f"    {SaslState.FAILED.name} --> [*]",
        f"    note right of {SaslState.FAILED.name}: whatever has no arrow closes the connection",
    ]
    return "\n".join(lines) + "\n"
