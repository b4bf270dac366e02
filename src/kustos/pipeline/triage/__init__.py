"""Triage: findings over runs, each open, acknowledged, suppressed or resolved."""

from kustos.pipeline.triage.acknowledgements import (
    REASON_CHARACTERS_MAX,
    State,
    acknowledge,
    reopen,
    stored_states,
)
from kustos.pipeline.triage.states import (
    KEPT_DAYS,
    RESOLVED_AFTER_DAYS,
    STATES,
    merged,
    of_cluster,
    states_of,
)

__all__ = [
    "KEPT_DAYS",
    "REASON_CHARACTERS_MAX",
    "RESOLVED_AFTER_DAYS",
    "STATES",
    "State",
    "acknowledge",
    "merged",
    "of_cluster",
    "reopen",
    "states_of",
    "stored_states",
]
