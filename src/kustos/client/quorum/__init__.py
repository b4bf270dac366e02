"""Connections to a KRaft quorum: to follow it, to read it on demand, and to forward changes."""

from kustos.client.quorum.follower import QuorumConnection, QuorumFollower
from kustos.client.quorum.forwarding import (
    ControllerForwarder,
    Forwarded,
    ForwardingRefusedError,
    QuorumUnavailableError,
    answer_in,
    envelope_of,
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
    "answer_in",
    "envelope_of",
]
