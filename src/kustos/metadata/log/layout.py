"""The names and small text files of a metadata log directory, as Kafka lays them out.

`<metadata.log.dir>/meta.properties` identifies the cluster and node; `__cluster_metadata-0/` next to it
contains segments (`%020d.log`), snapshots (`%020d-%010d.checkpoint`: end offset, epoch) and three small
files.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from kustos.metadata.errors import DirectoryError, LogDamagedError, NoMetadataError
from kustos.runtime import Storage
from kustos.wire import uuid_of_text, uuid_text

METADATA_PARTITION: Final = "__cluster_metadata-0"
META_PROPERTIES: Final = "meta.properties"
LOCK_FILE: Final = ".lock"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
QUORUM_STATE: Final = "quorum-state"
PARTITION_METADATA: Final = "partition.metadata"
ACTIVE_SEGMENT: Final = "kustos.active-segment"
"""Names the newest segment: without it a loss of that segment would go unnoticed. Kafka ignores the file."""

RECOVERY_POINT: Final = "kustos.recovery-point"
"""Names the offset below which the log is durable: without it a loss of the end would go unnoticed. Kafka
ignores it."""

LEGACY_BOOTSTRAP: Final = "bootstrap.checkpoint"
"""Before Kafka 4.4 a formatted directory kept its first records here; a controller copied them into the log
once."""

METADATA_TOPIC_ID: Final = UUID(int=1)

_SEGMENT: Final = re.compile(r"([0-9]{20})\.log")
_NODE_ID: Final = re.compile(r"[0-9]{1,10}")
_RECOVERY_POINT: Final = re.compile(rb"([0-9]{20})\n")
_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


@dataclass(frozen=True, slots=True, order=True)
class SnapshotId:
    """The id of a snapshot: it contains everything below `end_offset`, the last of it from `epoch`."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The file name."""
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"

    @classmethod
    def of(cls, file_name: str) -> Self | None:
        """Return the id in a file name, None if there is none."""
        match = _SNAPSHOT.fullmatch(file_name)
        return None if match is None else cls(int(match[1]), int(match[2]))


BOOTSTRAP_SNAPSHOT: Final = SnapshotId(0, 0)


def no_metadata(path: Path, storage: Storage, what: str, remedy: str) -> NoMetadataError:
    """Return the error for a path without metadata: it is missing, or `what` is the reason."""
    found = what if storage.exists(path) else f"there is no directory `{path}`"
    return NoMetadataError(f"{found}; {remedy}")


def segment_name(base_offset: int) -> str:
    """Return the name of the segment that begins at this offset."""
    return f"{base_offset:020d}.log"


def segment_base_offset(file_name: str) -> int | None:
    """Return the offset in a segment's name, None if there is none."""
    match = _SEGMENT.fullmatch(file_name)
    return None if match is None else int(match[1])


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The cluster and node of a directory (`meta.properties`, version 1; version 0 is read too)."""

    cluster_id: str
    node_id: int
    directory_id: UUID | None = None

    def encode(self) -> bytes:
        """Return the contents of the file."""
        lines = ["#", f"cluster.id={self.cluster_id}"]
        if self.directory_id is not None:
            lines.append(f"directory.id={uuid_text(self.directory_id)}")
        return "\n".join([*lines, f"node.id={self.node_id}", "version=1", ""]).encode()

    @classmethod
    def decode(cls, data: bytes, path: Path) -> Self:
        """Return the parsed file; raise `DirectoryError` for what Kafka would refuse."""
        entries = _properties(data)
        version = entries.get("version", "0")
        node_key = {"0": "broker.id", "1": "node.id"}.get(version)
        if node_key is None:
            raise DirectoryError(f"`{path}` has version `{version}`, only 0 and 1 are known")
        if "cluster.id" not in entries or node_key not in entries:
            raise DirectoryError(f"`{path}` lacks `cluster.id` or `{node_key}`, format the directory again")
        directory_id = entries.get("directory.id")
        if _NODE_ID.fullmatch(entries[node_key]) is None:
            raise DirectoryError(f"`{path}` has the node id `{entries[node_key]}`, which is not a number")
        try:
            return cls(
                entries["cluster.id"],
                int(entries[node_key]),
                None if directory_id is None else uuid_of_text(directory_id),
            )
        except ValueError as error:
            raise DirectoryError(f"`{path}` is malformed: {error}") from error


def _properties(data: bytes) -> dict[str, str]:
    lines = [line.strip() for line in data.decode("latin-1").splitlines()]
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    return {key.strip(): value.strip().replace("\\:", ":").replace("\\=", "=") for key, _, value in pairs}


def encode_epochs(epochs: tuple[tuple[int, int], ...]) -> bytes:
    """Return a leader-epoch-checkpoint: pairs of (epoch, its first offset)."""
    lines = ["0", str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs), ""]
    return "\n".join(lines).encode()


def decode_epochs(data: bytes, path: Path) -> tuple[tuple[int, int], ...]:
    """Return the pairs of a leader-epoch-checkpoint; raise `LogDamagedError` if it is malformed."""
    try:
        version, count, *lines = data.decode("ascii").splitlines()
        epochs = tuple((int(epoch), int(offset)) for epoch, offset in (line.split(" ") for line in lines))
        is_whole = version == "0" and int(count) == len(epochs)
    except ValueError:
        is_whole, epochs = False, ()
    if not is_whole:
        raise LogDamagedError(f"`{path}` is not a leader-epoch checkpoint; restore it from a copy")
    return epochs


def encode_active_segment(base_offset: int) -> bytes:
    """Return the file that names the newest segment."""
    return f"{base_offset}\n".encode()


def decode_active_segment(data: bytes, path: Path) -> int:
    """Return the base offset that the file names; raise `LogDamagedError` if it names none."""
    text = data.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit()):
        raise LogDamagedError(f"`{path}` names no segment; restore the directory from a copy")
    return int(text)


def encode_recovery_point(offset: int) -> bytes:
    """Return the file with the offset below which the log is durable; its size never changes."""
    return b"%020d\n" % offset


def decode_recovery_point(data: bytes, path: Path) -> int:
    """Return the offset that the file names; raise `LogDamagedError` if it names none."""
    match = _RECOVERY_POINT.fullmatch(data)
    if match is None:
        raise LogDamagedError(
            f"`{path}` names no offset; restore it from a copy, or rewrite it with `kustos metadata repair`"
        )
    return int(match[1])


def encode_partition_metadata() -> bytes:
    """Return the file with the topic's id."""
    return f"version: 0\ntopic_id: {uuid_text(METADATA_TOPIC_ID)}".encode()


def encode_quorum_state(leader_id: int, epoch: int) -> bytes:
    """Return a quorum-state of version 0 in which the only voter leads this epoch."""
    state = {
        "clusterId": "",
        "leaderId": leader_id,
        "leaderEpoch": epoch,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": leader_id}],
        "data_version": 0,
    }
    return json.dumps(state, separators=(",", ":")).encode()


def decode_quorum_epoch(data: bytes, path: Path) -> int:
    """Return the epoch that a quorum-state of any version names; raise `LogDamagedError` if none."""
    try:
        epoch = json.loads(data)["leaderEpoch"]
    except (ValueError, KeyError, TypeError) as error:
        raise LogDamagedError(f"`{path}` is not a quorum state; restore it from a copy") from error
    if not isinstance(epoch, int):
        raise LogDamagedError(f"`{path}` names no epoch; restore it from a copy")
    return epoch
