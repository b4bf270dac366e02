"""Classes for kio of messages that are newer than kio, made from kustos' schemas: kio then reads and writes
them."""

from dataclasses import MISSING, field, make_dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from kio.static.constants import EntityType
from kio.static.primitive import Records, TZAware, f64, i8, i16, i32, i32Timedelta, i64, i64Timedelta, u16

from kustos.wire.schemas import Field, NoDefault, Struct, schema_of

TYPES: Final[dict[str, Any]] = {
    "string": str,
    "bytes": bytes,
    "records": Records,
    "bool": bool,
    "uuid": UUID,
    "int8": i8,
    "int16": i16,
    "uint16": u16,
    "int32": i32,
    "int64": i64,
    "float64": f64,
    "timedelta_i32": i32Timedelta,
    "timedelta_i64": i64Timedelta,
    "datetime_i64": TZAware,
}
DURATIONS: Final = frozenset({"timedelta_i32", "timedelta_i64"})
AS_NUMBERS: Final = {"error_code": "int16"}
"""kio reads only the error codes that it knows."""


def newer_entity(api_key: int, version: int, kind: EntityType) -> Any:
    """Return a class like kio's own for a message; KeyError if kustos does not know it either."""
    struct = schema_of(api_key, version, "request" if kind is EntityType.request else "response")
    if struct is None:
        raise KeyError((api_key, version))
    return _class_of(struct, kind)


def _class_of(struct: Struct, kind: EntityType) -> Any:
    constants = {
        "__type__": kind,
        "__version__": i16(struct.version),
        "__flexible__": struct.flexible,
    }
    return make_dataclass(
        struct.name, map(_field_of, struct.fields), frozen=True, kw_only=True, namespace=constants
    )


def _field_of(one: Field) -> tuple[str, Any, Any]:
    kind = AS_NUMBERS.get(one.kind, one.kind)
    metadata: dict[str, Any] = {} if one.tag is None else {"tag": one.tag}
    if one.element is None:
        metadata["kafka_type"] = kind
        inner: Any = TYPES[kind]
    else:
        inner = _class_of(one.element, EntityType.nested)
    annotation = tuple[inner, ...] if one.is_array else inner
    default: Any = MISSING
    if one.default is not NoDefault:
        default = one.default
        if kind in DURATIONS:
            default = TYPES[kind].parse(timedelta(milliseconds=default))
    elif one.is_array:
        default = ()
    elif kind == "uuid":
        annotation |= None
        default = None
    elif kind == "bool":
        default = False
    optional = annotation | None if one.nullable else annotation
    return one.name, optional, field(default=default, metadata=metadata)
