"""Snapshots are taken while changes continue, abandoned at close, and reported if they fail."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from threading import Event

import pytest

from kustos.gateway.store.snapshots import SnapshotTaker
from kustos.gateway.store.writer import MetadataWriter, WriterClosedError
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load, read_image
from kustos.metadata.log import LogPolicy
from kustos.metadata.store.store import CreateAcls, MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.runtime.storage import DEFAULT_FILE_MODE
from testkit.acls.one_line import acl

LIMIT_S = 30.0


class SlowStorage(FileSystemStorage):
    """Waits during each snapshot until the test lets it continue or fail."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.written = Event(), Event(), Event()
        self.failure: OSError | None = None

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        def slowly() -> Iterable[bytes]:
            for piece in pieces:
                self.begun.set()
                assert self.go_on.wait(LIMIT_S)
                if self.failure is not None:
                    raise self.failure
                yield piece

        is_snapshot = path.suffix == ".checkpoint"
        super().write_pieces(path, slowly() if is_snapshot else pieces, mode)
        if is_snapshot:
            self.written.set()


def opened(directory: Path, storage: SlowStorage) -> MetadataWriter:
    format_directory(directory)
    policy = LogPolicy(snapshot_record_bytes=1)
    return MetadataWriter(MetadataStore.open(directory, storage=storage, policy=policy))


async def create(writer: MetadataWriter, name: str) -> None:
    await writer.submit(CreateAcls((acl(f"ALLOW READ User:a TOPIC {name}"),)))


async def happened(event: Event) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, LIMIT_S)


async def test_changes_continue_while_a_snapshot_is_written(tmp_path: Path) -> None:
    storage = SlowStorage()
    writer = opened(tmp_path / "log", storage)
    taker = SnapshotTaker(writer, look_every_ms=1)
    await create(writer, "before")
    taker.start()
    await happened(storage.begun)
    for number in range(10):
        await create(writer, f"meanwhile-{number}")
    storage.go_on.set()
    await happened(storage.written)
    await taker.stop()
    await writer.close()
    reader, builder = load(tmp_path / "log", FileSystemStorage())
    assert reader.snapshot_id is not None
    assert reader.snapshot_id.end_offset > 0
    assert len(builder.view().acls) == 11


async def test_a_snapshot_in_progress_does_not_delay_close(tmp_path: Path) -> None:
    storage = SlowStorage()
    writer = opened(tmp_path / "log", storage)
    taker = SnapshotTaker(writer, look_every_ms=1)
    await create(writer, "a")
    taker.start()
    await happened(storage.begun)
    stopping = asyncio.ensure_future(taker.stop())
    # in its turn: after the first step of `stop`, which gives the snapshot up
    asyncio.get_running_loop().call_soon(storage.go_on.set)
    await asyncio.wait_for(stopping, LIMIT_S)
    await writer.close()
    partition = tmp_path / "log" / "__cluster_metadata-0"
    assert [path.name for path in partition.glob("*.checkpoint*")] == [f"{0:020d}-{0:010d}.checkpoint"]
    assert len(read_image(tmp_path / "log").acls) == 1
    with pytest.raises(WriterClosedError):
        await writer.run(writer.store.clean)


async def test_a_disk_that_is_full_for_snapshots_does_not_stop_changes(tmp_path: Path) -> None:
    storage = SlowStorage()
    storage.go_on.set()
    storage.failure = OSError("no space left on device")
    writer = opened(tmp_path / "log", storage)
    taker = SnapshotTaker(writer)
    await create(writer, "a")
    assert not await taker.take()
    await create(writer, "b")
    # it is not retried immediately
    assert not writer.store.snapshot_is_due
    await taker.stop()
    await writer.close()
    assert len(read_image(tmp_path / "log").acls) == 2
