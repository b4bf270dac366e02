"""A real file system that is soon full: a tmpfs, or ext4 in a file.

Only root may mount one. Elsewhere a test that must have one is skipped, with the reason in the summary, and
others limit the size of files instead.
"""

import errno
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

SIZE_BYTES = 512 * 1024
FULL = {errno.ENOSPC, errno.EFBIG}
Kind = Literal["tmpfs", "ext4"]


@dataclass
class SmallDisk:
    """A directory with little room."""

    path: Path
    is_mounted: bool
    limit_bytes: int = SIZE_BYTES

    @property
    def filler(self) -> Path:
        return self.path / "filler"

    def fill(self) -> None:
        """Leave no room at all."""
        if not self.is_mounted:
            _limit(1)
            return
        try:
            with self.filler.open("ab", buffering=0) as file:
                while file.write(bytes(4096)):
                    continue
        except OSError as error:
            if error.errno not in FULL:
                raise

    def free(self) -> None:
        """Make room again."""
        self.filler.unlink(missing_ok=True)
        _limit(resource.RLIM_INFINITY)

    def make_read_only(self) -> None:
        """Let nobody write there any more."""
        if self.is_mounted:
            subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)
        else:
            for path in (*self.path.rglob("*"), self.path):
                path.chmod(0o555 if path.is_dir() else 0o444)

    def make_writable(self) -> None:
        if self.is_mounted:
            subprocess.run(["mount", "-o", "remount,rw", str(self.path)], check=True)
        else:
            for path in (self.path, *self.path.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o600)


def _limit(size_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


@contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk]:
    """Give a small disk at `path`, and take it away again."""
    path.mkdir()
    if _mount_failure(path, "tmpfs", SIZE_BYTES) is None:
        with _unmounted_at_end(path):
            yield SmallDisk(path, is_mounted=True)
        return
    # without this a write beyond the limit ends the process
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    disk = SmallDisk(path, is_mounted=False)
    try:
        _limit(SIZE_BYTES)
        yield disk
    finally:
        disk.free()
        signal.signal(signal.SIGXFSZ, before)


@contextmanager
def mounted_disk(path: Path, kind: Kind, size_bytes: int) -> Iterator[SmallDisk]:
    """Give a file system of its own at `path`; skip the test, loudly, where none can be mounted."""
    path.mkdir()
    failure = _mount_failure(path, kind, size_bytes)
    if failure is not None:
        pytest.skip(f"NOT TESTED: this environment cannot mount {kind}, which needs root: {failure}")
    with _unmounted_at_end(path):
        yield SmallDisk(path, is_mounted=True)


def _mount_failure(path: Path, kind: Kind, size_bytes: int) -> str | None:
    """Mount a file system; return why it cannot be."""
    if os.geteuid() != 0:
        return "the user is not root"
    if kind == "tmpfs":
        options = ["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs"]
    else:
        image = path.with_name(f"{path.name}.ext4")
        with image.open("wb") as file:
            file.truncate(size_bytes)
        # few blocks for inodes and its journal, and none reserved for root, which the tests run as
        options = ["-q", "-m", "0", "-N", "1024", "-J", "size=4"]
        subprocess.run(["mkfs.ext4", *options, str(image)], check=True)
        options = ["-o", "loop", str(image)]
    done = subprocess.run(["mount", *options, str(path)], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else None


@contextmanager
def _unmounted_at_end(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
        path.with_name(f"{path.name}.ext4").unlink(missing_ok=True)
