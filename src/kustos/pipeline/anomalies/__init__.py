"""Anomalies: access in a window of days that does not fit the habits of the days before.

`detect` searches; `states` and `acknowledgements` keep what became of an anomaly over several searches.
"""

from kustos.pipeline.anomalies.acknowledgements import (
    REASON_CHARACTERS_MAX,
    State,
    acknowledge,
    reopen,
    stored_states,
)
from kustos.pipeline.anomalies.detect import find_anomalies, kept
from kustos.pipeline.anomalies.parameters import KINDS, AnomalyParameters, Suppression, Window
from kustos.pipeline.anomalies.rows import suppressed_by
from kustos.pipeline.anomalies.states import (
    KEPT_DAYS,
    RESOLVED_AFTER_DAYS,
    STATES,
    merged,
    of_cluster,
    states_of,
)

__all__ = [
    "KEPT_DAYS",
    "KINDS",
    "REASON_CHARACTERS_MAX",
    "RESOLVED_AFTER_DAYS",
    "STATES",
    "AnomalyParameters",
    "State",
    "Suppression",
    "Window",
    "acknowledge",
    "find_anomalies",
    "kept",
    "merged",
    "of_cluster",
    "reopen",
    "states_of",
    "stored_states",
    "suppressed_by",
]
