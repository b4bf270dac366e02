"""An image as lines of JSON and back.

The first line is the head: the version of this form, the offset of the image, whether it has secrets, and how
many lines follow, so that a truncated file is detected. Each further line is one feature, ACL, SCRAM
credential, delegation token or dynamic setting, according to `kind`; `_FORMS` has the fields of each.
Credentials, and broker settings, which may be passwords, are included only on demand.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl.forms import FIELDS, LINE_CHARACTERS_MAX, Place, binding_of_fields, fields_of
from kustos.metadata.errors import MetadataError
from kustos.metadata.image import MetadataImage, acl_record, scram_record
from kustos.metadata.inspection.shown import REDACTED, shown_setting
from kustos.metadata.portable import values
from kustos.metadata.portable.values import Form, UnfitValueError
from kustos.metadata.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramCredential
from kustos.wire import uuid_text

FORM_VERSION: Final = 1
HEAD_KEY: Final = "kustos_metadata"
"""Key of the head only; its value is the version of the form."""

_HEAD: Final[Mapping[str, Form]] = {
    HEAD_KEY: values.whole_number(0, values.INT32_MAX),
    "offset": values.whole_number(-1, values.INT64_MAX),
    "epoch": values.whole_number(0, values.INT32_MAX),
    "with_credentials": values.truth,
    "lines": values.whole_number(0, values.INT64_MAX),
}

_FORMS: Final[Mapping[str, Mapping[str, Form]]] = {
    "feature": {"name": values.text, "level": values.whole_number(1, values.INT16_MAX)},
    "acl": {"id": values.uuid, **dict.fromkeys(FIELDS, values.text)},
    "scram": {
        "user": values.text,
        "mechanism": values.mechanism,
        "salt": values.octets,
        "stored_key": values.octets,
        "server_key": values.octets,
        "iterations": values.whole_number(0, values.INT32_MAX),
    },
    "token": {
        "token_id": values.text,
        "owner": values.text,
        "requester": values.text,
        "renewers": values.texts,
        "issue_timestamp_ms": values.whole_number(values.INT64_MIN, values.INT64_MAX),
        "max_timestamp_ms": values.whole_number(values.INT64_MIN, values.INT64_MAX),
        "expiration_timestamp_ms": values.whole_number(values.INT64_MIN, values.INT64_MAX),
    },
    "config": {
        "resource_type": values.whole_number(-128, 127),
        "resource_name": values.text,
        "name": values.text,
        "value": values.text,
    },
}
"""Kind to its fields, all required, each with the form of its value."""


class PortableError(MetadataError):
    """A line that is not part of an export; the text gives file, line and rule, but no value."""

    def __init__(self, place: Place, rule: str) -> None:
        super().__init__(f"{place}: {rule}")


@dataclass(frozen=True, slots=True)
class LocatedRecord:
    """A record and its line."""

    place: Place
    record: MetadataRecord


@dataclass(frozen=True, slots=True)
class Export:
    """A parsed file: records in the order of its lines."""

    with_credentials: bool
    records: tuple[LocatedRecord, ...]


def export_lines(image: MetadataImage, *, with_credentials: bool) -> Iterator[str]:
    """Yield the lines of an image, each with a line feed; raise `AclFormatError` for an inexpressible ACL."""
    documents = list(_documents(image, with_credentials=with_credentials))
    head = {
        HEAD_KEY: FORM_VERSION,
        "offset": image.offset,
        "epoch": image.epoch,
        "with_credentials": with_credentials,
        "lines": len(documents),
    }
    for document in (head, *documents):
        yield json.dumps(document) + "\n"


def left_out(image: MetadataImage) -> int:
    """Return how many lines an export without credentials omits."""
    return len(image.scram_credentials) + sum(map(_is_hidden, image.configs.items()))


def _is_hidden(setting: tuple[tuple[int, str, str], str]) -> bool:
    (resource_type, _, name), value = setting
    return value != REDACTED and shown_setting(resource_type, name, value) == REDACTED


def _documents(image: MetadataImage, *, with_credentials: bool) -> Iterator[dict[str, Any]]:
    for record in image.records():
        match record:
            case FeatureLevelRecord(name, level):
                yield {"kind": "feature", "name": name, "level": level}
            case AccessControlEntryRecord():
                yield {"kind": "acl", "id": uuid_text(record.id), **fields_of(image.acls[record.id])}
            case UserScramCredentialRecord() if with_credentials:
                yield {
                    "kind": "scram",
                    "user": record.name,
                    "mechanism": values.mechanism_name(record.mechanism),
                    "salt": values.octets_text(record.salt),
                    "stored_key": values.octets_text(record.stored_key),
                    "server_key": values.octets_text(record.server_key),
                    "iterations": record.iterations,
                }
            case DelegationTokenRecord():
                fields = _FORMS["token"]
                yield {"kind": "token"} | {name: _plain(getattr(record, name)) for name in fields}
            case ConfigRecord(kind, resource, name, value) if value is not None:
                if with_credentials or not _is_hidden(((kind, resource, name), value)):
                    fields = _FORMS["config"]
                    yield {"kind": "config"} | {field: getattr(record, field) for field in fields}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def read_export(lines: Iterable[str], name: str) -> Export:
    """Parse the lines of a file; raise `PortableError` or `AclFormatError` at the first mistake.

    `name` is the display name of the file.
    """
    head: dict[str, Any] | None = None
    records: list[LocatedRecord] = []
    place = Place(name, 1)
    for number, line in enumerate(lines, start=1):
        place = Place(name, number)
        document = _document(line, place)
        if head is None:
            head = _checked(document, _HEAD, place, "the head of an export")
            if head[HEAD_KEY] != FORM_VERSION:
                raise PortableError(place, f"`{HEAD_KEY}` is {head[HEAD_KEY]}, only {FORM_VERSION} is known")
            continue
        kind = document.pop("kind", None)
        if not isinstance(kind, str) or kind not in _FORMS:
            raise PortableError(place, f"`kind` must be one of {', '.join(_FORMS)}")
        record = _record(kind, _checked(document, _FORMS[kind], place, f"a line of kind `{kind}`"), place)
        records.append(LocatedRecord(place, record))
    if head is None:
        raise PortableError(place, "the file is blank")
    if len(records) != head["lines"]:
        raise PortableError(
            place, f"the head announces {head['lines']} lines after it, but there are {len(records)}"
        )
    return Export(head["with_credentials"], tuple(records))


def _document(line: str, place: Place) -> dict[str, Any]:
    if len(line) > LINE_CHARACTERS_MAX:
        raise PortableError(place, f"the line has more than {LINE_CHARACTERS_MAX} characters")
    try:
        document = json.loads(line, object_pairs_hook=_without_repetition)
    except UnfitValueError as error:
        raise PortableError(place, str(error)) from None
    except (ValueError, RecursionError):
        raise PortableError(place, "the line is not JSON") from None
    if not isinstance(document, dict):
        raise PortableError(place, "the line is not a JSON object")
    return document


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise UnfitValueError("a field is there twice")
    return document


def _checked(document: dict[str, Any], forms: Mapping[str, Form], place: Place, what: str) -> dict[str, Any]:
    for name in document:
        if name not in forms:
            raise PortableError(place, f"{name!a} is not a field of {what}")
    found = {}
    for name, form in forms.items():
        if name not in document:
            raise PortableError(place, f"`{name}` is missing, {what} has {', '.join(forms)}")
        try:
            found[name] = form(document[name])
        except UnfitValueError as error:
            raise PortableError(place, f"`{name}` {error}") from None
    return found


def _record(kind: str, fields: dict[str, Any], place: Place) -> MetadataRecord:
    if kind == "acl":
        acl_id = fields.pop("id")
        return acl_record(acl_id, binding_of_fields(fields, place))
    if kind == "scram":
        user, mechanism = fields.pop("user"), fields.pop("mechanism")
        return scram_record(user, mechanism, ScramCredential(**fields))
    if kind == "feature":
        return FeatureLevelRecord(fields["name"], fields["level"])
    return DelegationTokenRecord(**fields) if kind == "token" else ConfigRecord(**fields)
