"""Describes how two images differ; a snapshot and the log that it replaces must not."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kustos.metadata.ids import uuid_text
from kustos.metadata.image import MetadataImage

_TOPIC_CONFIG: Final = 2
"""Settings of a topic are removed with it, by a record that is not read here: only Kafka knows which
remain."""


def first_difference(of_log: MetadataImage, of_snapshot: MetadataImage) -> str | None:
    """Return one difference for an operator, without secrets; None if both are equivalent.

    Compares ACLs, SCRAM credentials, delegation tokens, features, and settings except those of topics.
    """
    for what, logged, kept in _parts(of_log, of_snapshot):
        for key in logged:
            if key not in kept:
                return f"{what(key)} is in the log, but not in the snapshot"
            if kept[key] != logged[key]:
                return f"{what(key)} is another one in the log than in the snapshot"
        for key in kept:
            if key not in logged:
                return f"{what(key)} is in the snapshot, but not in the log"
    return None


def _parts(
    one: MetadataImage, other: MetadataImage
) -> Iterator[tuple[Any, Mapping[Any, Any], Mapping[Any, Any]]]:
    yield lambda key: f"the feature `{key}`", one.features, other.features
    yield lambda key: f"the ACL `{uuid_text(key)}`", one.acls, other.acls
    yield lambda key: f"a SCRAM credential of `{key[0]}`", one.scram_credentials, other.scram_credentials
    yield lambda key: f"the delegation token `{key}`", one.delegation_tokens, other.delegation_tokens
    yield lambda key: f"the setting `{key[2]}`", _settings(one), _settings(other)


def _settings(image: MetadataImage) -> Mapping[Any, Any]:
    return {key: value for key, value in image.configs.items() if key[0] != _TOPIC_CONFIG}
