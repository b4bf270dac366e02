"""Escape hatches: handlers of APIs whose authorization the steps of a row cannot express."""
