"""Writes the schemas in src/kustos/wire/schemas from kio's classes: `python -m scripts.generate_schemas`.

kio has a class for each struct of each version, a thousand modules in all, which take a second to load. The
text says the same in a thousand lines: each field once, with its versions.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from dataclasses import Field as KioField
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin

from kio.schema.index import PayloadEntityType, api_key_map, schema_name_map
from kio.static.constants import EntityType

from kustos.wire.schemas.schema import STRUCT, Field, NoDefault, Struct
from testkit.tap.frames import entity

FOLDER: Final = Path(__file__).resolve().parent.parent / "src" / "kustos" / "wire" / "schemas"
WIDTH: Final = 108
APIS_PER_MODULE: Final = 30
"""Keeps each generated module small enough to read."""

KINDS: Final[Mapping[str, PayloadEntityType]] = {
    "request": EntityType.request,
    "response": EntityType.response,
}
MILLISECOND: Final = timedelta(milliseconds=1)


def entity_of(api_key: int, version: int, kind: str) -> Any:
    """Return kio's class of a message."""
    return entity(api_key, version, KINDS[kind])


def versions_of(api_key: int) -> list[int]:
    """Return the versions of an API, rising."""
    return sorted(schema_name_map[api_key_map[api_key]])


def struct_of(entity: Any) -> Struct:
    """Return what kio's class says, as a value of ours."""
    made = tuple(map(_field_of, fields(entity)))
    return Struct(entity.__name__, int(entity.__version__), entity.__flexible__, made)


def _field_of(field: KioField[Any]) -> Field:
    annotation, nullable = _strip_optional(field.type)
    is_array = get_origin(annotation) is tuple
    inner = _strip_optional(get_args(annotation)[0])[0] if is_array else annotation
    element = struct_of(inner) if is_dataclass(inner) else None
    kind = STRUCT if element is not None else field.metadata["kafka_type"]
    if kind in {"datetime_i64", "uuid"} and not is_array:
        nullable = False  # kio's None means -1 and the zero UUID
    default = _default_of(field.default, kind, is_array=is_array)
    made = Field(field.name, kind, is_array, nullable, element, field.metadata.get("tag"), default)
    if default is not NoDefault and element is None and not is_array:
        plain = Field(field.name, kind).default_maker({})()
        if plain == default and type(plain) is type(default):
            return Field(field.name, kind, is_array, nullable, element, made.tag)
    return made


def _strip_optional(annotation: Any) -> tuple[Any, bool]:
    if isinstance(annotation, UnionType):
        inner = [arm for arm in get_args(annotation) if arm is not NoneType]
        return inner[0], len(inner) < len(get_args(annotation))
    return annotation, False


def _default_of(value: Any, kind: str, *, is_array: bool) -> Any:
    """Return kio's rich default as the number or text on the wire, or that there is none of its own."""
    bare: Any = value
    if value is MISSING or is_dataclass(value) or isinstance(value, tuple):
        bare = NoDefault
    elif value is None and not is_array:
        bare = {"uuid": NoDefault, "datetime_i64": -1}.get(kind)
    elif isinstance(value, Enum):
        bare = int(value.value)
    elif isinstance(value, timedelta):
        bare = value // MILLISECOND
    elif isinstance(value, datetime):
        bare = int(value.timestamp() * 1000)
    elif isinstance(value, int) and not isinstance(value, bool):
        bare = int(value)
    return bare


@dataclass(slots=True)
class _Line:
    """A field as the same text in some versions."""

    text: str
    versions: list[int]


def _structs(struct: Struct) -> Iterator[Struct]:
    yield struct
    for field in struct.fields:
        if field.element is not None:
            yield from _structs(field.element)


def _text(field: Field) -> str:
    name = field.kind if field.element is None else field.element.name
    text = f"{field.name}:{f'[{name}]' if field.is_array else name}{'?' if field.nullable else ''}"
    if field.default is not NoDefault:
        text += f"={json.dumps(field.default)}"
    return text if field.tag is None else f"{text}#{field.tag}"


def _merged(versions: Sequence[Struct]) -> list[_Line]:
    """Return the fields of all versions of a struct, in an order that holds in each of them."""
    lines: list[_Line] = []
    for struct in versions:
        place = 0
        for field in struct.fields:
            text = _text(field)
            found = next((line for line in lines if line.text == text), None)
            if found is None or found.versions[-1] < struct.version - 1:
                found = _Line(text, [])
                lines.insert(place, found)
            found.versions.append(struct.version)
            place = lines.index(found) + 1
    return lines


def _message(api_key: int, kind: str) -> Iterator[str]:
    """Yield the lines of a request or response."""
    versions = versions_of(api_key)
    messages = [struct_of(entity_of(api_key, version, kind)) for version in versions]
    flexible = [message.version for message in messages if message.flexible]
    yield kind if not flexible else f"{kind} {flexible[0]}"
    by_name: dict[str, dict[int, Struct]] = {}
    for message in messages:
        for struct in _structs(message):
            by_name.setdefault(struct.name, {})[struct.version] = struct
    for name, structs in by_name.items():
        here = sorted(structs)
        words = [name]
        for line in _merged([structs[version] for version in here]):
            first = "" if line.versions[0] == here[0] else line.versions[0]
            last = "" if line.versions[-1] == here[-1] else line.versions[-1]
            words.append(line.text if first == last == "" else f"{line.text}@{first}-{last}")
        yield from textwrap.wrap(
            " ".join(words), WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )


def modules() -> dict[str, str]:
    """Return the generated modules by file name."""
    keys = sorted(api_key_map)
    made = {}
    for start in range(0, len(keys), APIS_PER_MODULE):
        some = keys[start : start + APIS_PER_MODULE]
        blocks = []
        for api_key in some:
            versions = versions_of(api_key)
            lines = [f"api {api_key} {api_key_map[api_key]} {versions[0]}-{versions[-1]}"]
            blocks.append("\n".join((*lines, *_message(api_key, "request"), *_message(api_key, "response"))))
        head = f'"""Messages of APIs {some[0]} to {some[-1]}; `scripts.generate_schemas` writes this."""'
        text = "\n\n".join(blocks)
        made[f"apis_{some[0]}_to_{some[-1]}.py"] = (
            f'{head}\n\nfrom typing import Final\n\nTEXT: Final = """\\\n{text}\n"""\n'
        )
    return made


if __name__ == "__main__":
    for name, text in modules().items():
        (FOLDER / name).write_text(text)
