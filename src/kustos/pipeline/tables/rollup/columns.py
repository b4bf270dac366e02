"""The roll-up of events by column: groups of each chunk, then of these groups; no event becomes a row."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.pipeline.columns.codes import OR, Coded, coded, grouped, joined
from kustos.pipeline.columns.decision_counts import DECISION_COUNT, decision_counts
from kustos.pipeline.columns.file_parts import Chunk, FilePart, chunks
from kustos.pipeline.columns.probes import ways_of_access
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA, CLUSTER, ROLLUP_GRAIN
from kustos.pipeline.tables.deduplication.keys import MILLISECONDS_OF_A_DAY
from kustos.pipeline.tables.rollup.spill_files import spilled_groups

MILLISECONDS_OF_AN_HOUR: Final = 3_600_000
HOURS_OF_A_DAY: Final = 24

CHUNK_ROWS_MAX: Final = 1 << 17
"""Events at a time: all their columns of codes and numbers, and groups of them, take some 150 MB."""

KEPT_GROUPS_MAX: Final = 1 << 17
"""Groups kept in memory until as many are new, some 200 MB to combine; more are spilled to disk."""

OUT_ROWS: Final = 1 << 16

_SCHEMA: Final = to_arrow_schema(AUDIT_ROLLUP_SCHEMA, timezone="UTC")
_RULE: Final = tuple(f"rule.{field.name}" for field in _SCHEMA.field("rule").type)
_HAS_RULE: Final = "has_rule"
_TEXTS: Final = ("principal_type", "principal_name", *ROLLUP_GRAIN[2:-1], *_RULE)
_OTHERS: Final = ("rule", "time_ms", DECISION_COUNT, "reference_count", "event_id", "log_if_denied")
_ROLLUP_TEXTS: Final = (*ROLLUP_GRAIN[1:-1], *_RULE)
_BUCKET_KEYS: Final = ("principal", "host", "resource_name")
_KEYS: Final = (*ROLLUP_GRAIN[:-1], _HAS_RULE, *_RULE)
_SUMS: Final = {
    "event_count": "sum",
    "reference_count": "sum",
    "first_time": "min",
    "last_time": "max",
    "hours": OR,
    "sample_event_id": "min",
}
_ROLLUP_OTHERS: Final = ("day", "rule", *_SUMS)


def rolled_up_parts(events: Iterable[FilePart], rollups: Iterable[FilePart] = ()) -> Iterator[pa.RecordBatch]:
    """Yield the roll-up of the events in parts of files, in batches; each row of ROLLUP_GRAIN once.

    `rollups`: parts of files of roll-ups of other events, whose rows are added.

    Memory is bounded by the two limits above up to some two million rows; of more, a sixteenth must fit.
    Raises `OSError` or `pyarrow.ArrowInvalid` for a file that cannot be read, `OSError` if spilling fails.
    """
    with spilled_groups(_BUCKET_KEYS) as spilled:
        kept: list[pa.Table] = []
        combined_rows = 0
        for groups in itertools.chain(
            map(_of_events, chunks(events, _TEXTS, _OTHERS, CHUNK_ROWS_MAX)),
            map(_of_rollup, chunks(rollups, _ROLLUP_TEXTS, _ROLLUP_OTHERS, CHUNK_ROWS_MAX)),
        ):
            kept.append(_grouped(*groups))
            if sum(table.num_rows for table in kept) - combined_rows > KEPT_GROUPS_MAX:
                kept = [_together(kept)]
                combined_rows = kept[0].num_rows
            if combined_rows > KEPT_GROUPS_MAX:
                spilled.add(kept.pop())
                combined_rows = 0
        if kept and not spilled.is_empty:
            spilled.add(_together(kept))
            kept = []
        for tables in itertools.chain([kept] if kept else [], spilled.buckets()):
            for batch in _together(tables).to_batches(OUT_ROWS):
                yield _as_rollup(batch)


def _of_events(chunk: Chunk) -> tuple[dict[str, Coded], dict[str, Any]]:
    read: dict[str, Any] = dict(chunk)
    keys = {name: read[name] for name in (*ROLLUP_GRAIN[2:-1], *_RULE)}
    keys["access"] = ways_of_access(read)
    keys[CLUSTER] = keys[CLUSTER].with_text(keys[CLUSTER].is_null(), UNNAMED)
    keys["principal"] = joined(read["principal_type"], ":", read["principal_name"])
    time_ms = read["time_ms"].cast(pa.int64())
    milliseconds = time_ms.fill_null(0).to_numpy()
    is_unknown = time_ms.is_null().to_numpy(zero_copy_only=False)
    days = pa.array(milliseconds // MILLISECONDS_OF_A_DAY, mask=is_unknown)
    keys["day"] = coded(days.cast(pa.int32()).cast(pa.date32()))
    keys[_HAS_RULE] = coded(read["rule"].is_valid().cast(pa.int8()))
    hours = np.left_shift(1, milliseconds // MILLISECONDS_OF_AN_HOUR % HOURS_OF_A_DAY).astype(np.int32)
    time = time_ms.cast(pa.timestamp("ms", tz="UTC")).cast(_SCHEMA.field("first_time").type)
    return keys, {
        "event_count": decision_counts(read),
        "reference_count": read["reference_count"].cast(pa.int64()).fill_null(0),
        "first_time": time,
        "last_time": time,
        "hours": pa.array(np.where(is_unknown, np.int32(0), hours)),
        "sample_event_id": read["event_id"].cast(pa.string()),
    }


def _of_rollup(chunk: Chunk) -> tuple[dict[str, Coded], dict[str, Any]]:
    """Return the rows of a roll-up as groups of events; one of an older version lacks some columns."""
    read: dict[str, Any] = dict(chunk)
    keys = {name: read[name] for name in (*ROLLUP_GRAIN[1:-1], *_RULE)}
    keys["day"] = coded(read["day"])
    keys[CLUSTER] = keys[CLUSTER].with_text(keys[CLUSTER].is_null(), UNNAMED)
    keys[_HAS_RULE] = coded(read["rule"].is_valid().cast(pa.int8()))
    measures = {name: read[name].cast(_SCHEMA.field(name).type) for name in _SUMS}
    return keys, measures | {"hours": measures["hours"].fill_null(0)}


def _together(tables: list[pa.Table]) -> pa.Table:
    """Return the groups of several tables as one table of groups."""
    if len(tables) == 1:
        return tables[0]
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return _grouped({name: coded(columns[name]) for name in _KEYS}, {name: columns[name] for name in _SUMS})


def _grouped(keys: dict[str, Coded], measures: dict[str, Any]) -> pa.Table:
    summed = {name: (measures[name], how) for name, how in _SUMS.items()}
    first, sums = grouped([keys[name] for name in _KEYS], summed)
    return pa.table({name: keys[name].take(first).to_arrow() for name in _KEYS} | sums)


def _as_rollup(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = {
        name: column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    rule = _SCHEMA.field("rule").type
    columns["rule"] = pa.StructArray.from_arrays(
        [columns[name].cast(field.type) for name, field in zip(_RULE, rule, strict=True)],
        fields=list(rule),
        mask=pc.equal(columns[_HAS_RULE], 0),
    )
    return pa.record_batch([columns[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA)
