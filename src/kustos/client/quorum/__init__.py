"""A real KRaft quorum: followed, read on demand, and asked to make changes."""

from kustos.client.quorum.follower import QuorumConnection, QuorumFollower
from kustos.client.quorum.forwarding import (
    ControllerForwarder,
    Forwarded,
    ForwardingRefusedError,
    QuorumUnavailableError,
)
from kustos.client.quorum.reading import QuorumReader

__all__ = [
    "ControllerForwarder",
    "Forwarded",
    "ForwardingRefusedError",
    "QuorumConnection",
    "QuorumFollower",
    "QuorumReader",
    "QuorumUnavailableError",
]
