"""Places of files: a local path, or one in an object store.

An object store, or HDFS, is reached by delta-rs, which commits to Delta's logs there, too: one client, with
one set of credentials, from the environment (or from the machine, as the cloud gives them). An address
holds none. Local paths stay `Path`, and are read and written without it.
"""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyarrow import fs as arrow_fs

_ADDRESS: Final = re.compile(
    r"(?P<root>(?:s3|gs)://[a-z0-9][a-z0-9._-]{1,62}|abfss://[a-z0-9-]{3,63}@[a-z0-9][a-z0-9.-]{2,252}"
    r"|hdfs://[A-Za-z0-9][A-Za-z0-9.-]{0,252}(?::\d{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9_=][A-Za-z0-9_=.+-]*)*)/?"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

CLIENTS_MAX: Final = 8
"""Clients of object stores kept by a process: tables lie in one or two buckets."""


@dataclass(frozen=True, slots=True, order=True)
class StorePath:
    """A path in an object store, such as `s3://bucket/access`; it has what tables need of `Path`."""

    address: str

    def __post_init__(self) -> None:
        """Raise `ValueError` for another address; its text is not repeated, as it may hold a password."""
        match = _ADDRESS.fullmatch(self.address)
        if match is None:
            raise ValueError(
                "an address in an object store is `s3://BUCKET/FOLDER`, `gs://BUCKET/FOLDER`, "
                "`abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER` or `hdfs://HOST:PORT/FOLDER`, in "
                "letters, digits and `_=.+-`; credentials belong into the environment"
            )
        object.__setattr__(self, "address", match["root"] + match["path"])

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> "StorePath":
        return StorePath(f"{self.address}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.address.rpartition("/")[2]

    @property
    def parent(self) -> "StorePath":
        """The folder that it lies in."""
        return StorePath(self.address.rpartition("/")[0])

    @property
    def root(self) -> str:
        """The address of the bucket, or the container."""
        match = _ADDRESS.fullmatch(self.address)
        return "" if match is None else match["root"]

    @property
    def key(self) -> str:
        """The path within the bucket."""
        return self.address.removeprefix(self.root).lstrip("/")


Place = Path | StorePath


def is_address(text: str) -> bool:
    """Return whether a text is meant as an address (`scheme://…`), and not as a local path."""
    return _SCHEME.match(text) is not None


def place_of(text: str | Place) -> Place:
    """Return the place that a text names: an address in an object store, or a local path.

    Raises `ValueError` for an address of another form.
    """
    if not isinstance(text, str):
        return text
    return StorePath(text) if is_address(text) else Path(text)


def spark_path(path: Path) -> str:
    """Return a local path as Spark's writers take it, whatever file system Hadoop's configuration names."""
    return f"file://{path.absolute()}"


def spark_paths_read(*paths: Path) -> list[str]:
    """Return local paths as Spark's readers take them, with the characters of glob patterns escaped."""
    return [re.sub(r"([\\*?\[\]{}])", r"\\\1", spark_path(path)) for path in paths]


@lru_cache(maxsize=CLIENTS_MAX)
def _client(root: str, _process: int) -> Any:
    """Return the file system of a bucket; a forked process makes its own."""
    from deltalake.fs import DeltaStorageHandler

    return arrow_fs.PyFileSystem(DeltaStorageHandler(root, {}))


def _files(place: StorePath) -> Any:
    return _client(place.root, os.getpid())


def native_file(place: StorePath) -> "pa.NativeFile":
    """Return an object opened for reading; each read is a request. Raises OSError."""
    with plain_errors(place):
        return _files(place).open_input_file(place.key)


def source_of(place: Place) -> "str | pa.NativeFile":
    """Return what Arrow's readers read a file from; raise OSError."""
    if isinstance(place, Path):
        return str(place)
    return native_file(place)


@contextmanager
def sink_of(place: Place, *, is_lasting: bool = True) -> "Iterator[str | pa.NativeFile]":
    """Yield what Arrow's writers write a new file to; raise OSError.

    A local file is brought to the disk if it is to last; one in an object store is there as a whole at the
    end, or not at all.
    """
    if isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _named_errors(place):
            yield str(place)
        if is_lasting:
            sync(place)
        return
    with plain_errors(place), _files(place).open_output_stream(place.key) as sink:
        yield sink


def size_of(place: Place) -> int:
    """Return the size of a file in bytes; raise OSError."""
    if isinstance(place, Path):
        return place.stat().st_size
    with plain_errors(place):
        found = _files(place).get_file_info(place.key)
    if found.type != arrow_fs.FileType.File:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place))
    return int(found.size)


def stamp_of(place: Place) -> int:
    """Return what changes with a local file; in an object store no file of a table ever changes."""
    return place.stat().st_mtime_ns if isinstance(place, Path) else 0


def make_folder(place: Place) -> None:
    """Create a local folder; object stores have none. Raises OSError."""
    if isinstance(place, Path):
        place.mkdir(parents=True, exist_ok=True)


def names_in(place: Place) -> list[str]:
    """Return the names in a folder, sorted; none if it is not there. Raises OSError."""
    if isinstance(place, Path):
        return sorted(each.name for each in place.iterdir()) if place.is_dir() else []
    with plain_errors(place):
        found = _files(place).get_file_info(arrow_fs.FileSelector(place.key, allow_not_found=True))
    return sorted(each.path.rstrip("/").rpartition("/")[2] for each in found)


@dataclass(frozen=True, slots=True)
class FileState:
    """Size, time of change, and the inode of a local file; an object has none: 0."""

    size_bytes: int
    modified_ns: int
    inode: int = 0


def state_of(path: Path) -> FileState:
    """Return the state of a local file; raise OSError."""
    status = path.stat()
    return FileState(status.st_size, status.st_mtime_ns, status.st_ino)


def states_below(place: StorePath) -> dict[str, FileState]:
    """Return the objects below an address by their keys relative to it, sorted; raise OSError."""
    with plain_errors(place):
        found = _files(place).get_file_info(
            arrow_fs.FileSelector(place.key, recursive=True, allow_not_found=True)
        )
    return {
        each.path.removeprefix(place.key).lstrip("/"): FileState(int(each.size), int(each.mtime_ns or 0))
        for each in sorted(found, key=lambda each: each.path)
        if each.type == arrow_fs.FileType.File
    }


def names_below(place: Place) -> list[str]:
    """Return the files in a folder and all below it, as paths relative to it, sorted. Raises OSError."""
    if isinstance(place, Path):
        return sorted(str(each.relative_to(place)) for each in place.rglob("*") if each.is_file())
    return list(states_below(place))


def remove_file(place: Place) -> None:
    """Remove a file that may be gone already; raise OSError."""
    if isinstance(place, Path):
        place.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError), plain_errors(place):
        _files(place).delete_file(place.key)  # S3 takes it for done if it is gone, Google's store does not


def remove_folder(place: Place) -> None:
    """Remove a folder with all that lies below it, as far as that can be done."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    try:
        for name in names_below(place):
            remove_file(place / name)
    except OSError:
        return  # what stays is removed later, or by the bucket's own rules


def sync(place: Place) -> None:
    """Bring a file, or the names in a folder, to the disk; what an object store took is there."""
    if isinstance(place, StorePath):
        return
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Raise errors of Arrow, which name a file in their text alone, as Python's own with number and path."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


@contextmanager
def plain_errors(place: StorePath) -> Iterator[None]:
    """Raise errors of an object store with a number and a short reason, without the whole answer."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        number, text = reason_in_store(error)
        raise OSError(number, text, str(place)) from None


_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
_STATUS: Final = re.compile(r"\b([45]\d\d) [A-Z][A-Za-z ]{1,40}")
_DENIED: Final = ("403 Forbidden", "401 Unauthorized", "AccessControlException", "necessary privileges")
_NO_CREDENTIALS: Final = "no credentials, set those of the store in the environment"


def reason_in_store(error: Exception) -> tuple[int | None, str]:
    """Return the number of an error, if it has one, and a reason: never the store's answer.

    An answer quotes the request, and names the account.
    """
    text = str(error)
    code, status = _CODE.search(text), _STATUS.search(text)
    answer = code[1] if code is not None else status[0] if status is not None else ""
    if isinstance(error, FileNotFoundError) or ("404 Not Found" in text and not code):
        return errno.ENOENT, os.strerror(errno.ENOENT)
    if "token request" in text:
        return None, _NO_CREDENTIALS  # whoever gives them out does not know them, or is not there
    if any(each in text for each in _DENIED):
        return errno.EACCES, os.strerror(errno.EACCES)
    if "error sending request" in text or "onnection refused" in text:
        return None, "the store does not answer, check its address and the network"
    if "redential" in text:
        return None, _NO_CREDENTIALS
    return None, f"the store answers {answer}" if answer else "the store failed"


AT_ONCE: Final = 8
"""Files opened or brought to the disk at a time: a small one is mostly waited for."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_parallel(
    items: Sequence[_Item], function: Callable[[_Item], _Result], at_once: int = AT_ONCE
) -> list[_Result]:
    """Return the function's results, in the order of the items; raise what it raises."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(at_once, len(items))) as pool:
        return list(pool.map(function, items))
