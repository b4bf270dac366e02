"""The name of a checkpoint's stream, by which the tables identify its batches.

Spark numbers the batches of a checkpoint from 0. A stream restarted in a new checkpoint would reuse the
numbers of the former one, and the tables would take its batches for repeated ones: so each checkpoint stores
a name of its own.
"""

import json
import re
from pathlib import Path
from typing import Final

from kustos.pipeline.errors import StreamError
from kustos.pipeline.inputs import TopicSettings
from kustos.pipeline.tables import Tables
from kustos.runtime import Entropy, FileSystemStorage, SystemEntropy, reason_of

IDENTITY: Final = "kustos-stream.json"
_NAME: Final = re.compile(r"stream-[0-9a-f]{32}")


def stream_name(
    checkpoint: Path, settings: TopicSettings, tables: Tables, entropy: Entropy | None = None
) -> str:
    """Return the name of the checkpoint's stream, generated at its first start.

    Raises `StreamError` if the checkpoint is of another topic, is no checkpoint of kustos, or wrote into
    other tables: these would lack the records that it has read.
    """
    place = checkpoint / IDENTITY
    try:
        if place.exists():
            return _stored_name(place, settings, tables)
        if checkpoint.exists() and any(checkpoint.iterdir()):
            raise StreamError(
                f"`{checkpoint}` holds something else than a stream of kustos, take a new folder"
            )
        name = f"stream-{(entropy or SystemEntropy()).token_bytes(16).hex()}"
        checkpoint.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"name": name, "topic": settings.topic})
        FileSystemStorage().write(place, text.encode())
    except OSError as error:
        raise StreamError(f"cannot use the checkpoint `{checkpoint}`: {reason_of(error)}") from error
    return name


def _stored_name(place: Path, settings: TopicSettings, tables: Tables) -> str:
    try:
        identity = json.loads(place.read_text(encoding="utf-8"))
        name, topic = identity["name"], identity["topic"]
    except (ValueError, TypeError, KeyError) as error:
        raise StreamError(
            f"`{place}` is damaged, take a new checkpoint: the tables keep all they have"
        ) from error
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
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
