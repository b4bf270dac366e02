"""What can be wrong with a value of this room."""


class AclValueError(ValueError):
    """A principal, pattern, entry, filter or host that Kafka would not accept; the text names it."""
