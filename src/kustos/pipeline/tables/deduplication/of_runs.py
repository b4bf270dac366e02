"""Deduplication of a run: lines that share keys come into one bucket, and are compared there by column.

Theory of operation. Nearly every line of a run is a new event. The columns of keys show which lines may be
something else: no event, a repeated key, a stored id, a time too long ago. Only these suspects are read whole
and judged (`outcomes`); all others are events. The keys of a run of few lines are one bucket, compared by the
driver: a Spark job would take longer to plan. Those of more lines are as many buckets as keep each within the
memory of a task, and tasks take them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.places import Place, in_parallel, make_folder, sink_of, source_of
from kustos.pipeline.schemas import CLUSTER, CONTENT_SCHEMA
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.tables.deduplication.keys import line_digests, suspects
from kustos.pipeline.tables.deduplication.outcomes import (
    OUTCOMES,
    SECRET_CHARACTERS,
    are_told_by_text,
    in_cluster,
    outcomes,
    without_known_lines,
)
from kustos.pipeline.tables.staged_files import StagedReader
from kustos.pipeline.tables.staging import KEY_NUMBER, StagedLines
from kustos.pipeline.tables.stored import StoredFile, StoredFiles
from kustos.runtime import SystemEntropy

BUCKET_LINES_MAX: Final = 1_000_000
"""The keys of so many lines take half a gigabyte while they are compared, 400 bytes each."""

BUCKET_KEY_BYTES_MAX: Final = 256 * 2**20
"""Keys with more text are no common run: an id may be as long as a line."""

BUCKETS_MAX: Final = 4_096
"""Each reads the keys of all lines: more buckets would read for longer than they compare."""

READERS_MAX: Final = 2
"""Staged files read at a time: each takes a group of rows, and lines may be long."""

SUSPECTS_AT_ONCE: Final = 4_096
"""Lines examined together: the columns of a few take as long as those of a thousand."""

FILE_ROWS: Final = 65_536
"""Outcomes in a group of rows of a file, of which a task reads those of its lines."""

_SHOWN: Final = (KEY_NUMBER, "reason", "time_ms")
_KEYS: Final = ("event_id", "line_key")
"""Texts that only stored events are compared with."""

_BUCKET_BITS: Final = 16
_BUCKET_SHIFT: Final = np.uint64(64 - _BUCKET_BITS)
"""The first bits of a key's number choose its bucket: many more than there are buckets."""

_SUSPECT: Final = list(
    dict.fromkeys(
        (
            *CONTENT_SCHEMA.fieldNames(),
            CLUSTER,
            "line_key",
            "brings_id",
            "is_counted",
            "source_file",
            "day",
            "reason",
        )
    )
)
_TEXT: Final = ("line", "log", "position")
"""What the digest of a line is of: most of its bytes, and needed of few suspects."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of all lines that may be no new event, as tables (OUTCOMES) or as files of them."""

    tables: tuple[pa.Table, ...] = ()
    files: tuple[Place, ...] = ()

    def count(self, outcome: str) -> int:
        """Return how many lines have this outcome."""
        found = [table["outcome"] for table in self.tables]
        found += [_read(file, ["outcome"])["outcome"] for file in self.files]
        return sum(pc.sum(pc.equal(column, outcome)).as_py() or 0 for column in found)

    def conflicts(self) -> int:
        """Return how many events have the id of another event with other content, the first one left out."""
        found = [table["conflicting_file"] for table in self.tables]
        found += [_read(file, ["conflicting_file"])["conflicting_file"] for file in self.files]
        return sum(len(column) - column.null_count for column in found)

    def of_file(self, number: int) -> pa.Table:
        """Return the outcomes of a staged file, by its number."""
        is_of = pc.field("file") == number
        found = [table.filter(is_of) for table in self.tables]
        sources = map(source_of, self.files)
        found += [parquet.read_table(source, filters=is_of, partitioning=None) for source in sources]
        return pa.concat_tables([OUTCOMES.empty_table(), *found])


def deduplicate_lines(
    spark: SparkSession,
    staged: StagedLines,
    stored: StoredFiles,
    folder: Place,
    *,
    oldest_time_ms: int | None = None,
) -> Outcomes:
    """Return the outcomes of all staged lines that may be no new event; every other line is one.

    Those of many lines are written below `folder`, which must not exist.
    """
    bucket = _Buckets(
        tuple(file.place for file in staged.files),
        stored,
        oldest_time_ms,
        SystemEntropy().uuid().hex[:SECRET_CHARACTERS],
        buckets_of(staged),
    )
    if bucket.count == 1:
        return Outcomes(tables=(bucket.outcomes(0),))
    make_folder(folder)

    def judge(number: int) -> Iterator[pa.RecordBatch]:
        name = f"{SystemEntropy().uuid().hex}.parquet"
        with sink_of(folder / name) as sink:
            found = bucket.outcomes(number).sort_by([("file", "ascending"), ("row", "ascending")])
            parquet.write_table(found, sink, row_group_size=FILE_ROWS)
        yield pa.RecordBatch.from_pydict({"file": [name]})

    rows = numbered_tasks(spark, bucket.count, judge, "file string").collect()
    return Outcomes(files=tuple(folder / row["file"] for row in rows))


def buckets_of(staged: StagedLines) -> int:
    """Return how many buckets the keys of these lines need."""
    by_lines = -(-staged.rows // BUCKET_LINES_MAX)
    by_bytes = -(-staged.key_bytes // BUCKET_KEY_BYTES_MAX)
    return min(BUCKETS_MAX, max(1, by_lines, by_bytes))


@dataclass(frozen=True, slots=True)
class _Buckets:
    """The lines of a run and what they are compared with, as a task has it."""

    files: tuple[Place, ...]
    stored: StoredFiles
    oldest_time_ms: int | None
    secret: str
    count: int

    def outcomes(self, number: int) -> pa.Table:
        """Return the outcomes of the suspects of a bucket."""
        keys = in_parallel(self.files, lambda file: self._keys_of(file, number), READERS_MAX)
        marks, files = self._marked(pa.concat_tables(keys)) if keys else ((), set())
        ends = np.cumsum([table.num_rows for table in keys]).tolist()
        rows = [
            table["row"].to_numpy()[marks[end - table.num_rows : end]]
            for table, end in zip(keys, ends, strict=True)
        ]
        wanted = [place for place, chosen in enumerate(rows) if len(chosen)]
        if not wanted:
            return OUTCOMES.empty_table()
        found = in_parallel(wanted, lambda place: list(self._suspects(place, rows[place])), READERS_MAX)
        lines = pa.concat_tables(chain.from_iterable(found))
        first, repeated = _possible_ids(lines)
        files |= self.stored.files_with(repeated)[0]
        stored = self.stored.events_of(files, pa.concat_arrays([first, repeated]), self.secret)
        judged = outcomes(lines, stored, self.oldest_time_ms)
        told_by_text = are_told_by_text(lines, judged)
        if told_by_text.any():
            lines = self._with_digests(lines, told_by_text)
            judged = outcomes(lines, stored, self.oldest_time_ms)
        line_ids = in_cluster(lines[CLUSTER].combine_chunks(), judged["line_id"].combine_chunks())
        known = self.stored.known_line_ids(pc.unique(line_ids.drop_null()))
        return without_known_lines(judged, line_ids, known)

    def _keys_of(self, file: Place, number: int) -> pa.Table:
        """Return the columns that show suspects, and the row, of the bucket's lines."""
        columns = [*_SHOWN, *(_KEYS if self.stored.events else ())]
        with StagedReader.of(file) as content:
            return pa.concat_tables(
                self._of_bucket(content.read(group, columns), number) for group in content.groups
            )

    def _of_bucket(self, keys: pa.Table, number: int) -> pa.Table:
        if self.count == 1:
            return keys
        bucket = (keys[KEY_NUMBER].to_numpy() >> _BUCKET_SHIFT).astype(np.int64) * self.count >> _BUCKET_BITS
        return keys.filter(pa.array(bucket == number))

    def _marked(self, keys: pa.Table) -> tuple[Any, set[StoredFile]]:
        """Return whether each line may be no new event, and the files that have first lines' ids."""
        conditions, files = [keys["reason"].is_valid()], set[StoredFile]()
        # lines of equal keys have equal numbers, and the few others with an equal one are judged as well
        numbers = keys[KEY_NUMBER].to_numpy()
        ordered = np.sort(numbers)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(repeated):
            conditions.append(pc.is_in(keys[KEY_NUMBER], value_set=pa.array(np.unique(repeated))))
        if self.stored.events:
            # of equal lines of a log the first one is stored before the others
            first = pc.binary_join_element_wise(keys["line_key"], "1", "-")
            named = pc.coalesce(keys["event_id"], first).combine_chunks()
            files, ids = self.stored.files_with(named)
            conditions.append(pc.is_in(named, value_set=ids))
        if self.oldest_time_ms is not None:
            conditions.append(pc.less(keys["time_ms"], self.oldest_time_ms).fill_null(False))
        return reduce(pc.or_, conditions).to_numpy(), files

    def _suspects(self, number: int, rows: Any) -> Iterator[pa.Table]:
        """Yield these rows of a staged file as `outcomes` takes them."""
        for table in self._rows(number, rows, _SUSPECT):
            [batch] = table.to_batches()
            yield pa.table(suspects(batch, number, self.secret)).set_column(1, "row", batch["row"])

    def _with_digests(self, lines: pa.Table, wanted: Any) -> pa.Table:
        """Return suspects with the digests of those whose texts are wanted."""
        chosen = lines.select(["file", "row"]).filter(pa.array(wanted))
        files, rows = (chosen[name].to_numpy() for name in ("file", "row"))
        found = [
            line_digests(table)
            for number in dict.fromkeys(files.tolist())
            for table in self._rows(number, rows[files == number], _TEXT)
        ]
        digests = pc.replace_with_mask(
            pa.nulls(len(wanted), pa.string()), pa.array(wanted), pa.concat_arrays(found)
        )
        return lines.set_column(lines.schema.get_field_index("line_digest"), "line_digest", digests)

    def _rows(self, number: int, rows: Any, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of these rows of a staged file, ascending, and `row`; several groups together."""
        held: list[pa.Table] = []
        given = 0
        with StagedReader.of(self.files[number]) as content:
            for group in content.groups:
                end = group.first_row + group.rows
                wanted = rows[(rows >= group.first_row) & (rows < end)]
                if len(wanted):
                    read = content.read(group, columns)
                    held.append(read.take(pa.array(wanted - group.first_row)))
                count = sum(table.num_rows for table in held)
                if count >= SUSPECTS_AT_ONCE or (count and count == len(rows) - given):
                    yield pa.concat_tables(held).combine_chunks()
                    held, given = [], given + count


def _read(file: Place, columns: list[str]) -> pa.Table:
    with parquet.ParquetFile(source_of(file)) as content:
        return content.read(columns, use_threads=False)


def _possible_ids(lines: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the ids that these lines may have as events: own and first ones, and those of repeated lines."""
    brings_id = lines["brings_id"]
    own = pc.unique(lines["key"].filter(brings_id))
    counts = pc.value_counts(lines["key"].filter(pc.invert(brings_id)))
    keys, numbers = counts.field("values"), counts.field("counts").to_numpy()
    places = np.repeat(np.arange(len(keys)), numbers)
    occurrences = np.arange(len(places)) - np.repeat(np.cumsum(numbers) - numbers, numbers) + 1
    texts = pa.array(occurrences).cast(pa.string())
    generated = pc.binary_join_element_wise(keys.take(pa.array(places)), texts, "-")
    is_first = pa.array(occurrences == 1)
    return pa.concat_arrays([own, generated.filter(is_first)]), generated.filter(pc.invert(is_first))
