"""Candidate ACLs on trial: evaluated beside those in force, without effect on any answer."""

from kustos.gateway.shadow.trial import CandidateState, CandidateTrial, WatchedTrial

__all__ = [
    "CandidateState",
    "CandidateTrial",
    "WatchedTrial",
]
