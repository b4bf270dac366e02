"""Pieces of files as lines: exactly those that were whole when the file was looked at.

Theory of operation. A file may grow while it is read, and its last line may be half written. So the driver
decides how far each file is read (`whole_bytes`), and tasks read to there. A plain file is cut into pieces; a
line belongs to the piece in which it begins. A packed file is one piece. A task reads some pieces. Exports
that were appended to one file have names of their own: equal lines are numbered within one name, so those of
two exports are copies.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.lines.envelopes import is_part, joined_parts
from kustos.pipeline.lines.layouts import is_cri
from kustos.pipeline.places import Place
from kustos.pipeline.run.files.beginnings import Beginning, read_beginning
from kustos.pipeline.run.files.compression import DAMAGE, Packing, unpacked
from kustos.pipeline.run.files.content import FIRST_BYTES, open_bytes
from kustos.pipeline.session import numbered_tasks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kustos.pipeline.tables import LineTasks

LINE_BYTES_MAX: Final = 1 << 24
"""A longer line is cut here; it is quarantined for its length, and a file may be a single one."""

TASK_BYTES_MAX: Final = 1 << 26
"""What one task reads at most of plain files: seconds of work, so that all processors have some."""

TASK_BYTES_MIN: Final = 1 << 22
"""Less is not worth a task of its own."""

TASKS_WANTED: Final = 16
"""Tasks among which little input is divided."""

FILE_COST_BYTES: Final = 1 << 16
"""What it costs to open a file, as bytes read."""

BATCH_BYTES: Final = 1 << 22
BATCH_LINES: Final = 10_000
"""Lines are handed on when there are so many, or of so many bytes."""

_TAIL_BYTES: Final = 1 << 16

_EXPORT: Final = "#export-"
"""Stands between the name of a file and the number of an export that was appended to it."""

PlacedLines = Iterator[tuple[int, bytes]]
"""Lines without their ends, each with the position of its first byte in the unpacked content."""


class DamagedFileError(AuditInputError):
    """A packed file cannot be unpacked to its end."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"cannot read `{path}` to its end: it is damaged, or not packed in the way that its name says; "
            "repair it or take it out of the folder"
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class Readable:
    """A file to read up to `end` (None: to its end); `place` is its path, or `ARCHIVE!/MEMBER`.

    `inode`, `modified_ns` and the text of its `Beginning` are those with which it was listed; an inode of 0
    is not known. `exports` are the positions, ascending, at which exports begin that were appended to it.
    """

    place: str
    name: str
    log: str | None
    packing: Packing
    end: int | None
    packed_bytes: int
    layout: str | None = None
    cluster: str | None = None
    inode: int = 0
    modified_ns: int = 0
    beginning: str | None = None
    exports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """The lines of a file that begin from `start` on and before `stop` (None: to its end)."""

    file: Readable
    start: int
    stop: int | None


def whole_bytes(place: Place, size: int, *, is_closed: bool) -> int:
    """Return how many bytes of a plain file are whole lines; of a closed file all; raise OSError.

    A last line without its end that is a whole JSON object is whole: no line of JSON goes on after it. Last
    parts of a line of CRI are half a line.
    """
    if is_closed or not size:
        return size
    with open_bytes(place, FIRST_BYTES) as file:
        start = size
        tail = b""
        while start and b"\n" not in tail and len(tail) < LINE_BYTES_MAX:
            step = min(_TAIL_BYTES if not tail else len(tail), start)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
    last = tail[tail.rfind(b"\n") + 1 :]
    if last and len(last) < LINE_BYTES_MAX and not _is_whole(last):
        tail, size = tail[: -len(last)], size - len(last)
    return size - _open_parts(tail)


def _open_parts(tail: bytes) -> int:
    """Return how many bytes at the end are parts of a line of CRI that goes on: it is written later."""
    end = len(tail)
    while is_part(tail[(begin := tail.rfind(b"\n", 0, max(end - 1, 0)) + 1) : end]):
        end = begin
    return len(tail) - end


def _is_whole(line: bytes) -> bool:
    if not line.startswith(b"{"):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def tasks_of(files: Sequence[Readable]) -> list[list[Piece]]:
    """Return the pieces of the files, divided among tasks of about equal work."""
    total = sum(file.packed_bytes + FILE_COST_BYTES for file in files)
    task_bytes = min(max(total // TASKS_WANTED, TASK_BYTES_MIN), TASK_BYTES_MAX)
    tasks: list[list[Piece]] = []
    left = 0
    for file in files:
        for piece, cost in _cut(file, task_bytes):
            if cost > left or not tasks:
                tasks.append([])
                left = task_bytes
            tasks[-1].append(piece)
            left -= cost
    return tasks


def _cut(file: Readable, task_bytes: int) -> Iterator[tuple[Piece, int]]:
    begins = (0, *file.exports)
    for number, (begin, end) in enumerate(zip(begins, (*file.exports, file.end), strict=True), 1):
        named = file if number == 1 else replace(file, name=f"{file.name}{_EXPORT}{number}")
        # the parts of a line may lie on both sides of a cut
        if file.packing is not Packing.PLAIN or end is None or is_cri(file.layout):
            yield Piece(named, begin, end), file.packed_bytes + FILE_COST_BYTES
            continue
        for start in range(begin, end, task_bytes):
            stop = min(start + task_bytes, end)
            yield Piece(named, start, stop), stop - start + FILE_COST_BYTES


def file_of(name: str) -> str:
    """Return the name of the file that lines of this name are from."""
    return name.partition(_EXPORT)[0]


def lines_of(content: IO[bytes], start: int, stop: int | None, end: int | None) -> PlacedLines:
    """Yield the lines that begin within a piece; raise what reading raises.

    Raises EOFError if the content ends before `stop`.
    """
    position = start
    if start:
        content.seek(start - 1)
        position += _skipped(content) - 1  # the line before begins in another piece
    while stop is None or position < stop:
        most = LINE_BYTES_MAX if end is None else min(LINE_BYTES_MAX, end - position)
        line = content.readline(most)
        if not line:
            if stop is not None:
                raise EOFError
            return
        begin = position
        position += len(line)
        if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
            position += _skipped(content)
        yield begin, line.removesuffix(b"\n")


def _skipped(content: IO[bytes]) -> int:
    """Go to the beginning of the next line; return how many bytes that was."""
    count = 0
    while part := content.readline(LINE_BYTES_MAX):
        count += len(part)
        if part.endswith(b"\n"):
            break
    return count


class Watch(Protocol):
    """What looks at the lines of files on their way to the tables."""

    def watched(self, piece: Piece, lines: PlacedLines, notes: list[dict[str, Any]]) -> PlacedLines:
        """Yield the lines of a piece, and append what there is to note of it."""

    def write(self, notes: list[dict[str, Any]]) -> None:
        """Keep the notes of a task."""


def read_pieces(
    spark: "SparkSession",
    files: Sequence[Readable],
    more: "Sequence[pa.RecordBatch]" = (),
    watch: Watch | None = None,
) -> "LineTasks":
    """Return the lines of the files, and `more` that were not read from any.

    The action that reads them fails with the text of a `DamagedFileError`, or of an `AuditInputError` for a
    file that went away or changed meanwhile.
    """
    from kustos.pipeline.tables import LineTasks

    tasks = tasks_of(files)

    def read(number: int) -> "Iterator[pa.RecordBatch]":
        if number == len(tasks):
            yield from more
            return
        notes: list[dict[str, Any]] = []

        def batches(piece: Piece, lines: PlacedLines) -> "Iterator[pa.RecordBatch]":
            return _batches(piece, lines if watch is None else watch.watched(piece, lines, notes))

        for piece in tasks[number]:
            yield from _read(piece, batches)
        if watch is not None:
            watch.write(notes)

    return LineTasks(spark, len(tasks) + bool(more), read)


def lines_in_tasks(
    spark: "SparkSession",
    files: Sequence[Readable],
    take: Callable[[Piece, PlacedLines], Iterator[dict[str, Any]]],
    schema: str,
    *,
    whole: bool = False,
) -> "DataFrame":
    """Return the rows that `take` yields for each piece of the files, or each `whole` file."""

    def batches(piece: Piece, lines: PlacedLines) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        rows = take(piece, lines)
        while some := list(islice(rows, BATCH_LINES)):  # there may be one for each line of a packed file
            yield pa.RecordBatch.from_pylist(some)

    tasks = [[Piece(file, 0, file.end)] for file in files] if whole else tasks_of(files)

    def read(number: int) -> "Iterator[pa.RecordBatch]":
        for piece in tasks[number]:
            yield from _read(piece, batches)

    return numbered_tasks(spark, len(tasks), read, schema)


def _read(
    piece: Piece, batches_of: "Callable[[Piece, PlacedLines], Iterator[pa.RecordBatch]]"
) -> "Iterator[pa.RecordBatch]":
    file = piece.file
    try:
        with unpacked(file.place, file.packing) as content:
            if _is_another(file, content):
                raise _changed(file)
            yield from batches_of(piece, lines_of(content, piece.start, piece.stop, file.end))
            if _began_anew(file, content):
                raise _changed(file)
    except FileNotFoundError:
        raise AuditInputError(f"`{file.place}` went away while it was read, run again") from None
    except DAMAGE as error:
        if isinstance(error, EOFError) and file.packing is Packing.PLAIN:
            raise _changed(file) from None
        raise DamagedFileError(file.place) from error


def _is_another(file: Readable, content: IO[bytes]) -> bool:
    """Return whether rotation has put another file in the place of the listed one.

    Mounts such as FUSE's may number one file differently on each machine; its time of change they keep.
    """
    if not file.inode:
        return False
    status = os.fstat(content.fileno())
    return status.st_ino != file.inode and status.st_mtime_ns != file.modified_ns


def _began_anew(file: Readable, content: IO[bytes]) -> bool:
    """Return whether the listed file was truncated and has grown again, or was written over.

    Asked after its lines were read: only then is it known that all of them are of the listed log.
    """
    if file.beginning is None:
        return False
    content.seek(0)
    return not Beginning.from_text(file.beginning).may_have_become(read_beginning(content))


def _changed(file: Readable) -> AuditInputError:
    return AuditInputError(f"`{file.place}` changed while it was read, run again")


def _batches(piece: Piece, lines: PlacedLines) -> "Iterator[pa.RecordBatch]":
    batch: list[bytes] = []
    size = 0
    for _, line in joined_parts(lines) if is_cri(piece.file.layout) else lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= BATCH_LINES or size >= BATCH_BYTES:
            yield _batch(piece.file, batch)
            batch, size = [], 0
    if batch:
        yield _batch(piece.file, batch)


def _batch(file: Readable, lines: list[bytes]) -> "pa.RecordBatch":
    import pyarrow as pa

    from kustos.pipeline.columns.codes import CODED, repeated

    count = len(lines)
    columns = {
        "file": repeated(file.name, CODED, count),
        "line": pa.array(lines, pa.binary()).view(pa.string()),  # not checked: invalid UTF-8 is quarantined
        "log": repeated(file.log, CODED, count),
    }
    texts = {"layout": file.layout, "cluster": file.cluster}
    more = {name: pa.repeat(text, count) for name, text in texts.items() if text is not None}
    return pa.RecordBatch.from_pydict(columns | more)
