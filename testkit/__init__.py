"""Helpers for tests, benchmarks and the demo: a real Kafka, started on this machine. Not in the wheel."""
