"""Writes the schemas in src/kustos/wire/schemas: `python -m scripts.generate_schemas`.

Source: the definitions of messages in the jar of Kafka's clients (`common/message/*.json`). The generated
text has each field once, with its versions.
"""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from kustos.wire.schemas.schema import STRUCT, Field, NoDefault, Struct
from testkit.jars import KAFKA_ORACLE

FOLDER: Final = Path(__file__).resolve().parent.parent / "src" / "kustos" / "wire" / "schemas"
WIDTH: Final = 108
KEYS_PER_MODULE: Final = 32
"""Keeps each generated module small enough to read."""

MESSAGES: Final = "common/message/"
HIGHEST_VERSION: Final = 2**15 - 1

Definition = Mapping[str, Any]
"""A message, a struct or a field as its JSON says it."""

COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)
WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
DURATIONS: Final = {"int32": "timedelta_i32", "int64": "timedelta_i64"}
MOMENTS: Final = ("timestamp", "start_time", "append_time")
KEYWORDS: Final = frozenset({"id"})
"""Names that get an underscore, so that they hide no function of Python."""


@dataclass(frozen=True, slots=True)
class ApiDefinition:
    """An API as its jar defines it."""

    api_key: int
    name: str
    first: int
    last: int
    messages: Mapping[str, Definition]
    """Kind → definition of the request or response."""


def message_texts(jar: Path) -> Iterator[str]:
    """Yield the definitions of messages in a jar of Kafka: JSON with comments."""
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith(MESSAGES) and name.endswith(".json"):
                yield archive.read(name).decode()


def parse_message(text: str) -> Definition:
    """Return the definition in a text of `message_texts`."""
    message: Definition = json.loads(COMMENT.sub("", text))
    return message


@cache
def definitions(jar: Path) -> Mapping[int, ApiDefinition]:
    """Return the APIs in a jar of Kafka's clients by key."""
    kinds: dict[int, dict[str, Definition]] = {}
    for message in map(parse_message, message_texts(jar)):
        if message["type"] in {"request", "response"} and message["validVersions"] != "none":
            kinds.setdefault(message["apiKey"], {})[message["type"]] = message
    return {key: _api(key, messages) for key, messages in sorted(kinds.items())}


def _api(api_key: int, messages: Mapping[str, Definition]) -> ApiDefinition:
    request = messages["request"]
    first, last = _versions(request["validVersions"])
    return ApiDefinition(api_key, snake_case(request["name"].removesuffix("Request")), first, last, messages)


def _versions(text: str) -> tuple[int, int]:
    """Return the lowest and highest version of `3`, `3+`, `1-3` or `none`."""
    if text == "none":
        return 0, -1
    first, dash, last = text.partition("-")
    if first.endswith("+"):
        return int(first[:-1]), HIGHEST_VERSION
    return int(first), int(last) if dash else int(first)


def _has(versions: str, version: int) -> bool:
    first, last = _versions(versions)
    return first <= version <= last


def snake_case(name: str) -> str:
    """Return a name in snake case."""
    return WORD.sub("_", name).lower()


def struct_of(message: Definition, version: int) -> Struct:
    """Return a message in one version."""
    flexible = _has(message.get("flexibleVersions", "none"), version)
    common = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", ())}
    return _struct(message["name"], message["fields"], version, flexible, common)


def _struct(
    name: str, fields: Sequence[Definition], version: int, flexible: bool, common: Mapping[str, Any]
) -> Struct:
    made = (
        _field_of(field, version, flexible, common) for field in fields if _has(field["versions"], version)
    )
    return Struct(name, version, flexible, tuple(made))


def _field_of(field: Definition, version: int, flexible: bool, common: Mapping[str, Any]) -> Field:
    bare = field["type"].removeprefix("[]")
    is_array = bare != field["type"]
    element = None
    if bare[0].isupper():
        element = _struct(bare, field.get("fields") or common[bare], version, flexible, common)
    name, kind = _name_and_kind(field["name"], bare)
    nullable = _has(field.get("nullableVersions", "none"), version)
    tag = field["tag"] if _has(field.get("taggedVersions", "none"), version) else None
    default = _default_of(field, kind, version)
    return Field(name, STRUCT if element is not None else kind, is_array, nullable, element, tag, default)


def _name_and_kind(name: str, kind: str) -> tuple[str, str]:
    """Return the field's name without its unit, and its type with what the name says about it."""
    short = snake_case(name)
    if kind == "int16" and short.endswith("error_code"):
        return short, "error_code"
    if kind in DURATIONS and short.endswith("_ms"):
        short = short.removesuffix("_ms")
        return short, "datetime_i64" if short.endswith(MOMENTS) else DURATIONS[kind]
    return f"{short}_" if short in KEYWORDS else short, kind


def _default_of(field: Definition, kind: str, version: int) -> Any:
    """Return the field's default if it differs from the default of its type."""
    text = str(field.get("default", ""))
    if text == "null":
        return None if _has(field.get("nullableVersions", "none"), version) else NoDefault
    if kind == "string":
        return text or NoDefault
    if kind in {"bool", "uuid", "bytes", "records"} or not text:
        return True if text.lower() == "true" else NoDefault
    value = float(text) if kind == "float64" else int(text, 0)
    return value or NoDefault


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


def _message(api: ApiDefinition, kind: str) -> Iterator[str]:
    """Yield the lines of a request or response."""
    messages = [struct_of(api.messages[kind], version) for version in range(api.first, api.last + 1)]
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


def newest_clients() -> Path:
    """Return the jar of Kafka's clients of the reference release."""
    [jar] = KAFKA_ORACLE.resolve().glob("kafka-clients-*.jar")
    return jar


def modules(jar: Path) -> dict[str, str]:
    """Return the modules generated from a jar of Kafka's clients by file name."""
    made = {}
    for first, apis in groupby(
        definitions(jar).values(), lambda api: api.api_key // KEYS_PER_MODULE * KEYS_PER_MODULE
    ):
        blocks = []
        for api in apis:
            lines = [f"api {api.api_key} {api.name} {api.first}-{api.last}"]
            blocks.append("\n".join((*lines, *_message(api, "request"), *_message(api, "response"))))
        text = "\n\n".join(blocks)
        head = f'"""APIs from {first} on; `scripts.generate_schemas` writes this."""'
        made[f"apis_from_{first}.py"] = (
            f'{head}\n\nfrom typing import Final\n\nTEXT: Final = """\\\n{text}\n"""\n'
        )
    return made


if __name__ == "__main__":
    for name, text in modules(newest_clients()).items():
        (FOLDER / name).write_text(text)
