"""Errors of the wire format."""


class WireError(Exception):
    """The root of this room's errors."""


class MalformedMessageError(WireError):
    """The peer sent bytes that are not exactly one message of the schema; the connection must end."""


class EndsEarlyError(MalformedMessageError):
    """The bytes end inside the message: a reader of arriving bytes waits for more."""


class TooManyElementsError(MalformedMessageError):
    """The message has more array elements and tagged fields than the reader allows."""


class UnsupportedMessageError(WireError):
    """No schema is known for this API and version."""


class UnencodableMessageError(WireError):
    """A value does not fit the schema it is encoded with: a bug of ours or a lossy downgrade."""
