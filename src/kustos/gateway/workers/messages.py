"""The messages between the writer process and a worker: one table, and their encoding.

A frame is a length of four bytes, the code of the message, and its fields in the order of the table.

| Order | Sender | Messages |
|---|---|---|
| 1 | writer | `Welcome`, `Records` as often as needed, `Loaded`, then each `Delta` in the log's order |
| 2 | worker | `Applied`: it decides by the log up to there; from then on changes wait for it |
| 3 | writer | `OpenListeners`: carried out once every `Delta` before it is in force |
| 4 | worker | `Serving`: its listeners are open |

All other messages may come at any time after that. An unknown message, or one whose length does not fit its
table, closes the channel.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Any, Final
from uuid import UUID

from kustos.gateway.workers import encoding as forms
from kustos.gateway.workers.changes import REQUEST, RESULTS
from kustos.gateway.workers.encoding import (
    BYTES,
    FLAG,
    INT32,
    INT64,
    TEXT,
    UUID16,
    ChannelError,
    Cursor,
    Form,
)

FRAME_MAX_BYTES: Final = 64 * 1024 * 1024
"""The longest message: several times the longest batch of the log (8 MiB), as results name what was
deleted."""

LARGE_FRAME_BYTES: Final = 32 * 1024
"""A frame of this size with a change, its results or a delta takes some milliseconds to parse."""

_LENGTH_SIZE: Final = 4


@dataclass(frozen=True, slots=True)
class Welcome:
    """The node of the worker, and its settings as the file had them when the node started."""

    index: int
    cluster_id: str
    node_id: int
    directory_id: UUID | None
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of the initial image: a record batch, as in snapshots."""

    batch: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The initial image is complete, at this offset and epoch."""

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Delta:
    """The records of one batch of the log, after which the image stands at `offset`."""

    offset: int
    epoch: int
    values: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenListeners:
    """Changes wait for this worker from now on: open the listeners."""


@dataclass(frozen=True, slots=True)
class ChangeResults:
    """The results of a change; it is durable, and in force in every worker."""

    id: int
    results: tuple[Any, ...] = field(repr=False)


@unique
class FailureKind(IntEnum):
    """Why a change has no results."""

    METADATA = 0
    BUSY = 1
    CLOSED = 2
    IN_FLIGHT = 3


@dataclass(frozen=True, slots=True)
class Failed:
    """A change that is not acknowledged."""

    id: int
    kind: FailureKind
    text: str


@dataclass(frozen=True, slots=True)
class TurnAway:
    """The node has too many connections: close this one."""

    id: int
    reason: str


@dataclass(frozen=True, slots=True)
class LoginFailed:
    """A login from this address failed; both sides send it, the writer to all other workers."""

    host: str


@dataclass(frozen=True, slots=True)
class Look:
    """Report the worker's state, with its metrics if they are wanted."""

    id: int
    wants_metrics: bool


@dataclass(frozen=True, slots=True)
class Drain:
    """Report when brokers are done with all requests of this worker that would be denied now."""

    id: int


@dataclass(frozen=True, slots=True)
class Reload:
    """The properties file was read again, with this content."""

    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Levels:
    """The loggers with levels of their own, and these levels."""

    levels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fence:
    """The worker is late or broken: deny everything, close all connections, confirm that, and end."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop cleanly, once clients have their answers; the second time without waiting for that."""


@dataclass(frozen=True, slots=True)
class Applied:
    """Every new request is decided by the log up to this offset, or a later one."""

    offset: int


@dataclass(frozen=True, slots=True)
class Drained:
    """The answer to `Drain`; False if brokers may still work on such requests at the deadline."""

    id: int
    is_drained: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How many records of the log were worked through since the start; not all of them are in force."""

    steps: int


@dataclass(frozen=True, slots=True)
class Serving:
    """The listeners are open."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Carry out this change, and answer when it is in force everywhere."""

    id: int
    request: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A client connected, from this address."""

    id: int
    host: str


@dataclass(frozen=True, slots=True)
class Left:
    """A connection was closed."""

    id: int


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The worker's state: what must be ready and whether it is, and its metrics if they were wanted."""

    id: int
    parts: Mapping[str, bool]
    metrics: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Fenced:
    """Nothing is decided here any more, and all connections are closed."""


_PROPERTIES: Final = forms.table_of(TEXT)
_VALUES: Final = forms.tuple_of(BYTES)


def _row(message_type: type[Any], **fields: Form[Any]) -> tuple[type[Any], Form[Any]]:
    return message_type, forms.record(message_type, **fields)


_FROM_WRITER: Final = {
    1: _row(
        Welcome,
        index=INT32,
        cluster_id=TEXT,
        node_id=INT32,
        directory_id=forms.optional(UUID16),
        properties=_PROPERTIES,
    ),
    2: _row(Records, batch=BYTES),
    3: _row(Loaded, offset=INT64, epoch=INT32),
    4: _row(Delta, offset=INT64, epoch=INT32, values=_VALUES),
    5: _row(OpenListeners),
    6: _row(ChangeResults, id=INT64, results=RESULTS),
    7: _row(Failed, id=INT64, kind=forms.code_of(FailureKind), text=TEXT),
    8: _row(TurnAway, id=INT64, reason=TEXT),
    9: _row(Look, id=INT64, wants_metrics=FLAG),
    10: _row(Reload, properties=_PROPERTIES),
    11: _row(Fence, reason=TEXT),
    12: _row(Stop),
    13: _row(Levels, levels=_PROPERTIES),
    14: _row(Drain, id=INT64),
    15: _row(LoginFailed, host=TEXT),
}
_FROM_WORKER: Final = {
    33: _row(Applied, offset=INT64),
    34: _row(Serving),
    35: _row(ChangeRequest, id=INT64, request=REQUEST),
    36: _row(Arrived, id=INT64, host=TEXT),
    37: _row(Left, id=INT64),
    38: _row(WorkerStatus, id=INT64, parts=forms.table_of(FLAG), metrics=BYTES),
    39: _row(Fenced),
    40: _row(Drained, id=INT64, is_drained=FLAG),
    41: _row(Progress, steps=INT64),
    42: _row(LoginFailed, host=TEXT),
}

FROM_WRITER: Final = forms.one_of(_FROM_WRITER)
FROM_WORKER: Final = forms.one_of(_FROM_WORKER)
_TABLES: Final = _FROM_WRITER | _FROM_WORKER
_LARGE: Final = frozenset(
    code
    for code, (message_type, _) in _TABLES.items()
    if message_type in {Delta, ChangeResults, ChangeRequest}
)
_IN_ORDER: Final = frozenset(
    code for code, (message_type, _) in _TABLES.items() if message_type in {Delta, OpenListeners}
)
MESSAGES: Final = {
    message_type for table in (_FROM_WRITER, _FROM_WORKER) for message_type, _ in table.values()
}


def encode(form: Form[Any], message: object) -> bytes:
    """Return the whole frame of a message; raise `ChannelError` if it is too long or cannot be encoded."""
    out = bytearray(_LENGTH_SIZE)
    try:
        form.write(out, message)
    except (ValueError, struct.error) as error:
        # a number that is too large, half a surrogate pair
        raise ChannelError(f"a message has a field that cannot be sent ({type(error).__name__})") from None
    size = len(out) - _LENGTH_SIZE
    if size > FRAME_MAX_BYTES:
        raise ChannelError(f"a message of {size} bytes is longer than {FRAME_MAX_BYTES}")
    out[:_LENGTH_SIZE] = size.to_bytes(_LENGTH_SIZE, "big")
    return bytes(out)


def is_large(frame: bytes) -> bool:
    """Return whether a frame without its length should be parsed off the event loop."""
    return len(frame) >= LARGE_FRAME_BYTES and frame[0] in _LARGE


def keeps_order(frame: bytes) -> bool:
    """Return whether a frame must wait until every frame before it has been carried out.

    Deltas depend on their order. `OpenListeners` follows every delta that was acknowledged without this
    worker, so the worker must have applied those deltas before it serves.
    """
    return bool(frame) and frame[0] in _IN_ORDER


def decode(form: Form[Any], frame: bytes) -> Any:
    """Return the message of a frame without its length; raise `ChannelError` if it is none."""
    cursor = Cursor(frame)
    try:
        message = form.read(cursor)
    except ValueError as error:
        # an invalid enum code, UTF-8 or value; the error's text may hold what clients sent
        raise ChannelError(f"a message has an invalid field ({type(error).__name__})") from None
    cursor.end()
    return message
