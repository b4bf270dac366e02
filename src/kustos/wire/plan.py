"""The wire form of the fields of kio's schemas."""

from collections.abc import Callable
from dataclasses import MISSING, Field, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from kustos.wire.message import Message
from kustos.wire.primitives import ZERO_UUID


class FieldPlan:
    """The wire form of one field of a kio schema."""

    __slots__ = ("element", "is_array", "kind", "name", "nullable", "raw_default", "tag")

    def __init__(self, field: Field[Any]) -> None:
        self.name = field.name
        self.tag: int | None = field.metadata.get("tag")
        annotation, self.nullable = _strip_optional(field.type)
        self.is_array = get_origin(annotation) is tuple
        inner = _strip_optional(get_args(annotation)[0])[0] if self.is_array else annotation
        self.element: type | None = inner if is_dataclass(inner) and isinstance(inner, type) else None
        self.kind: str = "struct" if self.element else field.metadata["kafka_type"]
        if self.kind in {"datetime_i64", "uuid"} and not self.is_array:
            self.nullable = False  # kio's None means -1 and for the zero UUID
        self.raw_default = field.default

    def default_maker(self, structs: dict[type, type[Message]]) -> Callable[[], Any]:
        """Return a factory for the value of a missing field: a new object each time if it is mutable."""
        if self.raw_default is not MISSING:
            value = _bare(self.raw_default, self.kind)
            if value is None or not (is_dataclass(value) or isinstance(value, list)):
                return lambda: value
        if self.is_array:
            return list
        if self.element is not None:
            return structs[self.element]
        constants = {"string": "", "bytes": b"", "bool": False, "uuid": ZERO_UUID, "float64": 0.0}
        constant = None if self.kind == "records" else constants.get(self.kind, 0)
        return lambda: constant


def _strip_optional(annotation: Any) -> tuple[Any, bool]:
    if isinstance(annotation, UnionType):
        inner = [arm for arm in get_args(annotation) if arm is not NoneType]
        return inner[0], len(inner) < len(get_args(annotation))
    return annotation, False


def _bare(value: Any, kind: str) -> Any:
    """Return kio's rich default as the number, text or list sent on the wire."""
    bare: Any = value
    if value is None:
        bare = {"uuid": ZERO_UUID, "datetime_i64": -1}.get(kind)
    elif isinstance(value, Enum):
        bare = int(value.value)
    elif isinstance(value, timedelta):
        bare = value // timedelta(milliseconds=1)
    elif isinstance(value, datetime):
        bare = int(value.timestamp() * 1000)
    elif isinstance(value, tuple):
        bare = []
    elif isinstance(value, int) and not isinstance(value, bool):
        bare = int(value)
    elif isinstance(value, str):
        bare = str(value)
    return bare
