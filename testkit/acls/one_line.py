"""ACLs and questions in one line each, for the tests of behaviours."""

from collections.abc import Iterable
from uuid import UUID

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import Decision, StandardAuthorizer

HOST = "10.0.0.1"
ELSEWHERE = "10.0.0.2"


def acl(text: str) -> AclBinding:
    """Return the ACL of `ALLOW READ User:alice TOPIC orders`, with `prefix` before a prefix, `from` a host.

    `ALLOW READ User:alice TOPIC prefix or from 10.0.0.1`; a name is `''` where it is empty.
    """
    words, _, host = text.partition(" from ")
    permission, operation, principal, kind, *rest = words.split(" ")
    name = rest[-1].replace("''", "")
    pattern_type = PatternType.PREFIXED if rest[0] == "prefix" and len(rest) > 1 else PatternType.LITERAL
    return AclBinding(
        ResourcePattern(ResourceType[kind], name, pattern_type),
        AccessControlEntry(principal, host or "*", AclOperation[operation], AclPermissionType[permission]),
    )


def acls(texts: Iterable[str]) -> list[AclBinding]:
    return [acl(text) for text in texts]


def authorizer_of(*texts: str, default_allow: bool = False, super_users: str = "") -> StandardAuthorizer:
    """Return an authorizer that holds these ACLs, with ids from 1 in their order, and is ready."""
    authorizer = StandardAuthorizer(
        super_users=frozenset(super_users.split()), allow_everyone_if_no_acl_found=default_allow
    )
    for number, binding in enumerate(acls(texts), start=1):
        authorizer.add_acl(UUID(int=number), binding)
    authorizer.complete_initial_load()
    return authorizer


def decision(authorizer: StandardAuthorizer, text: str, host: str = HOST) -> Decision:
    """Return what `User:alice READ TOPIC orders` comes to; without a name it is asked by type."""
    principal, operation, kind, *rest = text.split(" ")
    session = authorizer.session(KafkaPrincipal.parse(principal), host)
    if not rest:
        return session.decide_by_resource_type(AclOperation[operation], ResourceType[kind])
    return session.decide(AclOperation[operation], ResourceType[kind], rest[0].replace("''", ""))


def allows(authorizer: StandardAuthorizer, text: str, host: str = HOST) -> bool:
    """Return whether it is allowed."""
    return decision(authorizer, text, host).allowed
