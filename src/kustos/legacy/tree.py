"""ACLs of many resources in one JSON object, by their paths in ZooKeeper.

`{"/kafka-acl/Topic/orders": {"version": 1, "acls": [...]}, ...}`. Kafka releases stored literal resources
under `/kafka-acl/<Type>/<name>` and prefixes under `/kafka-acl-extended/prefixed/<Type>/<name>`; KIP-11 put
all under `/kafka-acls/<name>`, where `kafka-cluster` is the cluster and every other name a topic.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kustos.acl import CLUSTER_NAME, PatternType, ResourceType
from kustos.legacy.documents import acls_of, document_of, kip_11_document_of, parse_json
from kustos.legacy.interface import Acls
from kustos.legacy.values import Acl, Resource, singles_of
from kustos.legacy.vocabulary import (
    RESOURCE_TYPE_NAMES,
    LegacyFormatError,
    LegacyRefusalError,
    resource_type_of,
)

LITERAL_ROOT: Final = "/kafka-acl/"
PREFIXED_ROOT: Final = "/kafka-acl-extended/prefixed/"
KIP_11_ROOT: Final = "/kafka-acls/"

_ROOTS: Final = {LITERAL_ROOT: PatternType.LITERAL, PREFIXED_ROOT: PatternType.PREFIXED}


def resource_of(path: str) -> Resource:
    """Return the resource whose ACLs were at this path; raise `LegacyFormatError` for any other path."""
    if path.startswith(KIP_11_ROOT) and len(path) > len(KIP_11_ROOT):
        name = path.removeprefix(KIP_11_ROOT)
        return Resource(ResourceType.CLUSTER if name == CLUSTER_NAME else ResourceType.TOPIC, name)
    for root, pattern_type in _ROOTS.items():
        if path.startswith(root):
            kind, slash, name = path.removeprefix(root).partition("/")
            if slash and name:
                return Resource(resource_type_of(kind), name, pattern_type)
    raise LegacyFormatError(
        f"`{path}` is not a path of ACLs, write `{LITERAL_ROOT}Topic/name`, `{PREFIXED_ROOT}Topic/name` "
        f"or, as in KIP-11, `{KIP_11_ROOT}name`"
    )


def path_of(resource: Resource) -> str:
    """Return the path at which Kafka releases stored the ACLs of a resource."""
    root = next(root for root, pattern_type in _ROOTS.items() if pattern_type is resource.pattern_type)
    return f"{root}{RESOURCE_TYPE_NAMES[resource.resource_type]}/{resource.name}"


def kip_11_path_of(resource: Resource) -> str:
    """Return the path in KIP-11; raise `LegacyRefusalError` for a resource that it cannot express."""
    path = f"{KIP_11_ROOT}{resource.name}"
    if not resource.name or resource_of(path) != resource:
        raise LegacyRefusalError(
            f"KIP-11 has no place for ACLs of `{resource}`, only for topics and the cluster"
        )
    return path


def read_tree(text: str) -> dict[Resource, frozenset[Acl]]:
    """Return the ACLs of a text by resource; raise `LegacyFormatError` naming the path.

    If two paths name one resource (`Group` and a preview's `CONSUMER_GROUP`), both count.
    """
    tree = parse_json(text)
    if not isinstance(tree, dict):
        raise LegacyFormatError("the document is not an object of paths")
    found: dict[Resource, frozenset[Acl]] = {}
    for path, document in tree.items():
        resource = resource_of(path)
        acls = acls_of(document, f"`{path}`")
        if acls:
            found[resource] = found.get(resource, frozenset()) | acls
    return found


def write_tree(acls: Acls, *, kip_11: bool = False) -> str:
    """Return a readable text of the same statements, indented and in a fixed order.

    With `kip_11` in the form of KIP-11, which raises `LegacyRefusalError` for groups and prefixes.
    """
    named: list[tuple[str, Iterable[Acl]]] = [
        (kip_11_path_of(resource) if kip_11 else path_of(resource), own)
        for resource, own in acls.items()
        if own
    ]
    make = kip_11_document_of if kip_11 else document_of
    tree: dict[str, Any] = {path: make(own) for path, own in sorted(named)}
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def statements(acls: Mapping[Resource, Iterable[Acl]]) -> dict[Resource, frozenset[Acl]]:
    """Return single statements by resource, without resources that have none, as authorizers store them."""
    kept = ((resource, singles_of(own)) for resource, own in acls.items())
    return {resource: singles for resource, singles in kept if singles}
