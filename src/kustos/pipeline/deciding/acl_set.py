"""A set of ACLs as a value, with the settings that decide beside it: named, hashed, and compressed."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, Self

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    AclValueError,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import Rules
from kustos.authorizer import StandardAuthorizer, parse_super_users
from kustos.pipeline.errors import AclSetError
from kustos.runtime import garbage_collection_paused

CONTENT_VERSION: Final = 1
COMPRESSION_LEVEL: Final = 1
"""Repeated names shrink well at any level; the quickest one takes a tenth of a second for 100,000 ACLs."""

CONTENT_BYTES_MAX: Final = 1 << 30
"""Uncompressed: some ten million ACLs; an executor's memory holds no larger index."""


@dataclass(frozen=True, slots=True)
class AclsInForce:
    """ACLs, each once, with `super.users` and `allow.everyone.if.no.acl.found`.

    `name` is for people and no part of the content. `content` is the content as bytes, equal in every
    process, and `digest` their SHA-256: the same for every order, repetition and form of the ACLs.
    `bindings` are in a fixed order, since several ACLs may be the rule for a question about any resource of a
    type, and the authorizer names one of them. Create it with `AclsInForce.of`.
    """

    name: str
    bindings: tuple[AclBinding, ...] = field(repr=False)
    super_users: frozenset[str]
    allow_everyone_if_no_acl_found: bool
    content: bytes = field(init=False, repr=False, compare=False)
    digest: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        ordered, plain = _encode(self.bindings, self.super_users, self.allow_everyone_if_no_acl_found)
        object.__setattr__(self, "bindings", ordered)
        object.__setattr__(self, "content", zlib.compress(plain, COMPRESSION_LEVEL))
        object.__setattr__(self, "digest", hashlib.sha256(plain).hexdigest())

    @classmethod
    def of(
        cls,
        name: str,
        bindings: Iterable[AclBinding],
        *,
        super_users: str | Iterable[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> Self:
        """Return the set of these ACLs; `super_users` as in Kafka's setting, or one by one.

        Raises `AclSetError` for what no authorizer takes: a principal without a type, `User:*` as a super
        user.
        """
        text = super_users if isinstance(super_users, str) else ";".join(super_users)
        try:
            parsed = parse_super_users(text)
        except AclValueError as error:
            raise AclSetError(f"{name}: {error}") from error
        distinct = tuple(dict.fromkeys(bindings))
        for binding in distinct:
            if ":" not in binding.entry.principal:
                raise AclSetError(
                    f"{name}: principal `{binding.entry.principal}` of an ACL has no type, "
                    "write it as `User:name`"
                )
        return cls(name, distinct, parsed, allow_everyone_if_no_acl_found)

    @property
    def rules(self) -> Rules:
        """The settings, as the analyses take them."""
        return Rules(
            super_users=self.super_users,
            allow_everyone_if_no_acl_found=self.allow_everyone_if_no_acl_found,
        )

    def authorizer(self) -> StandardAuthorizer:
        """Return the authorizer that decides by this set, compiled again."""
        return StandardAuthorizer.of(
            self.bindings,
            super_users=self.super_users,
            allow_everyone_if_no_acl_found=self.allow_everyone_if_no_acl_found,
        )

    def with_bindings(self, name: str, bindings: Iterable[AclBinding]) -> Self:
        """Return a set of other ACLs under the same settings."""
        return type(self).of(
            name,
            bindings,
            super_users=self.super_users,
            allow_everyone_if_no_acl_found=self.allow_everyone_if_no_acl_found,
        )


def authorizer_of_content(name: str, content: bytes, digest: str) -> StandardAuthorizer:
    """Return the authorizer of the set with this `content`; raise `AclSetError` unless it has this digest."""
    document = _verified_document(name, content, digest)
    with garbage_collection_paused():
        return StandardAuthorizer.of(
            _decode(document),
            super_users=frozenset(document["super_users"]),
            allow_everyone_if_no_acl_found=document["allow_everyone_if_no_acl_found"],
        )


def parts_of_content(name: str, content: bytes, digest: str) -> tuple[list[AclBinding], frozenset[str], bool]:
    """Return ACLs, super users and default of the set with this `content`; raise the same error."""
    document = _verified_document(name, content, digest)
    return (
        list(_decode(document)),
        frozenset(document["super_users"]),
        document["allow_everyone_if_no_acl_found"],
    )


def _verified_document(name: str, content: bytes, digest: str) -> dict[str, Any]:
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(content, CONTENT_BYTES_MAX)
    except zlib.error as error:
        raise AclSetError(f"the ACLs of `{name}` were damaged on their way: {error}") from error
    if not reader.eof or hashlib.sha256(plain).hexdigest() != digest:
        raise AclSetError(f"the ACLs of `{name}` were damaged on their way")
    document: dict[str, Any] = json.loads(plain)
    return document


def _encode(
    bindings: Iterable[AclBinding], super_users: frozenset[str], allow_everyone: bool
) -> tuple[tuple[AclBinding, ...], bytes]:
    """Return the ACLs in order, and all as bytes.

    Distinct patterns and entries are written once, each ACL as one number, stored as the difference from the
    one before.
    """
    pairs = {
        (
            (p.resource_type.value, p.name, p.pattern_type.value),
            (e.principal, e.host, e.operation.value, e.permission_type.value),
        ): binding
        for p, e, binding in ((binding.pattern, binding.entry, binding) for binding in bindings)
    }
    patterns = {pattern: number for number, pattern in enumerate(sorted({pattern for pattern, _ in pairs}))}
    entries = {entry: number for number, entry in enumerate(sorted({entry for _, entry in pairs}))}
    numbered = {
        patterns[pattern] * len(entries) + entries[entry]: binding
        for (pattern, entry), binding in pairs.items()
    }
    numbers = sorted(numbered)
    document = {
        "version": CONTENT_VERSION,
        "super_users": sorted(super_users),
        "allow_everyone_if_no_acl_found": allow_everyone,
        "patterns": list(patterns),
        "entries": list(entries),
        "steps": [number - before for before, number in zip([0, *numbers], numbers, strict=False)],
    }
    plain = json.dumps(document, separators=(",", ":")).encode("ascii")
    return tuple([numbered[number] for number in numbers]), plain


def _decode(document: dict[str, Any]) -> Iterator[AclBinding]:
    patterns = [
        ResourcePattern(ResourceType(kind), name, PatternType(how))
        for kind, name, how in document["patterns"]
    ]
    entries = [
        AccessControlEntry(principal, host, AclOperation(operation), AclPermissionType(permission))
        for principal, host, operation, permission in document["entries"]
    ]
    for number in accumulate(document["steps"]):
        pattern, entry = divmod(number, len(entries))
        yield AclBinding(patterns[pattern], entries[entry])
