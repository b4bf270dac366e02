"""Values of the follower: addresses, requests and effects."""

from dataclasses import dataclass, field
from typing import Final

from kustos.metadata.errors import MetadataError
from kustos.metadata.log import SnapshotId
from kustos.wire import Message, RecordBatch

UNKNOWN: Final = -1
"""An unknown offset or epoch."""


class QuorumError(MetadataError):
    """The root of errors between a follower and its quorum."""


class ForeignAnswerError(QuorumError):
    """A controller sent an invalid answer; the connection is unusable."""


class WrongClusterError(QuorumError):
    """The controllers belong to another cluster; nothing from them is used."""


class CommittedLostError(QuorumError):
    """The quorum rolled back committed records: it lost its log, or it is another quorum."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a controller."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class QuorumRequest:
    """A request to send. `target` None: to any controller."""

    api_key: int
    target: Address | None
    message: Message = field(repr=False)


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """A record batch and its bytes as received."""

    batch: RecordBatch
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Appended:
    """Batches were appended to the log, not yet known to be committed."""

    batches: tuple[FetchedBatch, ...]


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log now ends here; the removed part was never committed."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Committed:
    """These batches are committed: apply them, in order. Records below `from_offset` are applied already."""

    batches: tuple[FetchedBatch, ...]
    from_offset: int
    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class SnapshotFetched:
    """A snapshot replaces everything: the bytes of the file exactly as on the leader."""

    snapshot_id: SnapshotId
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The machine has returned everything up to the high watermark of this answer."""

    high_watermark: int


Effect = Appended | Truncated | Committed | SnapshotFetched | CaughtUp
