"""Errors of access-control values."""


class AclValueError(ValueError):
    """A principal, pattern, entry, filter or host that Kafka would reject; the text names it."""
