"""Parses the nodes read from Kafka's part of a ZooKeeper into what can be migrated. No IO.

`/kafka-acl/<Type>/<name>` and `/kafka-acl-extended/prefixed/<Type>/<name>` hold the ACLs of Kafka 0.9 to
3.9, `/kafka-acls/<name>` those of KIP-11 and of previews, `/config/users/<name>` SCRAM credentials next to
quotas. Entries that cannot be parsed are refused one by one with their location, never skipped silently: a
skipped Deny opens a door.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kustos.acl import AclBinding
from kustos.cli.migrate.plan import LeftOut, MigrationRefusal, MigrationSource
from kustos.cli.migrate.scram_text import ScramTextError, credential_of, user_of
from kustos.legacy import (
    Acl,
    LegacyFormatError,
    LegacyRefusalError,
    Resource,
    acls_of_entry,
    bindings_of,
    entries_of,
    parse_json,
    path_of,
    resource_of,
)
from kustos.metadata import ScramCredential, ScramMechanism
from kustos.metadata.image import ScramKey
from kustos.runtime import garbage_collection_paused

LITERAL_ROOT: Final = "/kafka-acl"
EXTENDED_ROOT: Final = "/kafka-acl-extended"
KIP_11_ROOT: Final = "/kafka-acls"
USERS_ROOT: Final = "/config/users"
DEFAULT_ENTITY: Final = "<default>"

READ_ROOTS: Final = (LITERAL_ROOT, EXTENDED_ROOT, KIP_11_ROOT, USERS_ROOT)
"""Roots that are read completely."""

COUNTED: Final = {
    "/config/topics": "topics with settings",
    "/config/clients": "clients with quotas",
    "/config/ips": "addresses with quotas",
    "/config/brokers": "brokers with settings",
    "/delegation_token/tokens": "delegation tokens",
}
"""Roots whose children are only counted, and what the children are."""

_DEPTHS: Final = {LITERAL_ROOT: 2, EXTENDED_ROOT: 3, KIP_11_ROOT: 1}
"""The number of path levels below each root of ACLs."""

_NESTED: Final = (
    "Kafka lists one level of names when it starts, so it was in force until then at most; decide, "
    "and add it by hand"
)


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes by path below the chroot, and the counts of children of `COUNTED`."""

    nodes: Mapping[str, bytes] = field(repr=False)
    counts: Mapping[str, int] = field(default_factory=dict)


def read_tree(name: str, tree: Tree, *, with_kip_11: bool = False) -> MigrationSource:
    """Return the content of the tree.

    ACLs of `/kafka-acls` count only if the other roots have none, since a Kafka that wrote `/kafka-acl` never
    read them, or with `with_kip_11`. In the other roots, type names of previews such as `CONSUMER_GROUP`
    require `with_kip_11`.
    """
    with garbage_collection_paused():
        return _read_tree(name, tree, with_kip_11=with_kip_11)


def _read_tree(name: str, tree: Tree, *, with_kip_11: bool) -> MigrationSource:
    reading = _TreeReader(with_kip_11=with_kip_11)
    released = [path for root in (LITERAL_ROOT, EXTENDED_ROOT) for path in _below(tree, root)]
    for path in released:
        reading.node(path, tree.nodes[path])
    drafted = [path for path in _below(tree, KIP_11_ROOT) if tree.nodes[path]]
    if with_kip_11 or not (reading.acls or reading.refused):
        for path in drafted:
            reading.node(path, tree.nodes[path])
    elif drafted:
        reading.left[KIP_11_ROOT, f"nodes, which no Kafka that has `{LITERAL_ROOT}` reads"] = len(drafted)
    for path in _below(tree, USERS_ROOT):
        reading.user(path, tree.nodes[path])
    for where, what in COUNTED.items():
        reading.left[where, what] = tree.counts.get(where, 0)
    credentials = reading.unambiguous()
    return MigrationSource(
        name=name,
        acls=reading.acls,
        credentials=credentials,
        refused=tuple(reading.refused),
        left=tuple(LeftOut(where, what, count) for (where, what), count in reading.left.items() if count),
    )


def _below(tree: Tree, root: str) -> list[str]:
    return sorted(path for path in tree.nodes if path.startswith(f"{root}/"))


class _TreeReader:
    """Collects the content, node by node."""

    def __init__(self, *, with_kip_11: bool) -> None:
        self._with_kip_11 = with_kip_11
        self.acls: dict[AclBinding, str] = {}
        self.refused: list[MigrationRefusal] = []
        self.left: Counter[tuple[str, str]] = Counter()
        self._credentials: dict[ScramKey, ScramCredential] = {}
        self._places: dict[ScramKey, list[str]] = {}

    def refuse(self, where: str, what: str, reason: object) -> None:
        is_user = where.startswith(f"{USERS_ROOT}/")
        self.refused.append(MigrationRefusal(where, what, str(reason), is_user=is_user))

    def node(self, path: str, data: bytes) -> None:
        """Add a node below one of the roots of ACLs; nodes between a root and the names hold nothing."""
        root = "/" + path.split("/")[1]
        depth = path.count("/") - 1
        if not data or depth < _DEPTHS[root]:
            return
        if depth > _DEPTHS[root]:
            self.refuse(path, "the node", _NESTED)
            return
        try:
            resource = self._resource_of(path, root)
            entries = entries_of(parse_json(_text(data)), "the node")
        except LegacyFormatError as error:
            self.refuse(path, "the node", error)
            return
        for number, entry in enumerate(entries, start=1):
            try:
                for acl in acls_of_entry(entry):
                    self._acl(path, resource, acl)
            except LegacyFormatError as error:
                self.refuse(path, f"ACL {number}", error)

    def _resource_of(self, path: str, root: str) -> Resource:
        """Return the resource of a path; previews wrote other type names, which Kafka never reads."""
        resource = resource_of(path)
        if root != KIP_11_ROOT and path_of(resource) != path and not self._with_kip_11:
            raise LegacyFormatError(
                f"Kafka never reads it, such ACLs are at `{path_of(resource)}`; if this is the tree of a "
                "preview, take it with `--kip-11`"
            )
        return resource

    def _acl(self, path: str, resource: Resource, acl: Acl) -> None:
        for single in acl.singles():
            try:
                for binding in bindings_of(resource, (single,)):
                    self.acls.setdefault(binding, path)
            except LegacyRefusalError as error:
                self.refuse(path, str(single), error)

    def user(self, path: str, data: bytes) -> None:
        """Add a node below `/config/users`."""
        node, slash, _ = path.removeprefix(f"{USERS_ROOT}/").partition("/")
        if not data:
            return
        try:
            config = _config(data)
        except LegacyFormatError as error:
            self.refuse(path, "the node", error)
            return
        for key, value in config.items():
            mechanism = ScramMechanism.from_name(key)
            if mechanism is None:
                self.left[USERS_ROOT, f"settings `{key}`"] += 1
            elif slash or node == DEFAULT_ENTITY:
                self.refuse(path, key, "a credential is of one user, here Kafka never reads it")
            else:
                self._credential(path, node, mechanism, value)

    def _credential(self, path: str, node: str, mechanism: ScramMechanism, text: str) -> None:
        try:
            key = (user_of(node), int(mechanism))
            self._places.setdefault(key, []).append(path)
            self._credentials[key] = credential_of(text)
        except ScramTextError as error:
            self.refuse(path, mechanism.mechanism_name, error)

    def unambiguous(self) -> dict[ScramKey, ScramCredential]:
        """Refuse both of two nodes for one user with different escapes; return the other credentials."""
        for key, places in self._places.items():
            if len(places) > 1:
                self._credentials.pop(key, None)
                what = ScramMechanism(key[1]).mechanism_name
                for path in places:
                    self.refuse(
                        path, what, f"user `{key[0]}` has {len(places)} nodes, which counts is chance"
                    )
        return self._credentials


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise LegacyFormatError("the node is not text in UTF-8") from None


def _config(data: bytes) -> dict[str, str]:
    document = parse_json(_text(data))
    if not isinstance(document, dict) or not isinstance(config := document.get("config"), dict):
        raise LegacyFormatError("the node is not an object with `version` and `config`")
    version = document.get("version")
    if type(version) is not int or version != 1:
        raise LegacyFormatError("the node has another version than 1")
    return {str(key): _value(key, value) for key, value in config.items()}


def _value(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise LegacyFormatError(f"`{key}` is not a text")
    return value
