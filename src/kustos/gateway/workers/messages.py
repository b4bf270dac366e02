"""The messages between the writer process and a worker, and their frames.

A frame is a length of four bytes, the length of its head in four bytes, the head in JSON, and a payload. The
head contains the name and the fields of the message. Payloads are Kafka's own bytes: record batches exactly
as they lie in the log or in a snapshot, and requests and responses in Envelopes (KIP-590).

The committed log is one ordered stream: the batches of a snapshot, then each batch of the log (`IN_ORDER`).
All other messages control the worker, and are handled at once. `OpenListeners` names a position in the log:
the worker opens its listeners when its decisions follow the log up to that position.

| Order | Sender | Messages |
|---|---|---|
| 1 | writer | `Welcome`, `SnapshotBatch` as often as needed, then each `LogBatch` |
| 2 | worker | `Applied`: it decides by the log up to this offset; from then on changes wait for it |
| 3 | writer | `OpenListeners`: with the position that every acknowledged change has reached |
| 4 | worker | `Serving`: its listeners are open |
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

from kustos.gateway.workers.errors import ChannelError

FRAME_MAX_BYTES: Final = 64 * 1024 * 1024
"""The longest message: several times the longest batch of the log (8 MiB), because answers name the deleted
items."""

LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Welcome:
    """The node of the worker, and the settings of its file when the node started."""

    index: int
    cluster_id: str
    node_id: int
    directory_id: str | None
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SnapshotBatch:
    """One batch of a snapshot; the first contains the snapshot's header, the last its footer (KIP-630)."""

    end_offset: int
    epoch: int
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class LogBatch:
    """One committed record batch."""

    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Current:
    """Everything committed by this time of the system's monotonic clock precedes this message."""

    as_of_ms: int


@dataclass(frozen=True, slots=True)
class QuorumLost:
    """The quorum can never be followed again: the metadata is too old from now on."""


@dataclass(frozen=True, slots=True)
class OpenListeners:
    """Changes wait for this worker from now on: open the listeners when this offset is in force."""

    offset: int


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """The answer to a change that is committed and in force in every worker: an Envelope's response.

    `offset`: the first offset of the change; `changed`: the changed item if no message names it; `error`: the
    text for the Envelope's error code.
    """

    id: int
    offset: int | None
    changed: str | None
    error: str | None
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """The node has too many connections: close this one."""

    id: int
    reason: str


@dataclass(frozen=True, slots=True)
class LoginFailed:
    """A login from this address failed; both sides send this, the writer to all other workers."""

    host: str


@dataclass(frozen=True, slots=True)
class Look:
    """Report the worker's state, with its metrics if they are wanted."""

    id: int
    wants_metrics: bool


@dataclass(frozen=True, slots=True)
class Drain:
    """Report when brokers are done with all requests of this worker that the ACLs would deny now."""

    id: int


@dataclass(frozen=True, slots=True)
class Reload:
    """The properties file was read again, with this content."""

    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Levels:
    """The loggers with explicit levels, and these levels."""

    levels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fence:
    """The worker is late or broken: deny everything, close all connections, confirm the fence, and end."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop cleanly after clients have their answers; a second `Stop` means not to wait for the answers."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The log up to this offset, or a later one, decides every new request."""

    offset: int


@dataclass(frozen=True, slots=True)
class Drained:
    """The answer to `Drain`; False if brokers may still work on such requests at the deadline."""

    id: int
    is_drained: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of records of the log processed since the start; not all of them are in force."""

    steps: int


@dataclass(frozen=True, slots=True)
class Serving:
    """The listeners are open."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Make the change in this Envelope, and answer when it is in force everywhere."""

    id: int
    payload: bytes = field(repr=False)


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
    """The worker's state: the readiness conditions, and the metrics if they were wanted."""

    id: int
    parts: Mapping[str, bool]
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Fenced:
    """The worker no longer decides anything, and all its connections are closed."""


IN_ORDER: Final = (SnapshotBatch, LogBatch, Current)
"""The stream of the committed log: each message waits until earlier ones have been handled."""

_WRITERS: Final = (
    Welcome,
    SnapshotBatch,
    LogBatch,
    Current,
    QuorumLost,
    OpenListeners,
    ChangeAnswer,
    CloseConnection,
    LoginFailed,
    Look,
    Drain,
    Reload,
    Levels,
    Fence,
    Stop,
)
_WORKERS: Final = (
    Applied,
    Drained,
    Progress,
    Serving,
    Submit,
    Arrived,
    Left,
    LoginFailed,
    WorkerStatus,
    Fenced,
)

Table = Mapping[str, type[Any]]
"""Name → message."""

FROM_WRITER: Final[Table] = {each.__name__: each for each in _WRITERS}
FROM_WORKER: Final[Table] = {each.__name__: each for each in _WORKERS}

PAYLOAD: Final = "payload"


def _is_of(hint: Any) -> Callable[[object], bool]:
    """Return a check for values of JSON: a plain type, an optional one, or a table of plain ones."""
    arguments = get_args(hint)
    if NoneType in arguments:
        plain = next(each for each in arguments if each is not NoneType)
        return lambda value: value is None or type(value) is plain
    if arguments:
        return lambda value: (
            isinstance(value, dict) and all(type(each) is arguments[1] for each in value.values())
        )
    return lambda value: type(value) is hint


_CHECKS: Final = {
    each: {name: _is_of(hint) for name, hint in get_type_hints(each).items() if name != PAYLOAD}
    for each in {*_WRITERS, *_WORKERS}
}


def encode(message: Any) -> bytes:
    """Return the whole frame of a message; raise `ChannelError` if it is too long."""
    values = {name: getattr(message, name) for name in _CHECKS[type(message)]}
    head = json.dumps([type(message).__name__, values], default=dict).encode()
    payload = getattr(message, PAYLOAD, b"")
    size = LENGTH_BYTES + len(head) + len(payload)
    if size > FRAME_MAX_BYTES:
        raise ChannelError(f"a message of {size} bytes is longer than {FRAME_MAX_BYTES}")
    lengths = (size.to_bytes(LENGTH_BYTES, "big"), len(head).to_bytes(LENGTH_BYTES, "big"))
    return b"".join((*lengths, head, payload))


def decode(table: Table, frame: bytes) -> Any:
    """Return the message of a frame without its length; raise `ChannelError` if it is not in the table."""
    head_end = LENGTH_BYTES + int.from_bytes(frame[:LENGTH_BYTES], "big")
    if not LENGTH_BYTES < head_end <= len(frame):
        raise ChannelError("the head of a message exceeds the message")
    try:
        name, values = json.loads(frame[LENGTH_BYTES:head_end])
        message_type = table[name]
        checks = _CHECKS[message_type]
        is_valid = values.keys() == checks.keys() and all(
            check(values[each]) for each, check in checks.items()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # the error's text may contain bytes that clients sent
        raise ChannelError(f"the head of a message is invalid ({type(error).__name__})") from None
    payload = frame[head_end:]
    has_payload = any(each.name == PAYLOAD for each in fields(message_type))
    if not is_valid or (payload and not has_payload):
        raise ChannelError(f"`{name}` does not have the fields of the message")
    return message_type(**values, payload=payload) if has_payload else message_type(**values)
