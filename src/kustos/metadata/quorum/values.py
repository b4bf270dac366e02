"""What the follower speaks of: where a leader is, what is asked, what there is to do."""

from dataclasses import dataclass, field
from typing import Final

from kustos.metadata.errors import MetadataError
from kustos.metadata.log import SnapshotId
from kustos.wire import Message
from kustos.wire.record_batch import RecordBatch

UNKNOWN: Final = -1
"""An offset or epoch that nobody has told yet."""


class QuorumError(MetadataError):
    """The root of what can be wrong between a follower and its quorum."""


class ForeignAnswerError(QuorumError):
    """A controller answered in a form that no controller should; the connection is of no use."""


class WrongClusterError(QuorumError):
    """The controllers belong to another cluster; nothing of theirs is taken."""


class CommittedLostError(QuorumError):
    """The quorum wants something forgotten that was committed: it lost its log, or it is another one."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a controller listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Question:
    """A request to make. `target` None: ask any controller."""

    api_key: int
    target: Address | None
    message: Message = field(repr=False)


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """A record batch and its bytes, as they came."""

    batch: RecordBatch
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Appended:
    """Batches follow the log; nobody has said yet that they are committed."""

    batches: tuple[FetchedBatch, ...]


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log ends here now; what was behind it never was committed."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class Committed:
    """These batches are committed: apply them, in order. Records below `from_offset` are applied already."""

    batches: tuple[RecordBatch, ...]
    from_offset: int
    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class SnapshotFetched:
    """A snapshot takes the place of everything: the bytes of the file, just as the leader has them."""

    snapshot_id: SnapshotId
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """All that the leader called committed in this answer has been handed over."""

    high_watermark: int


Effect = Appended | Truncated | Committed | SnapshotFetched | CaughtUp
