"""The `KafkaUser` of Strimzi: a Kubernetes object with a user and its ACLs.

Source: the API reference of Strimzi 0.47, and the principal names of its user operator.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kustos.acl.enums import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from kustos.acl.forms.fields import check_texts, enum_of
from kustos.acl.forms.values import AclFormatError, LocatedBinding, Place
from kustos.acl.values import AccessControlEntry, AclBinding, KafkaPrincipal, ResourcePattern

KIND: Final = "KafkaUser"
LIST_KIND: Final = "List"
"""The kind that `kubectl get` prints for several objects."""

_USER_NAMES: Final = {
    None: "{}",
    "scram-sha-512": "{}",
    "tls": "CN={}",
    "tls-external": "CN={}",
}
"""Type of authentication → the name of the principal, built from the name of the object."""

_RULE: Final = frozenset({"type", "resource", "host", "operations", "operation"})
_RESOURCE: Final = frozenset({"type", "name", "patternType"})
_PATTERN_TYPES: Final = {"literal": PatternType.LITERAL, "prefix": PatternType.PREFIXED}


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value of a YAML text with its place: a text, None, a list or a mapping."""

    file: str
    line: int
    value: "str | list[PlacedValue] | dict[str, PlacedValue] | None"

    def error(self, value: str, rule: str) -> AclFormatError:
        """Return an error for this value."""
        return AclFormatError(Place(self.file, self.line), value, rule)

    def members(self, what: str, known: frozenset[str] | None = None) -> Mapping[str, "PlacedValue"]:
        """Return the members of a mapping; refuse one that is not `known`."""
        if not isinstance(self.value, dict):
            raise self.error("", f"{what} is not a mapping")
        for name, member in self.value.items():
            if known is not None and name not in known:
                raise member.error(name, f"is not known, {what} has {', '.join(sorted(known))}")
        return self.value

    def items(self, what: str) -> "list[PlacedValue]":
        """Return the items of a list."""
        if not isinstance(self.value, list):
            raise self.error("", f"{what} is not a list")
        return self.value

    def member(self, name: str, what: str) -> "PlacedValue":
        """Return a required member."""
        found = self.members(what).get(name)
        if found is None:
            raise self.error(name, f"is missing, {what} has it")
        return found

    def text(self, what: str) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            raise self.error("", f"{what} is not text")
        return self.value


def bindings_of_users(document: PlacedValue) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a `KafkaUser`, or of a `List` of them; raise `AclFormatError`."""
    kind = document.member("kind", "an object of Kubernetes").text("`kind`")
    if kind == LIST_KIND:
        for item in document.member("items", "a list of Kubernetes").items("`items`"):
            yield from bindings_of_users(item)
        return
    if kind != KIND:
        raise document.error(kind, f"is another kind of object, only `{KIND}` has ACLs; leave it out")
    spec = document.member("spec", "a KafkaUser")
    authorization = spec.members("`spec`").get("authorization")
    if authorization is None:
        return
    how = authorization.member("type", "`authorization`").text("`type`")
    if how != "simple":
        raise authorization.error(how, "is not the authorization by ACLs, which is `simple`")
    principal = _principal(document, spec)
    for rule in authorization.member("acls", "`authorization`").items("`acls`"):
        yield from _bindings(rule, principal)


def _principal(document: PlacedValue, spec: PlacedValue) -> str:
    name = document.member("metadata", "a KafkaUser").member("name", "`metadata`").text("`name`")
    authentication = spec.members("`spec`").get("authentication")
    how = None if authentication is None else authentication.member("type", "`authentication`").text("`type`")
    if how not in _USER_NAMES:
        raise spec.error(
            str(how), "is not a type of authentication of a KafkaUser, so its principal is unknown"
        )
    return str(KafkaPrincipal(KafkaPrincipal.USER_TYPE, _USER_NAMES[how].format(name)))


def _bindings(rule: PlacedValue, principal: str) -> Iterator[LocatedBinding]:
    parts = rule.members("a rule", _RULE)
    place = Place(rule.file, rule.line)
    pattern = _pattern(rule.member("resource", "a rule"))
    permission = AclPermissionType.ALLOW
    if "type" in parts:
        text = parts["type"].text("`type`")
        permission = enum_of(AclPermissionType, "permission type", text, place)
    host = parts["host"].text("`host`") if "host" in parts else WILDCARD
    check_texts(place, pattern.name, principal, host)
    operations = parts["operations"].items("`operations`") if "operations" in parts else []
    operations += [parts["operation"]] if "operation" in parts else []
    if not operations:
        raise rule.error("operations", "is missing, a rule has it")
    for each in operations:
        operation = enum_of(AclOperation, "operation", each.text("an operation"), Place(each.file, each.line))
        entry = AccessControlEntry(principal, host, operation, permission)
        yield LocatedBinding(AclBinding(pattern, entry), rule.line)


def _pattern(resource: PlacedValue) -> ResourcePattern:
    parts = resource.members("a resource", _RESOURCE)
    place = Place(resource.file, resource.line)
    kind = enum_of(ResourceType, "resource type", resource.member("type", "a resource").text("`type`"), place)
    if kind is ResourceType.CLUSTER:
        return ResourcePattern(kind, CLUSTER_NAME)
    how = parts["patternType"].text("`patternType`") if "patternType" in parts else "literal"
    if how not in _PATTERN_TYPES:
        raise resource.error(how, f"is not a pattern type of Strimzi, use {' or '.join(_PATTERN_TYPES)}")
    return ResourcePattern(kind, resource.member("name", "a resource").text("`name`"), _PATTERN_TYPES[how])
