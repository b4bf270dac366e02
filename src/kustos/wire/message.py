"""Decoded messages: plain attributes, one generated class per struct.

Fields carry the bare wire value: integers for times and error codes, 16 bytes for a UUID, lists for arrays,
None for null. The names come from Kafka's schemas, in snake case and without `_ms`.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

CONFIG_VALUE: Final = "value"
"""The name of the field with the value of a configuration, such as a password; no API uses it for another
text."""


class Message:
    """A struct of one version of one message; built by the codec, never directly."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()
    ELEMENTS: ClassVar[dict[str, type["Message"]]] = {}
    """The class of each field that is a struct or an array of structs."""
    NULLABLE: ClassVar[frozenset[str]] = frozenset()
    """The fields that may be None in this version."""
    UUIDS: ClassVar[frozenset[str]] = frozenset()
    """The fields that are a UUID or an array of them."""

    def __init__(self, **fields: Any) -> None:
        raise TypeError(f"only the codec makes messages, not of {sorted(fields)}")

    @classmethod
    def fit(cls, **fields: Any) -> Self:
        """Return a struct with these fields, omitting those that this version does not have."""
        return cls(**{name: value for name, value in fields.items() if name in cls.FIELDS})

    def replace(self, **fields: Any) -> Self:
        """Return a shallow copy with some fields changed."""
        values = {name: getattr(self, name) for name in self.FIELDS}
        return type(self)(**values | fields)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field that only some versions have."""
        return getattr(self, name) if name in self.FIELDS else default

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain containers, secrets included."""
        return {name: _plain(getattr(self, name)) for name in self.FIELDS}

    if TYPE_CHECKING:
        # the fields of a generated class are not known to a type checker
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no field `{name}` in this version")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return type(self).__name__ == type(other).__name__ and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (
            f"{name}={_shown(getattr(self, name), name, is_uuid=name in self.UUIDS)}" for name in self.FIELDS
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _shown(value: Any, field: str, *, is_uuid: bool) -> str:
    """Return a value for a log: values that may be credentials or payloads are replaced by their size."""
    if isinstance(value, list):
        return f"[{', '.join(_shown(item, field, is_uuid=is_uuid) for item in value)}]"
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex() if is_uuid else f"<{len(value)} bytes>"
    if field == CONFIG_VALUE and isinstance(value, str):
        return f"<{len(value)} characters>"
    return repr(value)


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
