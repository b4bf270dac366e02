"""Cluster mode: changes go to the controllers, and metadata that is too old denies."""

from kustos.gateway.quorum.apis import QuorumApis, QuorumMutator
from kustos.gateway.quorum.staleness import StalenessGate

__all__ = [
    "QuorumApis",
    "QuorumMutator",
    "StalenessGate",
]
