"""A checkpoint: the name of a stream, by which the tables know its batches, and the topic it belongs to.

The tables have the offsets up to which a stream has read, and these mean nothing in another topic, be it of
the same name: one that was deleted and recreated, or one of another cluster. So a checkpoint stores the ids
of cluster and topic beside the name.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kustos.pipeline.errors import StreamError
from kustos.pipeline.run.topic import TopicIdentity, TopicSettings
from kustos.pipeline.tables import Tables
from kustos.runtime import Entropy, FileSystemStorage, SystemEntropy, reason_of

IDENTITY: Final = "stream.json"

_NAME: Final = re.compile(r"stream-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class NextBatch:
    """The number of the next batch, and where it begins in each partition; None where the stream begins."""

    number: int
    begin: Mapping[int, int] | None


def stream_checkpoint(folder: Path, settings: TopicSettings, identity: TopicIdentity) -> Path:
    """Return the checkpoint of a topic among those in a folder; it may not exist yet."""
    return folder / "@".join(filter(None, (settings.topic, identity.cluster_id, identity.topic_id)))


def stream_name(
    checkpoint: Path, settings: TopicSettings, identity: TopicIdentity, entropy: Entropy | None = None
) -> str:
    """Return the name of the checkpoint's stream, generated at its first start.

    Brokers that are upgraded may report a topic id that they did not have: the checkpoint then stores it.

    Raises `StreamError` if the checkpoint is of another topic, or is not a checkpoint of kustos.
    """
    place = checkpoint / IDENTITY
    try:
        if place.exists():
            stored = _stored(place)
            name = _checked_name(place, stored, settings)
            _check_identity(checkpoint, stored, settings, identity)
            if stored == {**stored, **_ids(identity)}:
                return name
        elif checkpoint.exists() and any(checkpoint.iterdir()):
            raise StreamError(
                f"`{checkpoint}` holds something else than a stream of kustos, take a new folder"
            )
        else:
            name = f"stream-{(entropy or SystemEntropy()).token_bytes(16).hex()}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"name": name, "topic": settings.topic, **_ids(identity)})
        FileSystemStorage().write(place, text.encode())
    except OSError as error:
        raise _unusable(checkpoint, error) from error
    return name


def is_stream(checkpoint: Path) -> bool:
    """Return whether a folder is the checkpoint of a stream already; raise `StreamError`."""
    try:
        return (checkpoint / IDENTITY).exists()
    except OSError as error:
        raise _unusable(checkpoint, error) from error


def _unusable(checkpoint: Path, error: OSError) -> StreamError:
    return StreamError(f"cannot use the checkpoint `{checkpoint}`: {reason_of(error)}")


def check_tables(checkpoint: Path, name: str, settings: TopicSettings, tables: Tables) -> None:
    """Raise `StreamError` if a stream that went on would pass over records, as the tables have none of it.

    One from the beginning of the topic reads all of it into them.
    """
    if settings.starting == "latest" and next_batch(name, tables).begin is None:
        raise StreamError(
            f"`{tables.folder}` has nothing of the stream of `{checkpoint}`: name the tables that it wrote "
            "into, or a new checkpoint"
        )


def _check_identity(
    checkpoint: Path, stored: Mapping[str, Any], settings: TopicSettings, identity: TopicIdentity
) -> None:
    """Raise `StreamError` unless what a checkpoint stored is this topic, as far as it stored ids."""
    if _is_of(stored, identity):
        return
    if stored["cluster_id"] != identity.cluster_id:
        raise StreamError(
            f"`{checkpoint}` is the checkpoint of topic `{settings.topic}` of cluster "
            f"`{stored['cluster_id']}`, but `{settings.bootstrap_servers}` is cluster "
            f"`{identity.cluster_id}`, give each cluster its own"
        )
    raise StreamError(
        f"topic `{settings.topic}` was deleted and recreated since `{checkpoint}` was begun; read it into a "
        "new checkpoint, from its beginning: the tables keep all they have"
    )


def _ids(identity: TopicIdentity) -> dict[str, str | None]:
    return {"cluster_id": identity.cluster_id, "topic_id": identity.topic_id}


def _is_of(stored: Mapping[str, Any], identity: TopicIdentity) -> bool:
    """Return whether no id differs of those that both have."""
    return all(stored.get(key) in (None, value) or value is None for key, value in _ids(identity).items())


def _stored(place: Path) -> Mapping[str, Any]:
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        if all(isinstance(stored[key], str) for key in ("name", "topic")):
            return dict(stored)
    except (ValueError, TypeError, KeyError):
        pass
    raise StreamError(f"`{place}` is damaged, take a new checkpoint: the tables keep all they have")


def _checked_name(place: Path, stored: Mapping[str, Any], settings: TopicSettings) -> str:
    name, topic = str(stored["name"]), stored["topic"]
    if _NAME.fullmatch(name) is None:
        raise StreamError(f"`{place}` names no stream, take a new checkpoint: the tables keep all they have")
    if topic != settings.topic:
        raise StreamError(f"`{place.parent}` is the checkpoint of topic `{topic}`, give each topic its own")
    return name


def next_batch(name: str, tables: Tables) -> NextBatch:
    """Return where a stream goes on; raise `StreamError` if its last batch stored no offsets."""
    state = tables.state()
    last, _ = state.batches.get(name, (-1, {}))
    ends = state.ends_of(name)
    if ends is None and last >= 0:
        raise StreamError(f"batch {last} of `{name}` stored no offsets, take a new checkpoint")
    return NextBatch(last + 1, ends)
