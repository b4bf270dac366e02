"""The life cycle of a client connection, as a table; `connection` performs the IO."""

from enum import unique
from typing import Final

from kustos.gateway.life_cycle import LifeCycle
from kustos.runtime import Symbol


@unique
class ConnectionState(Symbol):
    """The states of a client connection."""

    ACCEPTED = "The socket is accepted, and nothing was read."
    HANDSHAKING = "The TLS handshake is in progress."
    AUTHENTICATING = "Frames go to the login, and to nothing else."
    REFUSED = "A login failed. Nothing is read. The refusal is sent after a delay and ends the connection."
    SERVING = "Frames go to the session of the principal."
    DRAINING = "The node stops once requests in flight are answered. What the client sends is dropped."
    HALF_CLOSED = "The last answers and the end of the stream were sent. What the client sends is dropped."
    CLOSING = "The socket closes once its last bytes are sent."
    CLOSED = "The socket is gone."


@unique
class ConnectionEvent(Symbol):
    """The events that change the state of a client connection, and their causes."""

    HANDSHAKE_BEGINS = "the listener has TLS"
    LOGIN_BEGINS = "the listener requires a login"
    AUTHENTICATED = "the principal is known"
    LOGIN_FAILS = "a login fails"
    NODE_STOPS_OWING = "the node stops, answers are owed"
    NODE_STOPS_UNSENT = "the node stops before the client has taken its last answers"
    ENDS = "kustos ends the connection"
    SOCKET_LOST = "the client or the network closes the socket"


_S, _E = ConnectionState, ConnectionEvent

TAKING: Final = frozenset({_S.AUTHENTICATING, _S.SERVING})
"""The connection takes frames from the client."""

DROPPING: Final = frozenset({_S.DRAINING, _S.HALF_CLOSED})
"""The connection reads and drops bytes from the client: a socket that is closed with unread bytes is reset,
and the client loses the answers that it has not read yet."""

ENDED: Final = frozenset({_S.HALF_CLOSED, _S.CLOSING, _S.CLOSED})
"""The connection no longer takes or writes anything."""

_OPEN: Final = (_S.HANDSHAKING, _S.AUTHENTICATING, _S.REFUSED, _S.SERVING)

CONNECTION_LIFE: Final = LifeCycle[ConnectionState, ConnectionEvent](
    _S.ACCEPTED,
    (
        (_S.ACCEPTED, _E.HANDSHAKE_BEGINS, _S.HANDSHAKING),
        *((state, _E.LOGIN_BEGINS, _S.AUTHENTICATING) for state in (_S.ACCEPTED, _S.HANDSHAKING)),
        *(
            (state, _E.AUTHENTICATED, _S.SERVING)
            for state in (_S.ACCEPTED, _S.HANDSHAKING, _S.AUTHENTICATING)
        ),
        # a login of a live session (KIP-368) begins and ends while no answer is owed
        *((state, _E.LOGIN_FAILS, _S.REFUSED) for state in (_S.AUTHENTICATING, _S.SERVING)),
        (_S.SERVING, _E.NODE_STOPS_OWING, _S.DRAINING),
        *((state, _E.NODE_STOPS_UNSENT, _S.HALF_CLOSED) for state in _OPEN),
        *((state, _E.ENDS, _S.CLOSING) for state in (_S.ACCEPTED, *_OPEN)),
        (_S.DRAINING, _E.ENDS, _S.HALF_CLOSED),
        *(
            # in ACCEPTED only if a bug prevented the handshake or login of the connection
            (state, _E.SOCKET_LOST, _S.CLOSED)
            for state in (_S.ACCEPTED, *_OPEN, _S.DRAINING, _S.HALF_CLOSED, _S.CLOSING)
        ),
    ),
)
