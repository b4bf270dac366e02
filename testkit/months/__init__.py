"""Synthetic months of access with known anomalies: what the detectors are scored on, and know nothing of."""
