"""Files of staged lines: groups of rows, of each the columns, and the texts of the lines apart.

Theory of operation. These files are read a few times by the run that writes them, and removed at its end.
Parquet spends on every value what readers of years would gain from it, so a group here is two streams of
Arrow's IPC format: its columns, texts as codes, and the texts of its lines, which are most of the bytes and
which few readers need. The file ends with a stream that says where each group lies and which days it has, and
with the place of that stream in eight bytes. So readers get the groups that they need with one request each,
from an object store, too.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kustos.pipeline.places import Place, sink_of, source_of

LINE: Final = "line"
_DAY: Final = "day"
_PLACE_BYTES: Final = 8
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""LZ4 takes less time than the bytes that it saves take to be written."""

_WRITTEN_BYTES: Final = 1 << 20
"""So much is written at a time, less than the buffer before the sink: of more Arrow passes on a buffer of its
own, where the client of object stores takes bytes."""


@dataclass(frozen=True, slots=True)
class Group:
    """Where a group lies in its file, its number of rows, and its first and last day, None without any.

    Its columns begin at `columns_at`, the texts of its lines at `lines_at`, and the group ends at `end`.
    `first_row` is the number of its first row in the file.
    """

    columns_at: int
    lines_at: int
    end: int
    first_row: int
    rows: int
    first_day: Any
    last_day: Any


_GROUPS: Final = pa.schema(
    [(field.name, pa.date32() if field.name.endswith(_DAY) else pa.int64()) for field in fields(Group)]
)


class StagedWriter:
    """Writes groups of rows, each as it comes, into a sink of Arrow; `close` ends it."""

    def __init__(self, sink: "pa.NativeFile") -> None:
        self._sink = sink
        self._groups: list[Group] = []
        self._at = self._row = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Write a group."""
        columns_at = self._at
        self._put(rows.select([name for name in rows.schema.names if name != LINE]))
        lines_at = self._at
        self._put(rows.select([LINE]))
        days = pc.min_max(rows[_DAY]).as_py()
        group = Group(columns_at, lines_at, self._at, self._row, rows.num_rows, days["min"], days["max"])
        self._groups.append(group)
        self._row += rows.num_rows

    def close(self) -> None:
        """Write where the groups are."""
        place = self._at
        columns = [[getattr(group, field.name) for group in self._groups] for field in _GROUPS]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _GROUPS, strict=True)]
        self._put(pa.RecordBatch.from_arrays(arrays, schema=_GROUPS))
        self._sink.write(place.to_bytes(_PLACE_BYTES, "big"))

    def _put(self, rows: pa.RecordBatch) -> None:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, rows.schema, options=_OPTIONS) as writer:
            writer.write_batch(rows)
        written = memoryview(stream.getvalue())
        for start in range(0, len(written), _WRITTEN_BYTES):
            self._sink.write(written[start : start + _WRITTEN_BYTES])
        self._at += len(written)


@contextmanager
def staged_writer(place: Place) -> Iterator[StagedWriter]:
    """Yield a writer of a new file; raise OSError."""
    with ExitStack() as opened:
        sink = opened.enter_context(sink_of(place, is_lasting=False))
        # a local file comes as its name
        file = opened.enter_context(pa.OSFile(sink, "wb") if isinstance(sink, str) else sink)
        writer = StagedWriter(opened.enter_context(pa.BufferedOutputStream(file, 2 * _WRITTEN_BYTES)))
        yield writer
        writer.close()


class StagedReader:
    """Reads a file of staged lines, group by group: `groups` are all of them."""

    def __init__(self, source: "pa.NativeFile") -> None:
        self._source = source
        size = source.size()
        end = size - _PLACE_BYTES
        place = int.from_bytes(self._bytes(end, size).to_pybytes(), "big")
        found = pa.ipc.open_stream(self._bytes(place, end)).read_next_batch()
        self.groups: Final = [Group(**row) for row in found.to_pylist()]

    @classmethod
    @contextmanager
    def of(cls, place: Place) -> Iterator[Self]:
        """Yield the reader of a file; raise OSError."""
        source = source_of(place)
        with pa.OSFile(source) if isinstance(source, str) else source as opened:
            yield cls(opened)

    def read(self, group: Group, columns: Sequence[str]) -> pa.Table:
        """Return these columns of a group, and of `row` the number of each row in the file."""
        found = self._stream(group.columns_at, group.lines_at, [name for name in columns if name != LINE])
        if LINE in columns:
            lines = self._stream(group.lines_at, group.end, [LINE])
            found = found.append_column(LINE, lines[LINE])
        rows = np.arange(group.first_row, group.first_row + group.rows)
        return found.select(columns).append_column("row", pa.array(rows))

    def _stream(self, start: int, end: int, columns: Sequence[str]) -> pa.Table:
        content = self._bytes(start, end)
        names = pa.ipc.open_stream(content).schema.names
        options = pa.ipc.IpcReadOptions(
            included_fields=[names.index(name) for name in columns], use_threads=False
        )
        return pa.ipc.open_stream(content, options=options).read_all()

    def _bytes(self, start: int, end: int) -> pa.Buffer:
        self._source.seek(start)
        return self._source.read_buffer(end - start)
