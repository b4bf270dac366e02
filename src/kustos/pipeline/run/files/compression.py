"""Files as they are packed: known by their first bytes, whatever they are called; read as a stream.

A file with the ending of a packed one and other first bytes is damaged, not plain. Each file within a zip
archive is an input of its own, `ARCHIVE!/MEMBER`.
"""

import bz2
import gzip
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import IO, Final, cast

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.places import Place, StorePath, is_address
from kustos.pipeline.run.files.content import FIRST_BYTES, PART_BYTES, open_bytes

IN_ARCHIVE: Final = "!/"
"""Stands between the path of an archive and that of a file within it."""

MEMBERS_MAX: Final = 10_000
"""Files of one archive: its directory is read whole, and lists as many as somebody wrote into it."""


class Packing(Enum):
    """How a file is packed."""

    PLAIN = "plain"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    ZIP = "zip"


_MAGIC: Final[Mapping[bytes, Packing]] = {
    b"\x1f\x8b": Packing.GZIP,
    b"BZh": Packing.BZIP2,
    b"PK\x03\x04": Packing.ZIP,
    b"PK\x05\x06": Packing.ZIP,  # an archive without files
}
_ENDINGS: Final[Mapping[str, Packing]] = {".gz": Packing.GZIP, ".bz2": Packing.BZIP2, ".zip": Packing.ZIP}
_FOREIGN: Final[Mapping[bytes, str]] = {
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\x04\x22\x4d\x18": "LZ4",
    b"\xfd7zXZ\x00": "xz",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
}
_MAGIC_BYTES: Final = 6

DAMAGE: Final = (EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError)
"""What unpacking a damaged file raises; zipfile's RuntimeError: encrypted, or in a rare compression."""


def packing_of(place: Place) -> Packing:
    """Return how a file is packed; raise OSError, and `AuditInputError` for what kustos does not unpack."""
    with open_bytes(place, FIRST_BYTES) as file:
        begin = file.read(_MAGIC_BYTES)
    for magic, name in _FOREIGN.items():
        if begin.startswith(magic):
            raise AuditInputError(f"`{place}` is packed with {name}: unpack it, or pack it with gzip")
    for magic, packing in _MAGIC.items():
        if begin.startswith(magic):
            return packing
    return _ENDINGS.get(Path(place.name).suffix, Packing.PLAIN) if begin else Packing.PLAIN


def members_of(place: Place) -> list[str]:
    """Return the files within a zip archive, without hidden ones; raise `DAMAGE`, `AuditInputError`."""
    with open_bytes(place, FIRST_BYTES) as file, zipfile.ZipFile(file) as archive:
        names = [each.filename for each in archive.infolist() if not each.is_dir()]
    if len(names) > MEMBERS_MAX:
        raise AuditInputError(f"`{place}` holds more than {MEMBERS_MAX} files, unpack it")
    return sorted(
        name for name in set(names) if not any(part.startswith((".", "_")) for part in Path(name).parts)
    )


def split_place(place: str) -> tuple[Place, str | None]:
    """Return the place of a file, and that within it if it is an archive."""
    if is_address(place):
        address, mark, member = place.partition(IN_ARCHIVE)
        return StorePath(address), member if mark else None
    path, mark, member = place.partition(IN_ARCHIVE)
    return (Path(path), member) if mark and not Path(place).exists() else (Path(place), None)


@contextmanager
def unpacked(place: str, packing: Packing, part_bytes: int = PART_BYTES) -> Iterator[IO[bytes]]:
    """Yield the content of a file, read in such parts from an object store.

    Raises OSError, `AuditInputError` for what an object store refuses, and `DAMAGE` while it is read.
    """
    path, member = split_place(place)
    with open_bytes(path, part_bytes) as file:
        if packing is Packing.ZIP:
            with zipfile.ZipFile(file) as archive, archive.open(_member(archive, member)) as content:
                yield content
        elif packing is Packing.GZIP:
            with gzip.open(file, "rb") as content:
                yield cast("IO[bytes]", content)
        elif packing is Packing.BZIP2:
            with bz2.open(file, "rb") as content:
                yield content
        else:
            yield file


def _member(archive: zipfile.ZipFile, name: str | None) -> str:
    if name is None:
        raise zipfile.BadZipFile("no file within the archive was named")
    try:
        archive.getinfo(name)
    except KeyError:
        raise zipfile.BadZipFile(f"`{name}` is not in the archive") from None
    return name
