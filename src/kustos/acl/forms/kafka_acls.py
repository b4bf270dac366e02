r"""The list that `kafka-acls --list` prints.

    Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:
    <tab>(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)

Kafka escapes nothing. Within a line, only `, host=` in a principal or host is ambiguous; such a line is
refused. A name with a line break usually produces invalid lines, which are refused too, but a name that
imitates the list cannot be detected: anyone who may write ACLs on a cluster can forge such a text. So this
module never writes a text with a line break; fetch the ACLs of an untrusted cluster as JSON.

The reader accepts the output of all releases. Releases before 4.0 end the last ACL of each resource with a
blank. Releases before 2.4 may print `Topic:LITERAL:orders` for the resource (up to 1.1 `Topic:orders`), and
instead of the parentheses `User:alice has Allow permission for operations: Read from hosts: *`.

Source: `AclCommand` of Kafka 4.3.1, and `Acl` and `Resource` of Kafka 1.1 and 2.3.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.forms.fields import check_texts, enum_of
from kustos.acl.forms.values import AclFormatError, LocatedBinding, Place, numbered_lines
from kustos.acl.values import AccessControlEntry, AclBinding, ResourcePattern

BEGINNING: Final = "Current ACLs for resource `"

_RESOURCES: Final = (
    re.compile(
        r"Current ACLs for resource `ResourcePattern\(resourceType=(?P<type>\w+), name=(?P<name>.*), "
        r"patternType=(?P<pattern>\w+)\)`: ?\r?"
    ),
    re.compile(r"Current ACLs for resource `(?P<type>\w+):(?P<pattern>LITERAL|PREFIXED):(?P<name>.*)`: ?\r?"),
    re.compile(r"Current ACLs for resource `(?P<type>\w+):(?P<name>.*)`: ?\r?"),
)
"""The beginnings of a resource, the newest release first: the first match counts."""

_ENTRY: Final = re.compile(r" ?\t\(principal=(.*), operation=(\w+), permissionType=(\w+)\) ?\r?")
_HOST: Final = ", host="
_OLD_ENTRY: Final = re.compile(
    r" ?\t(.*) has (\w+)( permission for operations: )(\w+)( from hosts: )(.*?) ?\r?"
)
_PRINCIPAL: Final = re.compile(r"ACLs for principal `.*` ?\r?")
_ECHO: Final = re.compile(r"(Adding ACLs for resource|Are you sure you want to (delete|remove)) .*")


def read_kafka_acls(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a list; raise `AclFormatError`, also for an ambiguous line."""
    pattern: ResourcePattern | None = None
    empty_resource: Place | None = None
    release: re.Pattern[str] | None = None
    for number, line in numbered_lines(text, name):
        place = Place(name, number)
        if resource := _resource(line):
            _refuse_empty_resource(empty_resource)
            empty_resource = place
            if release not in {None, resource.re}:
                raise AclFormatError(
                    place, line.strip(), "is of another release than the resources above it, split the file"
                )
            release = resource.re
            pattern = _pattern(resource, place)
        elif entry := _ENTRY.fullmatch(line) or _OLD_ENTRY.fullmatch(line):
            if pattern is None:
                raise AclFormatError(place, line.strip(), "stands before any resource")
            if entry.re is _OLD_ENTRY and not text.endswith("\n") and text.endswith(line):
                # its host ends with the line: a truncated text would be read as another host
                raise AclFormatError(place, line.strip(), "is cut off: the last line has no end")
            yield LocatedBinding(AclBinding(pattern, _entry(pattern, entry, place)), number)
            empty_resource = None
        elif line.strip(" \r") and _PRINCIPAL.fullmatch(line) is None:
            raise AclFormatError(place, line.rstrip("\r"), _foreign(line))
    _refuse_empty_resource(empty_resource)


def _resource(line: str) -> re.Match[str] | None:
    if not line.startswith(BEGINNING):
        return None
    return next(filter(None, (each.fullmatch(line) for each in _RESOURCES)), None)


def _foreign(line: str) -> str:
    if _ECHO.match(line):
        return "is the echo of a change; give only what `kafka-acls --list` printed"
    return (
        "is not a line of kafka-acls' list; remove it if another program wrote it; a name with a line break "
        "needs another form"
    )


def _refuse_empty_resource(place: Place | None) -> None:
    if place is not None:
        raise AclFormatError(place, "", "a resource has no ACL below it, the list is not whole")


def _pattern(match: re.Match[str], place: Place) -> ResourcePattern:
    parts = {"pattern": PatternType.LITERAL.name} | match.groupdict()
    return ResourcePattern(
        enum_of(ResourceType, "resource type", parts["type"], place),
        parts["name"],
        enum_of(PatternType, "pattern type", parts["pattern"], place),
    )


def _entry(pattern: ResourcePattern, match: re.Match[str], place: Place) -> AccessControlEntry:
    if match.re is _ENTRY:
        who, operation, permission_type = match.groups()
        principal, host = _split_once(who, _HOST, "host", match, place)
    else:
        principal, permission_type, for_operations, operation, from_hosts, host = match.groups()
        for separator, what in ((for_operations, "operation"), (from_hosts, "host")):
            _split_once(match[0], separator, what, match, place)
    check_texts(place, pattern.name, principal, host)
    return AccessControlEntry(
        principal,
        host,
        enum_of(AclOperation, "operation", operation, place),
        enum_of(AclPermissionType, "permission type", permission_type, place),
    )


def _split_once(text: str, separator: str, what: str, match: re.Match[str], place: Place) -> list[str]:
    parts = text.split(separator)
    if len(parts) != 2:
        raise AclFormatError(
            place,
            match[0].strip(),
            f"has no unique start of the {what}: `{separator}` occurs {len(parts) - 1} times",
        )
    return parts


def write_kafka_acls(bindings: Iterable[AclBinding]) -> str:
    """Return the list as Kafka prints it, one paragraph per resource, each ACL once.

    Raises `AclFormatError` for an ACL that the reader could not read back.
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
