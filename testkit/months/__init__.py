"""Synthetic months of access with known anomalies: the detectors are scored on them without knowing them."""
