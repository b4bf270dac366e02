"""Converts a message from one version to another, field by field."""

from typing import Any

from kustos.wire import Message


def converted(message: Message, made: type[Message]) -> Message:
    """Return the message in another version.

    Fields missing in the other version are dropped; fields that it adds get their defaults.
    """
    values: dict[str, Any] = {}
    for name in made.FIELDS:
        if name not in message.FIELDS:
            continue
        value = getattr(message, name)
        element = made.ELEMENTS.get(name)
        if element is not None and isinstance(value, list):
            value = [converted(item, element) for item in value]
        elif element is not None and value is not None:
            value = converted(value, element)
        if value is None and name not in made.NULLABLE:
            continue
        values[name] = value
    return made(**values)
