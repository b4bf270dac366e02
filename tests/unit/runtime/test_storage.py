"""Without file descriptors no operation on files changes anything."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.runtime import FileSystemStorage, descriptor_limit, is_out_of_descriptors

STORAGE = FileSystemStorage()
OPERATIONS: dict[str, Callable[[Path], object]] = {
    "make a directory": lambda root: STORAGE.make_directory(root / "new" / "newer"),
    "begin a file": lambda root: STORAGE.open_append(root / "new.log").close(),
    "write a file": lambda root: STORAGE.write(root / "old", b"changed"),
    "write a new file": lambda root: STORAGE.write(root / "new", b"made"),
    "remove a file": lambda root: STORAGE.remove(root / "old"),
}


def state(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_lacks_a_descriptor_is_not_half_done(
    tmp_path: Path, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_bytes(b"kept")
    before = state(tmp_path)
    failures: list[bool] = []
    real, left = os.open, 0

    def scarce(*arguments: object, **more: object) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.EMFILE, "too many open files")
        left -= 1
        return real(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", scarce)
    for supply in range(10):
        left = supply
        try:
            OPERATIONS[operation](tmp_path)
        except OSError as error:
            failures.append(is_out_of_descriptors(error))
            # a directory's parents are made one by one, and stay
            failures.append(operation == "make a directory" or state(tmp_path) == before)
        else:
            break
    assert failures
    assert all(failures)
    assert state(tmp_path) != before


def test_the_limit_is_one_that_can_be_asked_for() -> None:
    assert descriptor_limit() > 0


@pytest.mark.parametrize("mode", [None, 0o644, 0o666])
def test_a_lock_can_be_taken_by_nobody_else(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / ".lock"
    if mode is not None:
        path.touch()
        path.chmod(mode)
    lock = STORAGE.lock(path)
    assert path.stat().st_mode & 0o777 == 0o600
    lock.release()
