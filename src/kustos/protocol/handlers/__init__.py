"""Custom handlers: functions for APIs whose authorization the steps of a row cannot express."""
