"""Findings about a single ACL, regardless of the others: its codes, principal, resource and breadth."""

import re
from collections.abc import Iterator
from typing import Final

from kustos.acl import (
    CLUSTER_NAME,
    EVERY_PRINCIPAL,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourceType,
)
from kustos.analysis.lint.findings import Finding
from kustos.analysis.lint.hosts import host_findings
from kustos.authorizer.index import IMPLIED_OPERATIONS

TOPIC_NAME_CHARACTERS_MAX: Final = 249
"""Kafka's own limit; a partition's directory name must fit a file system's limit of 255."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]*")
_USING: Final = frozenset(
    {
        AclOperation.ALL,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.ALTER_CONFIGS,
        AclOperation.CLUSTER_ACTION,
        AclOperation.CREATE_TOKENS,
    }
)
"""Operations that use or change a resource; DESCRIBE and similar operations only show it."""

_LIKE_SUPER: Final = frozenset({AclOperation.ALL, AclOperation.ALTER, AclOperation.CLUSTER_ACTION})


def entry_findings(number: int, binding: AclBinding) -> Iterator[Finding]:
    """Yield the findings about an ACL by itself."""
    yield from _code_findings(number, binding)
    yield from _name_findings(number, binding)
    yield from host_findings(number, binding)
    yield from _principal_findings(number, binding)
    if binding.entry.permission_type is AclPermissionType.ALLOW:
        yield from _breadth_findings(number, binding)


def _code_findings(number: int, binding: AclBinding) -> Iterator[Finding]:
    pattern, entry = binding.pattern, binding.entry
    codes = {
        "resource type": pattern.resource_type,
        "pattern type": pattern.pattern_type,
        "operation": entry.operation,
        "permission type": entry.permission_type,
    }
    unknown = [name for name, code in codes.items() if code == 0]
    if unknown:
        yield Finding(
            "KUS501", number, f"the {' and the '.join(unknown)} is unknown", "use a version that knows it"
        )
        return
    supported = SUPPORTED_OPERATIONS[pattern.resource_type]
    operation = entry.operation
    if operation is AclOperation.ALL or operation in supported:
        return
    kind = pattern.resource_type.name
    implied = IMPLIED_OPERATIONS.get(operation)
    is_allow = entry.permission_type is AclPermissionType.ALLOW
    rest = f", it only implies {implied.name}" if is_allow and implied in supported else ""
    names = ", ".join(each.name for each in supported)
    yield Finding(
        "KUS201", number, f"{operation.name} does not apply to a {kind}{rest}", f"use {names} or ALL"
    )


def _name_findings(number: int, binding: AclBinding) -> Iterator[Finding]:
    kind, name = binding.pattern.resource_type, binding.pattern.name
    is_literal = binding.pattern.pattern_type is PatternType.LITERAL
    if not name:
        yield Finding("KUS206", number, "the resource has no name", "give a name, or `*` for every resource")
        return
    if kind is ResourceType.CLUSTER:
        if name != CLUSTER_NAME:
            would_match = name == WILDCARD if is_literal else CLUSTER_NAME.startswith(name)
            so = "Kafka refuses to create it, though it would match" if would_match else "it never matches"
            yield Finding("KUS202", number, f"no cluster is called `{name}`: {so}", "write `kafka-cluster`")
        return
    if is_literal and name == WILDCARD:
        return
    if WILDCARD in name:
        yield _asterisk(number, name, is_literal=is_literal)
    elif kind is ResourceType.TOPIC and (why := _impossible(name, is_literal=is_literal)):
        yield Finding("KUS204", number, f"no topic can be called `{name}`: {why}", "correct the name")
    elif name != name.strip():
        yield Finding(
            "KUS207", number, f"the name `{name}` has blanks at its ends", f"write `{name.strip()}`"
        )
    unanswerable = unanswerable_name(name)
    if unanswerable is not None:
        yield Finding(
            "KUS205",
            number,
            f"with the name `{name}` Kafka's own authorizer never answers a question about `{unanswerable}`",
            "remove the ACL from every Kafka cluster",
        )


def unanswerable_name(name: str) -> str | None:
    """Return a name for which Kafka's authorizer hangs if an ACL has the given name, None if there is no such
    name.

    The scan for a name that sorts below `*` ends only at an ACL name that is a prefix of the scanned name or
    that shares no character with it.
    """
    if len(name) < 2 or name[0] >= WILDCARD:
        return None
    # sorts after the ACL's name and shares only the first character with it
    return name[0] + ("~" if name[1] < "~" else "\uffff")


def _asterisk(number: int, name: str, *, is_literal: bool) -> Finding:
    if name == WILDCARD:
        message = "the prefix `*` matches names that begin with an asterisk, not for every name"
        return Finding("KUS203", number, message, "write `*` as LITERAL for every name")
    start = name.partition(WILDCARD)[0]
    what = "names exactly this" if is_literal else "matches names that begin with all of it"
    better = f"write `{start}` as PREFIXED" if start else "write the names, or a prefix of them"
    return Finding("KUS203", number, f"`{name}` {what}; an asterisk in a name is not a pattern", better)


def _impossible(name: str, *, is_literal: bool) -> str:
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        return f"it has {len(name)} characters, more than {TOPIC_NAME_CHARACTERS_MAX}"
    if is_literal and name in {".", ".."}:
        return "it would be a directory"
    match = _TOPIC.match(name)
    end = 0 if match is None else match.end()
    return "" if end == len(name) else f"it has `{name[end]}`"


def _principal_findings(number: int, binding: AclBinding) -> Iterator[Finding]:
    text = binding.entry.principal
    if text == EVERY_PRINCIPAL:
        return
    if ":" not in text:
        yield Finding("KUS406", number, f"principal `{text}` has no type", f"write `User:{text}`")
        return
    principal = KafkaPrincipal.parse(text)
    kind, name = principal.principal_type, principal.name
    trimmed = f"{kind.strip()}:{name.strip()}"
    if WILDCARD in name:
        yield Finding(
            "KUS401",
            number,
            f"`{text}` is a principal of that very name, not a pattern",
            "write `User:*` for everyone, or name the principals",
        )
    elif not name.strip():
        yield Finding("KUS405", number, f"principal `{text}` has no name", "give the name")
    elif trimmed != text:
        yield Finding("KUS402", number, f"principal `{text}` has blanks at its ends", f"write `{trimmed}`")
    bare = kind.strip()
    if bare == KafkaPrincipal.USER_TYPE:
        return
    if bare.lower() == KafkaPrincipal.USER_TYPE.lower():
        yield Finding("KUS403", number, f"principal type `{kind}` is not `User`", f"write `User:{name}`")
    else:
        yield Finding(
            "KUS404",
            number,
            f"only a custom principal builder makes principals of the type `{kind}`"
            f"{', or kustos groups of clients' if bare == KafkaPrincipal.GROUP_TYPE else ''}",
            "check that the cluster has one",
        )


def _breadth_findings(number: int, binding: AclBinding) -> Iterator[Finding]:
    pattern, entry = binding.pattern, binding.entry
    kind = pattern.resource_type
    is_cluster = kind is ResourceType.CLUSTER
    is_everywhere = pattern.name in {WILDCARD, ""} or is_cluster
    what = "the cluster" if is_cluster else f"every {kind.name.lower().replace('_', ' ')}"
    operation = entry.operation
    if entry.principal == EVERY_PRINCIPAL:
        if operation not in _USING:
            return
        if is_everywhere and entry.host == WILDCARD:
            yield Finding("KUS101", number, f"everyone has {operation.name} on {what}", "name principals")
        else:
            on = what if is_everywhere else f"`{pattern.name}`"
            yield Finding("KUS102", number, f"everyone has {operation.name} on {on}", "name the principals")
    elif is_everywhere and (operation is AclOperation.ALL or (is_cluster and operation in _LIKE_SUPER)):
        yield Finding(
            "KUS103",
            number,
            f"`{entry.principal}` has {operation.name} on {what}",
            "grant the operations and names that are needed",
        )
