"""Classifies the frames of a login: the event, and the values that its action needs."""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from kustos.acl import KafkaPrincipal
from kustos.auth.errors import (
    REFUSAL_MAX_CHARACTERS,
    AnnouncedRefusalError,
    SaslAuthenticationError,
    SaslMechanismError,
)
from kustos.auth.mechanisms.base import BlockingStep, MechanismStep
from kustos.auth.sasl_requests import SaslRequest, token_answer
from kustos.auth.sasl_table import SaslEvent

AnyStep = Callable[[], MechanismStep | BlockingStep]
"""Returns a step of a mechanism, or raises its refusal."""

_VERSIONS: Final = SaslEvent.VERSIONS
_LENGTH: Final = struct.Struct(">i")


class Seen(NamedTuple):
    """A classified frame: its event and the values that the action needs."""

    event: SaslEvent
    request: SaslRequest | None = None
    step: MechanismStep | BlockingStep | None = None
    principal: KafkaPrincipal | None = None
    text: str = ""
    """For the peer."""
    reason: str = ""
    """For the log."""
    was_judged: bool = False
    """Whether the proof was checked and is wrong."""
    was_announced: bool = False
    """Whether a challenge announced the refusal before."""


def understand_versions(request: SaslRequest) -> Seen:
    """Classify an ApiVersions request."""
    if request.body is None:
        return Seen(SaslEvent.VERSIONS_UNSUPPORTED, request)
    if not request.is_valid:
        return Seen(SaslEvent.VERSIONS_INVALID, request)
    return Seen(_VERSIONS, request)


def refused(
    request: SaslRequest | None, error: Exception, mechanism: str, *, is_reauthentication: bool
) -> Seen:
    """Return a refused proof; any exception but a refusal means that the credentials were not judged."""
    phase = "re-authentication" if is_reauthentication else "authentication"
    text = f"Authentication failed during {phase} due to invalid credentials with SASL mechanism {mechanism}"
    was_judged = False
    match error:
        case SaslAuthenticationError():
            text, reason, was_judged = str(error), error.reason, error.was_judged
        case SaslMechanismError():
            reason, was_judged = str(error), error.was_judged
        case _:
            # only the type: the text of another library's error may contain bytes of the peer
            reason = f"the {mechanism} mechanism raised {type(error).__name__}"
    return Seen(
        SaslEvent.PROOF_REFUSED,
        request,
        text=_cut(text),
        reason=_cut(reason),
        was_judged=was_judged,
        was_announced=isinstance(error, AnnouncedRefusalError),
    )


def _cut(text: str) -> str:
    """Return a text that an answer can contain: short, and without lone surrogates."""
    return text[:REFUSAL_MAX_CHARACTERS].encode(errors="replace").decode()


def carry(request: SaslRequest | None, token: bytes, session_lifetime_ms: int) -> bytes:
    """Return a token in the form of the handshake's version: in an answer, or as a bare frame."""
    if request is None:
        return _LENGTH.pack(len(token)) + token
    return token_answer(request, token, session_lifetime_ms)
