"""Carries a message from one version to another, field by field."""

from typing import Any

from kustos.wire import Message


def converted(message: Message, made: type[Message]) -> Message:
    """Return the message as another version has it.

    Fields that the other version lacks are dropped, those that it adds take their defaults.
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
