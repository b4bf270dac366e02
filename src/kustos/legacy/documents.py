"""The JSON documents with the ACLs of one resource, as Kafka releases wrote them and as KIP-11 specified
them.

Both have `"version": 1`. Kafka 0.9 to 3.9 wrote one statement per entry:
`{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"}`. KIP-11 and the previews
that vendors shipped wrote sets: `{"principal":"alice","permissionType":"ALLOW","operations":["READ"],
"hosts":["host1"]}`, or `"principals"` with a list. An entry must have only fields of one form. Kafka skips
unknown fields, but a lost Deny would grant access, so kustos refuses them.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kustos.legacy.values import Acl, merged, order_of, singles_of
from kustos.legacy.vocabulary import (
    OPERATION_NAMES,
    PERMISSION_NAMES,
    LegacyFormatError,
    kip_11_principal_of,
    operation_of,
    permission_type_of,
    principal_of,
)

VERSION: Final = 1
"""The only version of the document."""

DOCUMENT_CHARACTERS_MAX: Final = 64 * 1024 * 1024
"""The longest accepted text: a whole tree of about 500,000 ACLs, 16 times the maximum size of a ZooKeeper
node."""

_RELEASED_KEYS: Final = frozenset(("principal", "permissionType", "operation", "host"))
_KIP_11_KEYS: Final = frozenset(("principal", "permissionType", "operations", "hosts"))
_PREVIEW_KEYS: Final = frozenset(("principals", "permissionType", "operations", "hosts"))


def parse_json(text: str) -> Any:
    """Return the JSON of a text, without duplicate keys; raise `LegacyFormatError`."""
    if len(text) > DOCUMENT_CHARACTERS_MAX:
        raise LegacyFormatError(f"the document is longer than {DOCUMENT_CHARACTERS_MAX} characters")
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise LegacyFormatError("the document nests too deeply") from None
    except json.JSONDecodeError as error:
        raise LegacyFormatError(
            f"the document is not JSON: line {error.lineno}, column {error.colno}"
        ) from None
    except LegacyFormatError:
        raise
    except ValueError:
        # Python limits the number of digits of an integer
        raise LegacyFormatError("the document has a number with too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise LegacyFormatError(f"an object of the document names `{twice}` twice")
    return found


def read_acls(text: str, where: str = "the document") -> frozenset[Acl]:
    """Return the ACLs of a ZooKeeper node's text; none for an empty text, as in Kafka.

    `where` is the place in the message of a `LegacyFormatError`.
    """
    return acls_of(parse_json(text), where) if text else frozenset()


def acls_of(document: Any, where: str) -> frozenset[Acl]:
    """Return the ACLs of a parsed document; raise `LegacyFormatError` that names `where`."""
    found: set[Acl] = set()
    for number, entry in enumerate(entries_of(document, where), start=1):
        try:
            found.update(acls_of_entry(entry))
        except LegacyFormatError as error:
            raise LegacyFormatError(f"ACL {number} of {where}: {error}") from None
    return frozenset(found)


def entries_of(document: Any, where: str) -> list[Any]:
    """Return the unchecked entries of a parsed document; raise `LegacyFormatError`."""
    if not isinstance(document, dict) or document.keys() != {"version", "acls"}:
        raise LegacyFormatError(f"{where} is not an object with `version` and `acls`")
    version = document["version"]
    if type(version) is not int or version != VERSION:
        raise LegacyFormatError(f"{where} has version `{version}`, only {VERSION} is known")
    entries = document["acls"]
    if not isinstance(entries, list):
        raise LegacyFormatError(f"`acls` of {where} is not a list")
    return entries


def acls_of_entry(entry: Any) -> Iterator[Acl]:
    """Yield the ACLs of one entry, one for each principal; raise `LegacyFormatError`."""
    if not isinstance(entry, dict):
        raise LegacyFormatError("an ACL is an object")
    keys = frozenset(entry)
    if keys == _RELEASED_KEYS:
        yield Acl.of(
            principal_of(_text(entry, "principal")),
            permission_type_of(_text(entry, "permissionType")),
            _text(entry, "host"),
            operation_of(_text(entry, "operation")),
        )
        return
    if keys not in {_KIP_11_KEYS, _PREVIEW_KEYS}:
        raise LegacyFormatError(
            f"an ACL has {_listed(_RELEASED_KEYS)}, or {_listed(_KIP_11_KEYS)}, not {_listed(keys)}"
        )
    operations = frozenset(operation_of(text) for text in _texts(entry, "operations"))
    hosts = frozenset(_texts(entry, "hosts"))
    permission = permission_type_of(_text(entry, "permissionType"))
    key = "principals" if "principals" in entry else "principal"
    is_one = isinstance(entry.get("principal"), str)
    for principal in [_text(entry, key)] if is_one else _texts(entry, key):
        yield Acl(kip_11_principal_of(principal), permission, hosts, operations)


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry[key]
    if not _is_text(value):
        raise LegacyFormatError(f"`{key}` is not a text")
    return str(value)


def _texts(entry: dict[str, Any], key: str) -> list[str]:
    values = entry[key]
    if not isinstance(values, list) or not values or not all(_is_text(value) for value in values):
        raise LegacyFormatError(f"`{key}` is not a list of texts with at least one")
    return values


def _is_text(value: object) -> bool:
    """JSON can express a lone surrogate, which is not a valid text: it could not be written again."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in sorted(keys)) or "nothing"


def document_of(acls: Iterable[Acl]) -> dict[str, Any]:
    """Return the document as releases wrote it, in a fixed order."""
    entries = [
        {
            "principal": str(acl.principal),
            "permissionType": PERMISSION_NAMES[acl.permission_type],
            "operation": OPERATION_NAMES[operation],
            "host": host,
        }
        for acl in sorted(singles_of(acls), key=order_of)
        for operation in acl.operations
        for host in acl.hosts
    ]
    return {"version": VERSION, "acls": entries}


def kip_11_document_of(acls: Iterable[Acl]) -> dict[str, Any]:
    """Return the document as KIP-11 specifies it, with sets, merged as far as possible, in a fixed order."""
    entries = [
        {
            "principal": str(acl.principal),
            "permissionType": acl.permission_type.name,
            "operations": sorted(operation.name for operation in acl.operations),
            "hosts": sorted(acl.hosts),
        }
        for acl in sorted(merged(acls), key=order_of)
    ]
    return {"version": VERSION, "acls": entries}


def write_acls(acls: Iterable[Acl], document: Callable[[Iterable[Acl]], dict[str, Any]] = document_of) -> str:
    """Return the text of a ZooKeeper node: Kafka's bytes, except for the order of ACLs, random in Kafka."""
    return json.dumps(document(acls), separators=(",", ":"), ensure_ascii=False)
