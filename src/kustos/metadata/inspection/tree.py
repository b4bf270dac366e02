"""An image as a tree of named nodes, like a file system. No node holds a secret.

    /acl/id/<id>                                  an ACL, by its id in Kafka's form of a UUID
    /acl/by-principal/<principal>/<id>            the same, by its principal
    /acl/by-resource/<TYPE>/<PATTERN>/<name>/<id> the same, by its resource
    /scram/<mechanism>/<user>                     a credential: only its iterations
    /delegationToken/<id>                         a token, without its HMAC
    /features/<name>                              a feature and its level
    /configs/<TYPE>/<resource>/<name>             a dynamic setting
    /provenance                                   the offset and epoch of the image
    /local/version                                version of this program

Folders are filled when first opened: one with a million ACLs costs nothing until then.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kustos.acl import AclBinding, PatternType
from kustos.acl.forms import texts_of
from kustos.metadata.features import METADATA_VERSION_FEATURE, metadata_version_name
from kustos.metadata.image import MetadataImage
from kustos.metadata.inspection.moments import moment_text
from kustos.metadata.inspection.shown import config_resource_name, shown_setting
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramMechanism
from kustos.wire import uuid_text


@dataclass(frozen=True, slots=True)
class Leaf:
    """A node with content: a document for JSON, and a short summary."""

    document: dict[str, Any]
    summary: str


class Folder:
    """A node with named children, created when first needed."""

    def __init__(self, fill: Callable[[], Mapping[str, "Node"]]) -> None:
        self._fill = fill

    @cached_property
    def children(self) -> Mapping[str, "Node"]:
        """The child nodes by name, sorted."""
        return dict(sorted(self._fill().items()))


Node = Leaf | Folder

_ESCAPES: Final = {"%": "%25", "/": "%2F"}


def node_name(text: str) -> str:
    """Return a text as a node name: unique per text, never a path or blank."""
    if not text:
        return "%"
    name = "".join(_ESCAPES.get(character, character) for character in text)
    return name.replace(".", "%2E") if name in {".", ".."} else name


def tree_of(image: MetadataImage, version: str) -> Folder:
    """Return the root of an image's tree; `version` is the version of the program."""
    return _folder(
        {
            "acl": _folder(
                {
                    "id": Folder(lambda: {uuid_text(id_): _acl(acl) for id_, acl in image.acls.items()}),
                    "by-principal": Folder(lambda: _nested(image, lambda acl: (acl.entry.principal,))),
                    "by-resource": Folder(lambda: _nested(image, _resource_path)),
                }
            ),
            "scram": Folder(lambda: _scram(image)),
            "delegationToken": Folder(
                lambda: {node_name(id_): _token(token) for id_, token in image.delegation_tokens.items()}
            ),
            "features": Folder(
                lambda: {node_name(n): _feature(n, level) for n, level in image.features.items()}
            ),
            "configs": Folder(lambda: _configs(image)),
            "provenance": Leaf(
                {"offset": image.offset, "epoch": image.epoch}, f"offset {image.offset}, epoch {image.epoch}"
            ),
            "local": _folder({"version": Leaf({"version": version}, version)}),
        }
    )


def _folder(children: Mapping[str, Node]) -> Folder:
    return Folder(lambda: children)


def _acl(binding: AclBinding) -> Leaf:
    pattern, entry = binding.pattern, binding.entry
    prefix = " (prefix)" if pattern.pattern_type is PatternType.PREFIXED else ""
    summary = (
        f"{entry.permission_type} {entry.operation} to {entry.principal} from {entry.host} "
        f"on {pattern.resource_type} {pattern.name}{prefix}"
    )
    return Leaf(dict(texts_of(binding)), summary)


def _resource_path(binding: AclBinding) -> tuple[str, ...]:
    pattern = binding.pattern
    return pattern.resource_type.name, pattern.pattern_type.name, pattern.name


def _nested(image: MetadataImage, path_of: Callable[[AclBinding], tuple[str, ...]]) -> Mapping[str, Node]:
    ids = ((path_of(binding), uuid_text(id_), _acl(binding)) for id_, binding in image.acls.items())
    return _grown((*map(node_name, path), id_, leaf) for path, id_, leaf in ids)


def _grown(entries: Iterable[tuple[Any, ...]]) -> Mapping[str, Node]:
    """Return nested folders from rows of names that end in a leaf."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    leaves: dict[str, Node] = {}
    for name, *rest in entries:
        if len(rest) == 1:
            leaves[name] = rest[0]
        else:
            groups.setdefault(name, []).append(tuple(rest))
    return leaves | {name: _folder_of(rows) for name, rows in groups.items()}


def _folder_of(rows: list[tuple[Any, ...]]) -> Folder:
    return Folder(lambda: _grown(rows))


def _scram(image: MetadataImage) -> Mapping[str, Node]:
    return _grown(
        (
            _mechanism_name(code),
            node_name(user),
            Leaf(
                {"mechanism": _mechanism_name(code), "user": user, "iterations": credential.iterations},
                f"{credential.iterations} iterations",
            ),
        )
        for (user, code), credential in image.scram_credentials.items()
    )


def _mechanism_name(code: int) -> str:
    mechanism = ScramMechanism.from_code(code)
    return str(code) if mechanism is None else mechanism.mechanism_name


def _token(token: DelegationTokenRecord) -> Leaf:
    expires = moment_text(token.expiration_timestamp_ms)
    return Leaf(
        {
            "token_id": token.token_id,
            "owner": token.owner,
            "requester": token.requester,
            "renewers": list(token.renewers),
            "issue_timestamp": moment_text(token.issue_timestamp_ms),
            "max_timestamp": moment_text(token.max_timestamp_ms),
            "expiration_timestamp": expires,
        },
        f"of {token.owner}, expires {expires}",
    )


def _feature(name: str, level: int) -> Leaf:
    document: dict[str, Any] = {"feature": name, "level": level}
    if name == METADATA_VERSION_FEATURE:
        document["metadata_version"] = metadata_version_name(level)
        return Leaf(document, f"{level} ({metadata_version_name(level)})")
    return Leaf(document, str(level))


def _configs(image: MetadataImage) -> Mapping[str, Node]:
    return _grown(
        (
            config_resource_name(kind),
            node_name(resource),
            node_name(name),
            Leaf(
                {"name": name, "value": shown_setting(kind, name, value)},
                str(shown_setting(kind, name, value)),
            ),
        )
        for (kind, resource, name), value in image.configs.items()
    )
