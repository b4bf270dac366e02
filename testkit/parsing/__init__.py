"""Requests read by Kafka's own parser and by ours: drawn, mutated, and compared."""
