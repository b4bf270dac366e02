"""Converts a message from one version to another, field by field."""

from typing import Any

from kustos.wire import Message


def converted(message: Message, message_type: type[Message]) -> Message:
    """Return the message in another version.

    Fields missing in the other version are dropped; fields that it adds get their defaults.
    """
    values: dict[str, Any] = {}
    for name in message_type.FIELDS:
        if name not in message.FIELDS:
            continue
        value = getattr(message, name)
        element = message_type.ELEMENTS.get(name)
        if element is not None and isinstance(value, list):
            value = [converted(item, element) for item in value]
        elif element is not None and value is not None:
            value = converted(value, element)
        if value is None and name not in message_type.NULLABLE:
            continue
        values[name] = value
    return message_type(**values)
