"""An ACL as seven named texts, shared by JSON, YAML and CSV."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms.values import FIELD_BYTES_MAX, AclFormatError, Place
from kustos.acl.values import AccessControlEntry, AclBinding, AclValueError, KafkaPrincipal, ResourcePattern

FIELDS: Final = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)
"""The fields of an ACL, in the order in which they are written."""

_FIELD_SET: Final = frozenset(FIELDS)

ERROR: Final = "error"
"""The field in which `rpk` reports that it could not list an ACL, else empty."""


def _word(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "")


_FIELD_OF_WORD: Final[dict[str, str]] = {_word(field): field for field in FIELDS} | {
    # Kafka Security Manager, AKHQ
    "kafkaprincipal": "principal",
    # rpk
    "resourcepatterntype": "pattern_type",
    "permission": "permission_type",
    ERROR: ERROR,
    # Terraform's `kafka_acl`
    "resourcepatterntypefilter": "pattern_type",
    "aclprincipal": "principal",
    "aclhost": "host",
    "acloperation": "operation",
    "aclpermissiontype": "permission_type",
}
"""The names of the fields as kustos and other tools write them, in lower case without separators."""
_FILTER_ONLY: Final = frozenset({"ANY", "MATCH"})

_EXACT: Final[dict[type[Any], dict[str, Any]]] = {
    kind: {each.name: each for each in kind if each and each.name not in _FILTER_ONLY}
    for kind in (ResourceType, PatternType, AclOperation, AclPermissionType)
}

_Enum = TypeVar("_Enum", AclOperation, AclPermissionType, PatternType, ResourceType)


def fields_of(binding: AclBinding) -> dict[str, str]:
    """Return the seven texts of an ACL; raise `AclFormatError` if it could not be read back."""
    entry = binding.entry
    check_texts(None, binding.pattern.name, entry.principal, entry.host)
    return texts_of(binding)


def texts_of(binding: AclBinding) -> dict[str, str]:
    """Return the seven texts of an ACL without checks, even if no file could contain it."""
    pattern, entry = binding.pattern, binding.entry
    return {
        "resource_type": pattern.resource_type.name,
        "resource_name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission_type": entry.permission_type.name,
    }


def binding_of_texts(texts: Mapping[str, Any]) -> AclBinding:
    """Return the ACL of the texts that `texts_of` returned; other keys of the row are ignored.

    Raises `AclValueError` for texts that are not a valid ACL.
    """
    try:
        kind, name, how, principal, host, operation, permission = [texts[field] for field in FIELDS]
        for text in (name, principal, host):
            if not isinstance(text, str):
                raise AclValueError(f"`{text}` is not text, an ACL has seven texts")
        return AclBinding(
            ResourcePattern(ResourceType[kind], name, PatternType[how]),
            AccessControlEntry(principal, host, AclOperation[operation], AclPermissionType[permission]),
        )
    except KeyError as error:
        raise AclValueError(f"`{error.args[0]}` is a field that is missing, or no name of an enum") from error


def binding_of_fields(fields: Mapping[str, str], place: Place) -> AclBinding:
    """Return the ACL of seven texts; raise `AclFormatError` naming the wrong one."""
    check_names(fields, place)
    check_texts(place, fields["resource_name"], fields["principal"], fields["host"])
    return AclBinding(
        ResourcePattern(
            enum_of(ResourceType, "resource type", fields["resource_type"], place),
            fields["resource_name"],
            enum_of(PatternType, "pattern type", fields["pattern_type"], place),
        ),
        AccessControlEntry(
            fields["principal"],
            fields["host"],
            enum_of(AclOperation, "operation", fields["operation"], place),
            enum_of(AclPermissionType, "permission type", fields["permission_type"], place),
        ),
    )


def field_names(names: Iterable[str], place: Place) -> list[str]:
    """Return the field for each column name of a tool; `ERROR` may be one of them.

    Raises `AclFormatError` for an unknown name, two names of one field, and a missing field.
    """
    found: dict[str, str] = {}
    for name in names:
        field = _FIELD_OF_WORD.get(_word(name), name)
        if field in found:
            raise AclFormatError(place, name, f"names `{field}` a second time, give each field once")
        found[field] = name
    check_names([field for field in found if field != ERROR], place)
    return list(found)


def binding_of_named_fields(fields: Mapping[str, str], place: Place) -> AclBinding:
    """Return the ACL of the texts that `field_names` named; raise `AclFormatError` naming the wrong one."""
    error = fields.get(ERROR)
    if error:
        raise AclFormatError(place, error, "is an error that the tool reports, this ACL is not whole")
    return binding_of_fields({name: text for name, text in fields.items() if name != ERROR}, place)


def check_names(names: Collection[str], place: Place) -> None:
    """Raise `AclFormatError` unless these are the names of the seven fields."""
    for name in names:
        if name not in _FIELD_SET:
            raise AclFormatError(place, name, f"is not a field of an ACL, use {', '.join(FIELDS)}")
    for name in FIELDS:
        if name not in names:
            raise AclFormatError(place, name, "is missing, an ACL has all seven fields")


def check_texts(place: Place | None, name: str, principal: str, host: str) -> None:
    """Raise `AclFormatError` for a text that Kafka's records cannot contain, or a principal without a
    type."""
    for text in (name, principal, host):
        if text.isascii():
            size = len(text)
        else:
            try:
                size = len(text.encode())
            except UnicodeEncodeError:
                raise AclFormatError(
                    place, ascii(text), "holds half of a surrogate pair, which UTF-8 cannot express"
                ) from None
        if size > FIELD_BYTES_MAX:
            raise AclFormatError(
                place, text, f"has {size} bytes of UTF-8, a record of Kafka holds at most {FIELD_BYTES_MAX}"
            )
    try:
        KafkaPrincipal.parse(principal)
    except AclValueError:
        raise AclFormatError(place, principal, "is not a principal, write it as `User:name`") from None


def enum_of(kind: type[_Enum], what: str, text: str, place: Place) -> _Enum:
    """Return the member with this name in any case; `UNKNOWN` only for the text `UNKNOWN`."""
    exact: _Enum | None = _EXACT[kind].get(text)
    if exact is not None:
        return exact
    member = kind.from_text(text)
    if member == 0 and text.strip().upper() != "UNKNOWN":
        article = "an" if what.startswith("o") else "a"
        raise AclFormatError(place, text, f"is not {article} {what}, use one of {', '.join(_EXACT[kind])}")
    if member.name in _FILTER_ONLY:
        raise AclFormatError(place, text, f"is only for filters, an ACL names one {what} in particular")
    return member
