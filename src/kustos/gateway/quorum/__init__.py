"""Cluster mode: changes go to the controllers, and metadata that is too old denies."""

from kustos.gateway.quorum.source import FollowedQuorum
from kustos.gateway.quorum.staleness import StalenessGate

__all__ = [
    "FollowedQuorum",
    "StalenessGate",
]
