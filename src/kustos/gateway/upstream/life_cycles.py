"""The life cycles of an upstream link and of a request in flight, as tables; `link` performs the IO."""

from enum import unique
from typing import Final

from kustos.gateway.life_cycle import LifeCycle
from kustos.runtime import Symbol


@unique
class LinkState(Symbol):
    """The states of an upstream link."""

    OPEN = "Requests go to the broker, answers go to the client."
    THROTTLED = "The broker throttles the connection (KIP-219): requests wait."
    DUE = "The session at the broker ends soon (KIP-368): the next request waits for a login."
    RENEWING = "A login runs on the connection, with nothing else in flight."
    DRAINING = "The client is gone. Answers that the broker still owes are read and dropped."
    FINISHING = "The client is gone and nothing is owed. The socket closes after its last bytes were sent."
    CUT = "The connection was reset. Unanswered requests count as in flight."
    LOST = "The connection is gone. Unanswered requests count as in flight."
    CLOSED = "The connection is gone, and the broker has nothing of it."


@unique
class LinkEvent(Symbol):
    """The events that change the state of a link, and their causes."""

    THROTTLES = "the broker throttles"
    UNTHROTTLES = "the throttle time is over"
    FALLS_DUE = "the session falls due"
    LOGIN_BEGINS = "a request finds the session due"
    LOGIN_SUCCEEDS = "the broker accepts the login"
    LOGIN_FAILS = "the login fails"
    CLIENT_LEAVES_OWED = "the client half closes the link, answers are owed"
    CLIENT_LEAVES = "the client half closes the link, nothing is owed"
    LAST_ANSWER_COMES = "the broker sends the last answer"
    DRAIN_TIMES_OUT = "the broker sends no answer in time"
    REQUEST_FORBIDDEN = "the ACLs or the end of the session forbid a request"
    PROTOCOL_BROKEN = "the broker breaks the protocol"
    CONNECTION_LOST_OWED = "the connection is lost, answers are owed"
    CONNECTION_LOST = "the connection is lost, nothing is owed"
    FORGOTTEN = "the broker proves that it is alive, or is given up"


_S, _E = LinkState, LinkEvent

SERVING: Final = frozenset({_S.OPEN, _S.THROTTLED, _S.DUE, _S.RENEWING})
"""The client is connected: the link takes requests and passes answers on."""

SENDING: Final = frozenset({_S.OPEN, _S.DUE})
"""The link sends requests in their order; in DUE only the rest of partly sent ones."""

CONNECTED: Final = SERVING | {_S.DRAINING}
"""The link reads answers."""

_SENT: Final = (_S.OPEN, _S.THROTTLED, _S.DUE)
"""The serving states in which requests may be in flight."""

LINK_LIFE: Final = LifeCycle[LinkState, LinkEvent](
    _S.OPEN,
    (
        (_S.OPEN, _E.THROTTLES, _S.THROTTLED),
        (_S.DUE, _E.THROTTLES, _S.THROTTLED),
        # the answer to another request that the broker had already
        (_S.THROTTLED, _E.THROTTLES, _S.THROTTLED),
        (_S.THROTTLED, _E.UNTHROTTLES, _S.OPEN),
        (_S.OPEN, _E.FALLS_DUE, _S.DUE),
        # the link is due when it is open again
        (_S.THROTTLED, _E.FALLS_DUE, _S.THROTTLED),
        (_S.DUE, _E.LOGIN_BEGINS, _S.RENEWING),
        (_S.RENEWING, _E.LOGIN_SUCCEEDS, _S.OPEN),
        (_S.RENEWING, _E.LOGIN_FAILS, _S.CUT),
        # a bug in the gateway after the login, in the task of the login
        (_S.OPEN, _E.LOGIN_FAILS, _S.CUT),
        *((state, _E.CLIENT_LEAVES_OWED, _S.DRAINING) for state in _SENT),
        *((state, _E.CLIENT_LEAVES, _S.FINISHING) for state in (*_SENT, _S.RENEWING)),
        (_S.DRAINING, _E.LAST_ANSWER_COMES, _S.FINISHING),
        (_S.DRAINING, _E.DRAIN_TIMES_OUT, _S.CUT),
        # while the broker throttles, only its answers prove that it is done: the link drains
        *((state, _E.REQUEST_FORBIDDEN, _S.CUT) for state in (_S.OPEN, _S.DUE, _S.DRAINING)),
        *((state, _E.PROTOCOL_BROKEN, _S.CUT) for state in (*_SENT, _S.RENEWING, _S.DRAINING)),
        *((state, _E.CONNECTION_LOST_OWED, _S.LOST) for state in (*_SENT, _S.DRAINING, _S.CUT)),
        *(
            (state, _E.CONNECTION_LOST, _S.CLOSED)
            for state in (*_SENT, _S.RENEWING, _S.DRAINING, _S.FINISHING, _S.CUT)
        ),
        (_S.CUT, _E.FORGOTTEN, _S.CUT),
        (_S.LOST, _E.FORGOTTEN, _S.CLOSED),
        # two changes waited for the same broker
        (_S.CLOSED, _E.FORGOTTEN, _S.CLOSED),
    ),
)


@unique
class RequestState(Symbol):
    """The states of a request on a link."""

    NEW = "The link has not taken it yet."
    HELD = "Nothing of it was sent: a throttle time or a login comes first."
    PARTIAL = "It was sent without its last byte, so the broker does not begin with it."
    SENT = "The broker has the whole request and owes the answer."
    ANSWERED = "The last byte of its answer has arrived."
    WITHDRAWN = "The broker never gets the whole request."
    FORGOTTEN = "No answer comes any more, and the broker does not work on it."


@unique
class RequestEvent(Symbol):
    """The events that change the state of a request on a link."""

    WAITS = "the broker throttles, or the session is due"
    FOLLOWS = "it follows a request that may take long"
    GOES = "the broker can begin soon"
    MAY_BEGIN = "its turn comes, and it is still allowed"
    ANSWER_COMES = "the broker answers"
    LINK_ENDS = "the link ends before its turn comes"
    FORGOTTEN = "the broker closes the connection, proves that it is alive, or is given up"


_R, _Q = RequestState, RequestEvent

REQUEST_LIFE: Final = LifeCycle[RequestState, RequestEvent](
    _R.NEW,
    (
        (_R.NEW, _Q.WAITS, _R.HELD),
        (_R.NEW, _Q.FOLLOWS, _R.PARTIAL),
        (_R.NEW, _Q.GOES, _R.SENT),
        (_R.HELD, _Q.MAY_BEGIN, _R.SENT),
        (_R.PARTIAL, _Q.MAY_BEGIN, _R.SENT),
        (_R.SENT, _Q.ANSWER_COMES, _R.ANSWERED),
        (_R.HELD, _Q.LINK_ENDS, _R.WITHDRAWN),
        (_R.PARTIAL, _Q.LINK_ENDS, _R.WITHDRAWN),
        (_R.SENT, _Q.FORGOTTEN, _R.FORGOTTEN),
    ),
)
