"""The state machine of an observer of Kafka's metadata quorum, without IO (KIP-595, KIP-630, KIP-853)."""

from kustos.metadata.quorum.answers import FETCH_VERSIONS, read_fetch
from kustos.metadata.quorum.committed_image import CommittedImage, SnapshotLoad
from kustos.metadata.quorum.follower import MAX_WAIT_MS, NEXT, FollowerMachine, FollowerPhase
from kustos.metadata.quorum.store import FollowedStore
from kustos.metadata.quorum.values import (
    Address,
    Appended,
    CaughtUp,
    Committed,
    CommittedLostError,
    Effect,
    FetchedBatch,
    ForeignAnswerError,
    QuorumError,
    QuorumRequest,
    SnapshotFetched,
    Truncated,
    WrongClusterError,
)

__all__ = [
    "FETCH_VERSIONS",
    "MAX_WAIT_MS",
    "NEXT",
    "Address",
    "Appended",
    "CaughtUp",
    "Committed",
    "CommittedImage",
    "CommittedLostError",
    "Effect",
    "FetchedBatch",
    "FollowedStore",
    "FollowerMachine",
    "FollowerPhase",
    "ForeignAnswerError",
    "QuorumError",
    "QuorumRequest",
    "SnapshotFetched",
    "SnapshotLoad",
    "Truncated",
    "WrongClusterError",
    "read_fetch",
]
