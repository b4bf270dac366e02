r"""The list that `kafka-acls --list` prints.

    Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:
    <tab>(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)

Kafka escapes nothing. Within a line only `, host=` in a principal or host is ambiguous; such a line is
refused. A name with a line break makes lines that do not belong to the list and are refused too, but a name
crafted to look like the list cannot be detected: anyone who may write ACLs on a cluster can forge such a
text. So a text with a line break is never written here; fetch the ACLs of an untrusted cluster as JSON.

Source: `AclCommand` of Kafka 4.3.1; the blanks of its Scala predecessors are accepted too.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms.fields import check_texts, enum_of
from kustos.acl.forms.values import AclFormatError, LocatedBinding, Place, numbered_lines
from kustos.acl.values import AccessControlEntry, AclBinding, ResourcePattern

BEGINNING: Final = "Current ACLs for resource `"

_RESOURCE: Final = re.compile(
    r"Current ACLs for resource `ResourcePattern"
    r"\(resourceType=(\w+), name=(.*), patternType=(\w+)\)`: ?\r?"
)
_ENTRY: Final = re.compile(r" ?\t\(principal=(.*), operation=(\w+), permissionType=(\w+)\)\r?")
_PRINCIPAL: Final = re.compile(r"ACLs for principal `.*`\r?")
_HOST: Final = ", host="


def read_kafka_acls(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a list; raise `AclFormatError`, also for an ambiguous line."""
    pattern: ResourcePattern | None = None
    empty_resource: Place | None = None
    for number, line in numbered_lines(text, name):
        place = Place(name, number)
        if resource := _RESOURCE.fullmatch(line):
            _refuse_empty_resource(empty_resource)
            empty_resource = place
            pattern = _pattern(resource, place)
        elif entry := _ENTRY.fullmatch(line):
            if pattern is None:
                raise AclFormatError(place, line.strip(), "stands before any resource")
            yield LocatedBinding(AclBinding(pattern, _entry(pattern, entry, place)), number)
            empty_resource = None
        elif line.strip(" \r") and _PRINCIPAL.fullmatch(line) is None:
            raise AclFormatError(
                place,
                line,
                "is not a line of kafka-acls' list; a name with a line break cannot be read from it, "
                "use another form for it",
            )
    _refuse_empty_resource(empty_resource)


def _refuse_empty_resource(place: Place | None) -> None:
    if place is not None:
        raise AclFormatError(place, "", "a resource has no ACL below it, the list is not whole")


def _pattern(match: re.Match[str], place: Place) -> ResourcePattern:
    kind, resource_name, pattern_type = match.groups()
    return ResourcePattern(
        enum_of(ResourceType, "resource type", kind, place),
        resource_name,
        enum_of(PatternType, "pattern type", pattern_type, place),
    )


def _entry(pattern: ResourcePattern, match: re.Match[str], place: Place) -> AccessControlEntry:
    who, operation, permission_type = match.groups()
    parts = who.split(_HOST)
    if len(parts) != 2:
        raise AclFormatError(
            place,
            match[0].strip(),
            f"has no unique start of the host: `{_HOST}` occurs {len(parts) - 1} times",
        )
    check_texts(place, pattern.name, parts[0], parts[1])
    return AccessControlEntry(
        parts[0],
        parts[1],
        enum_of(AclOperation, "operation", operation, place),
        enum_of(AclPermissionType, "permission type", permission_type, place),
    )


def write_kafka_acls(bindings: Iterable[AclBinding]) -> str:
    """Return the list as Kafka prints it, one paragraph per resource, each ACL once.

    Raises `AclFormatError` for an ACL that could not be read back.
    """
    entries: dict[ResourcePattern, dict[AccessControlEntry, None]] = {}
    for binding in bindings:
        entries.setdefault(binding.pattern, {})[binding.entry] = None
    return "".join([_paragraph(pattern, each) for pattern, each in entries.items()])


def _paragraph(pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> str:
    lines = [
        f"{BEGINNING}ResourcePattern(resourceType={pattern.resource_type.name}, "
        f"name={pattern.name}, patternType={pattern.pattern_type.name})`:"
    ]
    for entry in entries:
        check_texts(None, pattern.name, entry.principal, entry.host)
        for text in (pattern.name, entry.principal, entry.host):
            if "\n" in text:
                raise AclFormatError(
                    None, text, "has a line break, which kafka-acls' list cannot express; use another form"
                )
        who = f"{entry.principal}{_HOST}{entry.host}"
        if who.count(_HOST) != 1:
            raise AclFormatError(
                None, who, f"has `{_HOST}` in a name, which kafka-acls' list cannot express; use another form"
            )
        lines.append(
            f"\t(principal={who}, operation={entry.operation.name}, "
            f"permissionType={entry.permission_type.name})"
        )
    return "\n".join(lines) + "\n\n"
