"""Anomalies: access in a window of days that does not fit the habits of the days before."""

from kustos.pipeline.anomalies.detect import find_anomalies, kept
from kustos.pipeline.anomalies.findings import suppressed_by
from kustos.pipeline.anomalies.parameters import KINDS, AnomalyParameters, Suppression, Window

__all__ = [
    "KINDS",
    "AnomalyParameters",
    "Suppression",
    "Window",
    "find_anomalies",
    "kept",
    "suppressed_by",
]
