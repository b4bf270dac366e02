"""Anomalies: access in a window of days that does not fit the habits of the days before."""

from kustos.pipeline.anomalies.detect import find_anomalies, keeping
from kustos.pipeline.anomalies.parameters import AnomalyParameters, Suppression, Window

__all__ = ["AnomalyParameters", "Suppression", "Window", "find_anomalies", "keeping"]
