"""The name of a checkpoint's stream, by which the tables identify its batches, and the topic it belongs to.

Spark numbers the batches of a checkpoint from 0. A stream restarted in a new checkpoint would reuse the
numbers of the former one, and the tables would take its batches for repeated ones: so each checkpoint stores
a name of its own. A checkpoint holds offsets, which mean nothing in another topic, be it of the same name:
one that was deleted and recreated, or one of another cluster. So it stores the ids of cluster and topic, too.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kustos.pipeline.errors import StreamError
from kustos.pipeline.run.topic import TopicIdentity, TopicSettings
from kustos.pipeline.tables import Tables
from kustos.runtime import Entropy, FileSystemStorage, SystemEntropy, reason_of

IDENTITY: Final = "kustos-stream.json"
_NAME: Final = re.compile(r"stream-[0-9a-f]{32}")


def stream_checkpoint(folder: Path, settings: TopicSettings, identity: TopicIdentity) -> Path:
    """Return the checkpoint of a topic among those in a folder, which may not exist yet.

    One of a version that stored no ids, by the topic's name alone, goes on. Raises `StreamError`.
    """
    former = folder / settings.topic
    try:
        if (former / IDENTITY).exists() and _is_of(_stored(former / IDENTITY), identity):
            return former
    except OSError as error:
        raise StreamError(f"cannot use the checkpoint `{former}`: {reason_of(error)}") from error
    return folder / "@".join(filter(None, (settings.topic, identity.cluster_id, identity.topic_id)))


def stream_name(
    checkpoint: Path,
    settings: TopicSettings,
    tables: Tables,
    identity: TopicIdentity,
    entropy: Entropy | None = None,
) -> str:
    """Return the name of the checkpoint's stream, generated at its first start.

    A checkpoint of a version that stored no ids becomes that of this topic.

    Raises `StreamError` if the checkpoint is of another topic, is not a checkpoint of kustos, or wrote into
    other tables: these would lack the records that it has read.
    """
    place = checkpoint / IDENTITY
    try:
        if place.exists():
            stored = _stored(place)
            name = _checked_name(place, stored, settings, tables)
            check_identity(place.parent, stored, settings, identity)
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
        raise StreamError(f"cannot use the checkpoint `{checkpoint}`: {reason_of(error)}") from error
    return name


def check_identity(
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


def _checked_name(place: Path, stored: Mapping[str, Any], settings: TopicSettings, tables: Tables) -> str:
    name, topic = str(stored["name"]), stored["topic"]
    if _NAME.fullmatch(name) is None:
        raise StreamError(f"`{place}` names no stream, take a new checkpoint: the tables keep all they have")
    if topic != settings.topic:
        raise StreamError(f"`{place.parent}` is the checkpoint of topic `{topic}`, give each topic its own")
    has_gone_on = any((place.parent / "commits").glob("[0-9]*"))
    if has_gone_on and name not in tables.state().batches:
        raise StreamError(
            f"the stream of `{place.parent}` wrote into other tables than `{tables.folder}`; "
            "give it those, or a new checkpoint"
        )
    return name
