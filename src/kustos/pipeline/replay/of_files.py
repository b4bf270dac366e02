"""Replay over table files: columns as codes, decided in the worker that reads them; only flips become rows.

The same rows as `flips` without rule changes, at less cost: only the flips are shuffled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.pipeline.columns import Coded, FilePart, chunks, grouped, joined, parts_of
from kustos.pipeline.deciding import ShippedAcls
from kustos.pipeline.deciding.questions import answered
from kustos.pipeline.places import Place
from kustos.pipeline.replay.comparing import ALLOWED
from kustos.pipeline.replay.flips import GAINED, LOST
from kustos.pipeline.schemas import FLIPS_SCHEMA, QUESTION_COLUMNS
from kustos.pipeline.stages.probes import ways_of_access

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS, ROLLUP = "audit_events", "audit_rollup"

_SHARED: Final = ("host", "operation", "resource_type", "resource_name", "access", "decision")
_TEXTS: Final = {
    EVENTS: ("principal_type", "principal_name", *_SHARED),
    ROLLUP: ("principal", *_SHARED),
}
_NUMBERS: Final = {
    EVENTS: ("reference_count", "time", "log_if_denied"),
    ROLLUP: ("event_count", "reference_count", "first_time", "last_time"),
}
_EXAMPLE: Final = {EVENTS: "event_id", ROLLUP: "sample_event_id"}

_SUMS: Final = {
    "event_count": "sum",
    "reference_count": "sum",
    "recorded_allowed_count": "sum",
    "first_time": "min",
    "last_time": "max",
    "sample_event_id": "min",
}
_KEYS: Final = tuple(name for name in FLIPS_SCHEMA.fieldNames() if name not in _SUMS)
_ARROW: Final = to_arrow_schema(FLIPS_SCHEMA, timezone="UTC")


def flips_of_files(
    spark: "SparkSession",
    table: str,
    files: Sequence[Place],
    candidate: ShippedAcls,
    baseline: ShippedAcls | None = None,
    *,
    with_example: bool = True,
) -> "DataFrame":
    """Return the table `replay_flips` of lost and gained access in a table's files.

    The same as `flips(..., rule_changes=False)` for the rows of `table`, EVENTS or ROLLUP; only with a
    `baseline` there is a `from_rule`. Workers must see the files under these paths. Raises `OSError` for a
    file that is gone.
    """
    parts = parts_of(files)
    if not parts:
        return spark.createDataFrame([], FLIPS_SCHEMA)
    search = FlipSearch(table, candidate, baseline, with_example)

    def flips_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from search.flips(parts[number])

    found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(flips_of, FLIPS_SCHEMA)
    sums = [getattr(sql, how)(name).alias(name) for name, how in _SUMS.items()]
    return found.groupBy(*_KEYS).agg(*sums).select(*FLIPS_SCHEMA.fieldNames())


@dataclass(frozen=True, slots=True)
class FlipSearch:
    """The search for flips in parts of files, as a worker runs it."""

    table: str
    candidate: ShippedAcls
    baseline: ShippedAcls | None
    with_example: bool

    def flips(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the flips of a part, each once in a chunk of it."""
        example = (_EXAMPLE[self.table],) if self.with_example else ()
        for chunk in chunks(part, _TEXTS[self.table], (*_NUMBERS[self.table], *example)):
            found = self._flips_of_chunk(chunk)
            if found is not None:
                yield found

    def _flips_of_chunk(self, chunk: dict[str, Any]) -> pa.RecordBatch | None:
        questions = self._questions(chunk)
        recorded = chunk["decision"]
        was_allowed = recorded.is_text(ALLOWED)
        before = was_allowed if self.baseline is None else _allows(self.baseline, questions)
        after = _allows(self.candidate, questions)
        rows = np.flatnonzero(before != after)
        if not len(rows):
            return None
        keys = {name: column.take(rows) for name, column in questions.items()}
        access = ways_of_access(chunk) if self.table == EVENTS else chunk["access"]
        keys["access"] = access.take(rows)
        if self.baseline is None:
            keys["from_decision"] = recorded.take(rows)
        first, sums = grouped(list(keys.values()), self._measures(chunk, rows, was_allowed))
        columns: dict[str, pa.Array] = {name: column.take(first).decoded() for name, column in keys.items()}
        lost = pa.array(before[rows[first]])
        columns["kind"] = pc.if_else(lost, LOST, GAINED)
        question_columns = [columns[name] for name in QUESTION_COLUMNS]
        columns["to_decision"], columns["to_rule"] = answered(
            self.candidate, question_columns, with_rule=True
        )
        if self.baseline is None:
            columns["from_rule"] = pa.nulls(len(first), pa.string())
        else:
            columns["from_decision"], columns["from_rule"] = answered(
                self.baseline, question_columns, with_rule=True
            )
        columns |= sums
        return pa.record_batch([columns[field.name].cast(field.type) for field in _ARROW], schema=_ARROW)

    def _questions(self, chunk: dict[str, Any]) -> dict[str, Coded]:
        if self.table == EVENTS:
            principal = joined(chunk["principal_type"], ":", chunk["principal_name"])
        else:
            principal = chunk["principal"]
        return {"principal": principal} | {name: chunk[name] for name in QUESTION_COLUMNS[1:]}

    def _measures(
        self, chunk: dict[str, Any], rows: npt.NDArray[np.int64], was_allowed: npt.NDArray[np.bool_]
    ) -> dict[str, tuple[pa.Array, str]]:
        places = pa.array(rows)
        if self.table == EVENTS:
            events = pa.array(np.ones(len(rows), np.int64))
            first_time = last_time = chunk["time"].take(places)
        else:
            events = chunk["event_count"].take(places)
            first_time, last_time = (chunk[name].take(places) for name in ("first_time", "last_time"))
        if self.with_example:
            example = chunk[_EXAMPLE[self.table]].take(places)
        else:
            example = pa.nulls(len(rows), pa.string())
        found = {
            "event_count": events,
            "reference_count": chunk["reference_count"].take(places).cast(pa.int64()),
            "recorded_allowed_count": pc.if_else(pa.array(was_allowed[rows]), events, 0),
            "first_time": first_time,
            "last_time": last_time,
            "sample_event_id": example,
        }
        return {name: (found[name], how) for name, how in _SUMS.items()}


def _allows(shipped: ShippedAcls, questions: dict[str, Coded]) -> npt.NDArray[np.bool_]:
    """Return for each question whether the ACLs allow it."""
    columns = [questions[name].to_arrow() for name in QUESTION_COLUMNS]
    [answers] = answered(shipped, columns, with_rule=False, as_codes=True)
    allowed = answers.dictionary.to_pylist().index(ALLOWED)
    allows: npt.NDArray[np.bool_] = answers.indices.to_numpy() == allowed
    return allows
