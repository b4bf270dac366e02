"""Escape hatches: the APIs whose authorization is more than steps in a row, each with its reason."""
