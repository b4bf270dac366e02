"""Compares a log with its snapshot and its leader-epoch-checkpoint.

A snapshot must equal the log that it replaces. The checkpoint lists epochs with their first offsets: leaders
use it to show followers where their logs diverge (KIP-595), and a starting kustos to detect that the log lost
its end. A missing epoch is not damage: the file is written after the epoch began.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kustos.metadata.image import MetadataImage
from kustos.wire import uuid_text

_TOPIC_CONFIG: Final = 2
"""Settings of a topic are removed with it, by a record that is not read here: only Kafka knows which
remain."""


def first_difference(of_log: MetadataImage, of_snapshot: MetadataImage) -> str | None:
    """Return one difference for an operator, without secrets; None if both are equivalent.

    Compares ACLs, SCRAM credentials, delegation tokens, features, and settings except settings of topics.
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


Epoch = tuple[int, int]
"""An epoch and its first offset."""


def contradiction(listed: Sequence[Epoch], seen: Sequence[Epoch], end_offset: int) -> str | None:
    """Return what in a checkpoint contradicts a log that ends before `end_offset`, None if nothing does.

    `seen` are the epochs of the log in order, each with the offset of its first batch there. Epochs before
    the log's start were deleted and are not compared. The first epoch of the checkpoint may be listed later
    than it began: where the log began when the file was written.
    """
    before: Epoch = (-1, -1)
    for number, (epoch, offset) in enumerate(listed):
        if epoch <= before[0] or offset <= before[1]:
            return f"epoch {epoch} from offset {offset} cannot follow epoch {before[0]} from {before[1]}"
        before = (epoch, offset)
        if offset >= end_offset:
            return f"epoch {epoch} is to begin at offset {offset}, but the log ends at {end_offset - 1}"
        begun = [each for each in seen if each[1] <= offset]
        if begun and (begun[-1][0] != epoch or (number > 0 and begun[-1] != (epoch, offset))):
            return f"epoch {epoch} is to begin at offset {offset}, where epoch {begun[-1][0]} is under way"
        if not begun and seen and epoch > seen[0][0]:
            return f"epoch {epoch} is to begin before the log does, in epoch {seen[0][0]}"
    return None
