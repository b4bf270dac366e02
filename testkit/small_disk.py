"""A real file system that is soon full: a small tmpfs where it may be mounted, else a limit of file sizes."""

import errno
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SIZE_BYTES = 512 * 1024
FULL = {errno.ENOSPC, errno.EFBIG}


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
            with self.filler.open("wb", buffering=0) as file:
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
    options = ["-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(path)]
    may_mount = os.geteuid() == 0
    mounted = (
        may_mount and subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
    )
    # without this a write beyond the limit ends the process
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    disk = SmallDisk(path, mounted)
    try:
        if not mounted:
            _limit(SIZE_BYTES)
        yield disk
    finally:
        disk.free()
        signal.signal(signal.SIGXFSZ, before)
        if mounted:
            subprocess.run(["umount", str(path)], check=True)
