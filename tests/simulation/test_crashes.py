"""Crashes at every step: nothing acknowledged is lost, nothing is half applied, no damage goes unseen."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kustos.metadata.errors import LogFailedError
from kustos.metadata.image import ImageBuilder, MetadataDelta
from kustos.metadata.log import layout, reader, segment, writer
from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.policy import Superfluous, superfluous
from kustos.metadata.log.unfinished import is_unfinished_write
from kustos.metadata.store import snapshots
from kustos.metadata.store.snapshots import SnapshotJob
from kustos.metadata.store.store import MetadataStore
from kustos.wire.record_batch import RecordBatch
from testkit.seeds import seed_of_run
from tests.simulation import disk
from tests.simulation.disk import SimulatedAppendFile, SimulatedDisk
from tests.simulation.run import LIVES_PER_WORLD, simulate
from tests.simulation.world import ViolationError, World

POINTS = int(os.environ.get("KUSTOS_POINTS") or 1500)
"""`make simulation` runs 10,000."""

LIMIT = 4000
CORPUS = [
    tuple(line.split(" ", 1))
    for line in (Path(__file__).parent / "corpus.txt").read_text().splitlines()
    if not line.startswith("#")
]


def test_no_crash_loses_what_was_acknowledged() -> None:
    seen = simulate(seed_of_run(), POINTS)
    print(f"seed {seed_of_run()}: {dict(sorted(seen.items()))}")
    for what in (
        "power cut", "kill", "fsync", "full", "no room", "log failed", "snapshot", "change amid a snapshot",
        "damage stopped the start", "damage did not matter", "a bit that turned stopped the start",
        "garbage stopped the start", "zeros stopped the start", "a file cut short stopped the start",
        "a sector of garbage stopped the start",
        "a file deleted stopped the start", "power cut in write", "power cut in fsync", "power cut in rename",
        "power cut in unlink", "power cut in fsync directory", "unacknowledged, yet there",
    ):  # fmt: skip
        assert seen[what], f"the run says nothing of `{what}`"


@pytest.mark.parametrize(("seed", "what"), CORPUS)
def test_what_broke_once_holds(seed: str, what: str) -> None:
    world = World(seed)
    while world.live() and world.lives < LIVES_PER_WORLD:
        continue


def does_nothing(*_: Any) -> None:
    return None


def only_the_last_segment(*arguments: Any) -> Superfluous:
    found = superfluous(*arguments)
    return Superfluous(found.snapshots, tuple(sorted(arguments[1])[:-1]) if found.snapshots else ())


class OneTooFar(SnapshotJob):
    """A snapshot that claims to contain one record more than it does."""

    def __init__(self, partition: Path, *arguments: Any, **named: Any) -> None:
        super().__init__(partition, *arguments, **named)
        object.__setattr__(self, "id", SnapshotId(self.id.end_offset + 1, self.id.epoch))
        object.__setattr__(self, "path", partition / self.id.file_name)


APPEND_MANY = MetadataStore.append_many
ENCODE_RECOVERY_POINT = layout.encode_recovery_point


def publish_then_write(self: MetadataStore, requests: Any) -> Any:
    """Put changes in force before they are on the disk."""
    builder = ImageBuilder(self.image)
    offset = self.last_offset
    for request in requests:
        records = self._decide(builder.view(), request).records
        changes = builder.replay_all(records)
        if records:
            offset += len(records)
            self._publish([MetadataDelta(offset, self.image.epoch, changes)])
    return APPEND_MANY(self, requests)


def keep_what_was_not_written(self: MetadataStore, requests: Any) -> Any:
    """Leave changes in the image though their write failed."""
    builder = ImageBuilder(self.image)
    try:
        return APPEND_MANY(self, requests)
    except LogFailedError:
        for request in requests:
            builder.replay_all(self._decide(builder.view(), request).records)
        self._image = builder.build(self.last_offset, self.image.epoch)
        raise


def run_ahead(offset: int) -> bytes:
    """Note as acknowledged what is yet to be written."""
    return ENCODE_RECOVERY_POINT(offset + 3)


def is_torn_by_its_bytes(
    data: bytes, position: int, next_offset: int, epoch: int, recovery_point: int | None
) -> bool:
    """Look for holes as where nothing was acknowledged, but do not ask what was."""
    return is_unfinished_write(data, position, next_offset, epoch, None if recovery_point is None else 0)


def trust_offsets_alone(self: segment.SegmentReader, batch: RecordBatch) -> None:
    if batch.base_offset != self.next_offset:
        raise self._damaged("another offset")


FAULTS: dict[str, tuple[tuple[Any, str, Callable[..., Any]], ...]] = {
    "what a failed fsync left is taken for durable": ((SimulatedDisk, "rewrite", does_nothing),),
    "appends are not synced": ((SimulatedAppendFile, "sync", does_nothing),),
    "files written whole are not synced": ((disk.File, "sync", does_nothing),),
    "directories are not synced": ((SimulatedDisk, "_sync_directory", lambda self: self.step("nothing")),),
    "the writer forgets that it failed": ((writer.LogWriter, "require_working", does_nothing),),
    "all damage at the end passes for torn": (
        (segment, "is_unfinished_write", lambda *_: True),
        (reader, "recovery_point_of", does_nothing),
    ),
    "a torn tail passes for damage": ((segment, "is_unfinished_write", lambda *_: False),),
    "an end that is missing is not missed": (
        (reader.LogReader, "_require_end", does_nothing),
        (segment, "is_unfinished_write", is_torn_by_its_bytes),
    ),
    "more is noted as acknowledged than is on the disk": ((layout, "encode_recovery_point", run_ahead),),
    "segments are deleted that a snapshot needs": ((snapshots, "superfluous", only_the_last_segment),),
    "a snapshot claims too much": ((snapshots, "SnapshotJob", OneTooFar),),
    "changes are in force before they are written": ((MetadataStore, "append_many", publish_then_write),),
    "the image runs ahead of a write that failed": (
        (MetadataStore, "append_many", keep_what_was_not_written),
    ),
    "epochs are not checked": (
        (segment.SegmentReader, "_check", trust_offsets_alone),
        (reader, "begun_epochs", lambda *_: ()),
        (writer.LogWriter, "_require_own", lambda self: self.epoch),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_simulation_finds_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name, broken in FAULTS[fault]:
        monkeypatch.setattr(where, name, broken)
    with pytest.raises(ViolationError):
        simulate(7, LIMIT)
