"""What can be wrong with bytes."""


class WireError(Exception):
    """The root of this room's errors."""


class MalformedMessageError(WireError):
    """The peer sent bytes that are not exactly one message of the schema; the connection must end."""


class UnsupportedMessageError(WireError):
    """No schema is known for this API and version."""


class UnencodableMessageError(WireError):
    """A value does not fit the schema it was to be written in; our own fault or a lossy downgrade."""
