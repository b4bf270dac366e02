"""The effects that the SASL server machine returns to the owner of the connection."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kustos.acl import KafkaPrincipal
from kustos.auth.mechanisms.base import BlockingStep, MechanismStep, ProofRefused

LoginStep = Callable[[], MechanismStep | BlockingStep]
"""Returns a step of a login, or raises its refusal."""


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Send these bytes now; their length prefix is included."""

    data: bytes = field(repr=False)


class Authenticated(NamedTuple):
    """The session belongs to this principal from now on; send the effects before it in the tuple first.

    `session_lifetime_ms` is the lifetime reported to the client, 0 if none. From `expires_at_ms` on, by the
    monotonic clock, only a SaslHandshake is accepted; None for never.
    """

    principal: KafkaPrincipal
    mechanism: str
    session_lifetime_ms: int
    expires_at_ms: int | None
    is_reauthentication: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """Wait `delay_ms`, send `response` if there is any, then close; read nothing more meanwhile.

    The wait is `connection.failed.authentication.delay.ms` and slows guessing. `response` is a whole frame,
    empty where Kafka closes without an answer. `reason` is for the log. `was_judged`: the credentials were
    checked and are wrong; False if the login failed for another reason, such as a malformed message or a
    failed user store. `was_announced`: a `ProofRefused` reported this failure before.
    """

    response: bytes = field(repr=False)
    reason: str
    delay_ms: int
    was_judged: bool = False
    was_announced: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Close now, without an answer; `reason` is for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class RunInThread:
    """Call `step` in a thread, then call the machine's `resume` with a function that returns its result or
    raises its exception.

    With a time limit, the outcome after that time is a `CallbackError`, and the step runs in the threads of
    `group`, so hanging steps delay only their own group. Without a time limit, steps of the group `HASHING`
    run one after another.
    """

    step: LoginStep = field(repr=False)
    group: str = ""
    timeout_ms: int | None = None


SaslEffect = RunInThread | SendFrame | Authenticated | ProofRefused | Fail | Close
