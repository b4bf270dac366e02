"""Candidate ACLs on trial: they are evaluated in addition to the ACLs in force, without effect on answers."""

from kustos.gateway.shadow.trial import CandidateState, CandidateTrial, WatchedTrial

__all__ = [
    "CandidateState",
    "CandidateTrial",
    "WatchedTrial",
]
