"""The life cycle of a client's request in its session, as a table; `client_session` performs the IO."""

from enum import unique
from typing import Final

from kustos.gateway.life_cycle import LifeCycle
from kustos.runtime import Symbol


@unique
class SlotState(Symbol):
    """The states of a client's request."""

    RUNNING = "Its handler runs within this turn of the event loop."
    YIELDED = "Its handler let other requests go first. It waits for the next turn."
    QUEUED = "Its large answer is there. It waits for a turn to read it."
    RESUMED = "Its handler runs again. The ACLs must still allow what they allowed before."
    HELD = "It waits for work of kustos: a question about the cluster, or a change."
    SENT = "It waits for upstream's answer."
    DONE = "Its answer is known and waits for those before it."


@unique
class SlotEvent(Symbol):
    """The events that change the state of a client's request."""

    YIELDS = "the handler yields"
    NEEDS_WORK = "the handler needs work that takes time"
    ASKS = "the handler or a plan asks upstream"
    ANSWER_COMES = "upstream answers"
    MUST_QUEUE = "the answer is large and others wait"
    GOES_ON = "its turn comes"
    STILL_ALLOWED = "the ACLs still allow it"
    ENDS = "its answer is known"


_S, _E = SlotState, SlotEvent

SLOT_LIFE: Final = LifeCycle[SlotState, SlotEvent](
    _S.RUNNING,
    (
        (_S.RUNNING, _E.YIELDS, _S.YIELDED),
        (_S.RUNNING, _E.NEEDS_WORK, _S.HELD),
        (_S.RUNNING, _E.ASKS, _S.SENT),
        (_S.RUNNING, _E.MUST_QUEUE, _S.QUEUED),
        (_S.RUNNING, _E.ENDS, _S.DONE),
        (_S.YIELDED, _E.GOES_ON, _S.RESUMED),
        (_S.QUEUED, _E.GOES_ON, _S.RESUMED),
        (_S.RESUMED, _E.YIELDS, _S.YIELDED),
        (_S.RESUMED, _E.STILL_ALLOWED, _S.RUNNING),
        (_S.HELD, _E.GOES_ON, _S.RUNNING),
        (_S.SENT, _E.ANSWER_COMES, _S.RUNNING),
    ),
)
