"""The schemas of Kafka's messages, as text that loads fast: every API and version of 4.4.0.

`scripts.generate_schemas` writes the modules `apis_*` from the definitions in Kafka's jar, and a test
compares them. The messages of an API are parsed on demand.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, NamedTuple

from kustos.wire.schemas import apis_from_0, apis_from_32, apis_from_64
from kustos.wire.schemas.schema import STRUCT, Field, MessageSchema, NoDefault, Struct

Kind = Literal["request", "response"]

_MESSAGE: Final = re.compile(r"^(request|response)(?: (\d+))?\n((?:.+\n?)+?)(?=response|\Z)", re.MULTILINE)


class Api(NamedTuple):
    """An API: its name in snake case, its lowest and highest version, and the text of its messages."""

    name: str
    first: int
    last: int
    text: str


def _apis() -> dict[int, Api]:
    found = {}
    for module in (apis_from_0, apis_from_32, apis_from_64):
        for block in module.TEXT.split("\n\n"):
            head, _, text = block.partition("\n")
            _, api_key, name, versions = head.split()
            first, last = versions.split("-")
            found[int(api_key)] = Api(name, int(first), int(last), text)
    return found


APIS: Final[Mapping[int, Api]] = _apis()
"""By API key."""


@cache
def _schemas(api_key: int) -> dict[str, MessageSchema]:
    return {
        kind: MessageSchema(int(flexible_from) if flexible_from else None, text)
        for kind, flexible_from, text in _MESSAGE.findall(APIS[api_key].text)
    }


def schema_of(api_key: int, version: int, kind: Kind) -> Struct | None:
    """Return the schema of a request or response in a version, None if there is none."""
    api = APIS.get(api_key)
    if api is None or not api.first <= version <= api.last:
        return None
    return _schemas(api_key)[kind].struct(version)


__all__ = ["APIS", "STRUCT", "Field", "Kind", "MessageSchema", "NoDefault", "Struct", "schema_of"]
