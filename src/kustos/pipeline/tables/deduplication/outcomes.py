"""Outcomes of lines that share keys: events, duplicates, or quarantined; over columns, a bucket at a time.

A bucket has all lines that share a key. A caller with many lines leaves out those that no other line and no
stored row shares a key with: they are events.
"""

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from kustos.pipeline.columns.codes import Coded, coded, combined
from kustos.pipeline.lines.generated_ids import LINE_ID_BEGIN
from kustos.pipeline.schemas import CLUSTER, CONTENT_SCHEMA

EVENT, DUPLICATE, QUARANTINED = "event", "duplicate", "quarantined"
TOO_LATE: Final = "too_late"

SECRET_CHARACTERS: Final = 16
"""Of the secret of content digests, as many as SipHash takes."""

SUSPECTS: Final = pa.schema(
    [
        ("file", pa.int32()),
        ("row", pa.int64()),
        (CLUSTER, pa.string()),
        ("key", pa.string()),
        ("brings_id", pa.bool_()),
        ("is_counted", pa.bool_()),
        ("source_file", pa.string()),
        ("day", pa.date32()),
        ("time_ms", pa.int64()),
        ("reason", pa.string()),
        ("content", pa.uint64()),
        ("line_digest", pa.string()),
    ]
)
"""Lines to judge, by file and row: `key` is the event's own id, or the key of a line without one.

`content` and `line_digest` are for lines with an id of their own, null for all others; the digest only for
those that `are_told_by_text`."""

STORED: Final = pa.schema(
    [
        ("day", pa.date32()),
        (CLUSTER, pa.string()),
        ("event_id", pa.string()),
        ("content", pa.uint64()),
        ("source_file", pa.string()),
    ]
)
"""Stored events with ids of these lines; `content` is null for an id that kustos generated."""

OUTCOMES: Final = pa.schema(
    [
        ("file", pa.int32()),
        ("row", pa.int64()),
        ("outcome", pa.string()),
        ("occurrence", pa.int64()),
        ("reason", pa.string()),
        ("line_id", pa.string()),
        ("conflicting_file", pa.string()),
    ]
)
"""`occurrence` numbers equal lines of a log; `line_id` is for quarantined lines. `conflicting_file` is for
events whose id another event has with other content: the file of that event."""

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Digests = npt.NDArray[np.uint64]


def outcomes(
    suspects: pa.Table, stored: pa.Table | None = None, oldest_time_ms: int | None = None
) -> pa.Table:
    """Return the outcome (OUTCOMES) of each line (SUSPECTS), in their order; `stored` is of STORED.

    Of copies the first by file name and digest is the event, the others are duplicates. Lines that share an
    id but not its content are different events: an attacker who copies an id chooses the file, its name, its
    times and the moment when it is read, so any preference could be made to drop the genuine line. Each of
    them but one names the file of another. An event that is not stored and is before `oldest_time_ms` is too
    late.
    """
    lines = suspects.combine_chunks()
    stored = STORED.empty_table() if stored is None else stored.combine_chunks()
    occurrence, first = _copies(lines)
    is_first = first == np.arange(len(first))
    brings_id, reason = _flags(lines["brings_id"]), _one(lines["reason"])
    is_event = is_first & _flags(reason.is_null())
    numbered = pc.binary_join_element_wise(_one(lines["key"]), pa.array(occurrence).cast(pa.string()), "-")
    ids = pc.if_else(pa.array(brings_id), _one(lines["key"]), numbered)
    is_known = _flags(pc.is_in(_contents(lines, ids), value_set=_contents(stored, _one(stored["event_id"]))))
    is_late = np.zeros(len(first), dtype=bool)
    if oldest_time_ms is not None:
        before = pc.less(_one(lines["time_ms"]), oldest_time_ms).fill_null(False)
        is_late = is_event & ~is_known & _flags(before)
    is_duplicate = ~is_first | (is_known & (is_event | brings_id))
    is_kept = is_event & ~is_known & ~is_late
    outcome = np.where(is_kept, EVENT, np.where(is_duplicate, DUPLICATE, QUARANTINED))
    line_id = pc.if_else(
        pa.array(brings_id),
        pc.binary_join_element_wise(LINE_ID_BEGIN, _one(lines["line_digest"]), ""),
        numbered,
    )
    is_quarantined = pa.array(~is_kept & ~is_duplicate)
    columns = [
        _one(lines["file"]),
        _one(lines["row"]),
        pa.array(outcome, pa.string()),
        pa.array(occurrence),
        pc.if_else(pa.array(is_late), TOO_LATE, reason),
        pc.if_else(is_quarantined, line_id, pa.scalar(None, pa.string())),
        _conflicting_files(lines, is_kept & brings_id, stored),
    ]
    return pa.table(columns, schema=OUTCOMES)


def are_told_by_text(suspects: pa.Table, judged: pa.Table) -> Flags:
    """Return which lines need their `line_digest`; `judged` are their outcomes without any.

    A digest says which of the copies in one file is the event, and is in the id of a quarantined line. So
    lines need it whose key comes twice in a file or has such a line; it changes no outcome of others.
    """
    lines = suspects.combine_chunks()
    brings_id = _flags(lines["brings_id"])
    columns = [coded(_one(lines[name])) for name in (CLUSTER, "key", "source_file")]
    key, place = combined(columns[:2]), combined(columns)
    _, numbers, counts = np.unique(place[brings_id], return_inverse=True, return_counts=True)
    is_doubtful = _flags(pc.equal(judged["outcome"], QUARANTINED)) & brings_id
    is_doubtful[brings_id] |= counts[numbers] > 1
    return brings_id & np.isin(key, key[is_doubtful])


def without_known_lines(found: pa.Table, keys: pa.Array, known: pa.Array) -> pa.Table:
    """Return outcomes with quarantined lines that are stored as duplicates, by their keys (`in_cluster`)."""
    again = pc.is_in(keys, value_set=known, skip_nulls=True)
    place = found.schema.get_field_index("outcome")
    return found.set_column(place, "outcome", pc.if_else(again, DUPLICATE, found["outcome"]))


def _copies(lines: pa.Table) -> tuple[Numbers, Numbers]:
    """Return for each line its number among equal ones of a file, and the first of its copies.

    Copies are equal in cluster, key, day, number and content.
    """
    source = coded(_one(lines["source_file"]))
    key = combined([coded(_one(lines[CLUSTER])), coded(_one(lines["key"]))])
    files, rows = _numbers(lines["file"]), _numbers(lines["row"])
    is_counted = _flags(lines["is_counted"]).astype(np.int64)
    order = np.lexsort((rows, files, source.codes, key))
    starts = _starts(key[order], source.codes[order])
    sums = np.cumsum(is_counted[order])
    numbers = sums - sums[starts] + is_counted[order][starts]
    occurrence = np.empty(len(order), np.int64)
    occurrence[order] = np.where(is_counted[order] > 0, numbers, 1)
    days = _numbers(lines["day"].cast(pa.int32()).fill_null(-1))
    content = _digests(lines["content"])
    order = _in_order(lines, content, occurrence, days, key)
    starts = _starts(key[order], days[order], occurrence[order], content[order])
    first = np.empty(len(order), np.int64)
    first[order] = order[starts]
    return occurrence, first


def _starts(*columns: npt.NDArray[Any]) -> Numbers:
    """Return for each row of sorted columns the first row that is equal in all of them."""
    count = len(columns[0])
    begins = np.zeros(count, dtype=bool)
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return np.maximum.accumulate(np.where(begins, np.arange(count), 0))


def _ranks(column: Coded) -> Numbers:
    """Return numbers that sort as the texts do."""
    ranks = np.empty(len(column.texts), np.int64)
    ranks[pc.sort_indices(column.texts).to_numpy()] = np.arange(len(column.texts))
    return ranks[column.codes]


def _conflicting_files(lines: pa.Table, is_new: Flags, stored: pa.Table) -> pa.Array:
    """Return for each new event whose id another one has, stored or before it, the file of that event.

    New events that share an id differ in content; they are in the order of file name and digest.
    """
    new = lines.filter(pa.array(is_new)).combine_chunks()
    ids = in_cluster(_one(new[CLUSTER]), _one(new["key"]))
    key, files = coded(ids).codes, _one(new["source_file"])
    order = _in_order(new, key)
    first = np.empty(len(order), np.int64)
    first[order] = order[_starts(key[order])]
    earlier = files.take(pa.array(first, mask=first == np.arange(len(first))))
    known = stored.sort_by("source_file").combine_chunks()
    known_ids = in_cluster(_one(known[CLUSTER]), _one(known["event_id"]))
    places = pc.index_in(ids, value_set=known_ids, skip_nulls=True)
    other = pc.coalesce(_one(known["source_file"]).take(places), earlier)
    return pc.replace_with_mask(pa.nulls(len(lines), pa.string()), pa.array(is_new), other)


def _in_order(lines: pa.Table, *keys: npt.NDArray[Any]) -> Numbers:
    """Return the places of lines sorted by these keys, the last one first, then by file name and digest."""
    names = (_ranks(coded(_one(lines[name]))) for name in ("line_digest", "source_file"))
    return np.lexsort((_numbers(lines["row"]), _numbers(lines["file"]), *names, *keys))


def _contents(rows: pa.Table, ids: pa.Array) -> pa.Array:
    """Return texts that are equal for events of one cluster with equal id, day and content."""
    days = _one(rows["day"]).cast(pa.int32()).cast(pa.string())
    content = pa.array(_digests(rows["content"])).cast(pa.string())
    return pc.binary_join_element_wise(days, content, in_cluster(_one(rows[CLUSTER]), ids), "/")


def in_cluster(clusters: pa.Array, ids: pa.Array) -> pa.Array:
    """Return texts that are equal for equal ids of one cluster; no name of a cluster has a slash."""
    return pc.binary_join_element_wise(clusters, ids, "/")


def content_digests(events: pa.Table | pa.RecordBatch, secret: str) -> pa.Array:
    """Return a digest of all fields of each event (CONTENT_SCHEMA; a missing column is null).

    Equal contents have equal digests. Without the secret nobody can make two that collide, but for one chance
    in 2**64.
    """
    factor = np.uint64(int.from_bytes(hashlib.blake2b(secret.encode(), digest_size=8).digest()) | 1)
    found: Digests = np.zeros(events.num_rows, np.uint64)
    columns = {name: _one(events[name]) for name in events.schema.names}
    for column in _leaves(CONTENT_SCHEMA, columns, events.num_rows):
        found = found * factor + _hashes(column, secret)
    return pa.array(found)


def _leaves(schema: StructType, columns: dict[str, pa.Array], count: int) -> list[pa.Array]:
    leaves = []
    for field in schema.fields:
        column = columns.get(field.name, pa.nulls(count))
        if not isinstance(field.dataType, StructType):
            leaves.append(column)
            continue
        leaves.append(column.is_valid())
        names = [each.name for each in column.type] if pa.types.is_struct(column.type) else []
        inner = {name: pc.struct_field(column, name) for name in names}
        leaves += _leaves(field.dataType, inner, count)
    return leaves


def _hashes(column: pa.Array, secret: str) -> Digests:
    from pandas.util import hash_array  # a third of a second, which workers that only sum do not need

    values = coded(column)
    texts = values.texts.slice(0, len(values.texts) - 1).cast(pa.string())
    hashes = hash_array(texts.to_numpy(zero_copy_only=False), hash_key=secret, categorize=False)
    known: Digests = np.append(hashes, np.uint64(0))
    return known[values.codes]


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def _flags(column: pa.Array | pa.ChunkedArray) -> Flags:
    return np.asarray(_one(column).to_numpy(zero_copy_only=False), dtype=bool)


def _numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = _one(column).to_numpy(zero_copy_only=False)
    return found


def _digests(column: pa.ChunkedArray) -> Digests:
    found: Digests = _one(column).fill_null(0).to_numpy(zero_copy_only=False)
    return found
