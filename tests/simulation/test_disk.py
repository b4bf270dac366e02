"""The simulated disk takes the steps of the real one, and forgets what it may forget."""

import os
import random
import stat
from pathlib import Path

import pytest

from kustos.runtime import FileSystemStorage, Storage
from tests.simulation.disk import SECTOR, PowerCutError, SimulatedDisk

COMPARED = {"fsync", "fsync directory", "rename", "unlink"}


def use_everything(storage: Storage, directory: Path) -> None:
    file = storage.open_append(directory / "log")
    file.append(b"a" * 10)
    file.sync()
    file.truncate(5)
    file.sync()
    file.close()
    storage.open_append(directory / "log").close()
    storage.rewrite(directory / "log", 2)
    storage.write(directory / "state", b"1")
    storage.write_pieces(directory / "state", (b"2", b"3"))
    storage.rename(directory / "log", directory / "former")
    storage.remove(directory / "former")


def test_the_steps_are_those_of_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, replace, unlink = os.fsync, Path.replace, Path.unlink

    def told_fsync(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("fsync directory" if is_directory else "fsync")
        fsync(descriptor)

    def told_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    def told_unlink(self: Path, missing_ok: bool = False) -> None:
        if self.exists():
            steps.append("unlink")
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(os, "fsync", told_fsync)
    monkeypatch.setattr(Path, "replace", told_replace)
    monkeypatch.setattr(Path, "unlink", told_unlink)
    use_everything(FileSystemStorage(), tmp_path)
    simulated = SimulatedDisk(random.Random(1))
    use_everything(simulated, tmp_path)
    assert [step for step in simulated.trace if step in COMPARED] == steps
    assert simulated.read(tmp_path / "state") == (tmp_path / "state").read_bytes() == b"23"
    assert simulated.names(tmp_path) == ["state"]


def test_what_is_not_synced_is_lost_in_sectors_out_of_order() -> None:
    sizes, patterns = set(), set()
    for seed in range(200):
        disk = SimulatedDisk(random.Random(seed))
        path = Path("/d/log")
        file = disk.open_append(path)
        file.append(b"s" * 100)
        file.sync()
        file.append(b"n" * 3 * SECTOR)
        disk.restart(power_cut=True)
        data = disk.read(path)
        assert data[:100] == b"s" * 100
        sizes.add(len(data))
        if len(data) == 100 + 3 * SECTOR:
            patterns.add(tuple(data[sector * SECTOR + 200] for sector in range(3)))
    assert {100, 100 + 3 * SECTOR} <= sizes
    # the second sector without the first one, and the other way round
    assert {(0, ord("n"), 0), (ord("n"), 0, ord("n"))} <= patterns


def test_a_failed_fsync_is_never_made_good_by_a_later_one() -> None:
    for seed in range(50):
        disk = SimulatedDisk(random.Random(seed))
        file = disk.open_append(Path("/d/log"))
        file.append(b"lost")
        disk.fails_sync_at = 0
        with pytest.raises(OSError, match="input/output"):
            file.sync()
        file.sync()
        was_seen = disk.read(Path("/d/log"))
        disk.restart(power_cut=True)
        assert was_seen == b"lost"
        if disk.read(Path("/d/log")) == b"":
            return
    raise AssertionError("no failed fsync lost anything")


def test_nothing_runs_after_the_power_failed() -> None:
    disk = SimulatedDisk(random.Random(1))
    disk.cut_at = 0
    for _ in range(2):
        with pytest.raises(PowerCutError):
            disk.open_append(Path("/d/log"))
