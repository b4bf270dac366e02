"""A real KRaft quorum: follows it, reads it on demand, and forwards changes to it."""

from kustos.client.quorum.follower import QuorumConnection, QuorumFollower
from kustos.client.quorum.forwarding import (
    ControllerForwarder,
    Forwarded,
    ForwardingRefusedError,
    QuorumUnavailableError,
)
from kustos.client.quorum.reader import QuorumReader

__all__ = [
    "ControllerForwarder",
    "Forwarded",
    "ForwardingRefusedError",
    "QuorumConnection",
    "QuorumFollower",
    "QuorumReader",
    "QuorumUnavailableError",
]
