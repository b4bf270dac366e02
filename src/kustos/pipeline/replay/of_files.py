"""Replay by column, over table files or a frame: workers decide what they read, only flips are shuffled."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.pipeline.columns import (
    Coded,
    FilePart,
    chunk_of,
    chunks,
    coded,
    combined,
    grouped,
    joined,
    parts_of,
)
from kustos.pipeline.columns.decision_counts import DECISION_COUNT, decision_counts
from kustos.pipeline.columns.probes import ways_of_access
from kustos.pipeline.deciding import ShippedAcls
from kustos.pipeline.deciding.questions import answered
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.places import Place
from kustos.pipeline.replay.flips import ALLOWED, GAINED, LOST, RULE_CHANGED
from kustos.pipeline.schemas import CLUSTER, FLIPS_SCHEMA, QUESTION_COLUMNS
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.task_errors import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS, ROLLUP = "audit_events", "audit_rollup"

MATCHING_ACL: Final = "MatchingAcl"

_ACL_FIELDS: Final = {
    "resource_type": "resourceType",
    "resource_name": "resourceName",
    "pattern_type": "patternType",
    "principal": "principal",
    "host": "host",
    "operation": "operation",
    "permission_type": "permissionType",
}
_ACL_NAMES: Final = tuple(_ACL_FIELDS.values())
_RULE: Final = ("rule.kind", *(f"rule.{name}" for name in _ACL_FIELDS))
_RECORD: Final = ("from_decision", "from_rule")

_SHARED: Final = (CLUSTER, "host", "operation", "resource_type", "resource_name", "access", "decision")
_TEXTS: Final = {
    EVENTS: ("principal_type", "principal_name", *_SHARED),
    ROLLUP: ("principal", *_SHARED),
}
_NUMBERS: Final = {
    EVENTS: (DECISION_COUNT, "reference_count", "time", "log_if_denied"),
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
    rule_changes: bool = False,
    clusters: Collection[str] | None = None,
    with_example: bool = True,
) -> "DataFrame":
    """Return the table `replay_flips` of a table's files: access that the candidate decides differently.

    `table` is EVENTS or ROLLUP. Before is the recorded decision or, with a `baseline`, that of those ACLs:
    then changes since the record do not count as the candidate's. Without `rule_changes` only lost and gained
    access is found, at half the cost, and recorded decisions have no `from_rule`.

    A question about any resource of a type has no single rule, only one of several: its rule never changes.
    Nor does one that was not recorded, or where neither side allows and one is an ERROR.

    `clusters` are the texts by which rows name the cluster, None: all rows. Workers must see the files under
    these paths. Raises `OSError` for a file that is gone.
    """
    parts = parts_of(files)
    search = FlipSearch(table, candidate, baseline, rule_changes, with_example, clusters)

    return _summed(
        numbered_tasks(spark, len(parts), lambda number: search.flips(parts[number]), FLIPS_SCHEMA)
    )


def flips_of_rows(
    rows: "DataFrame",
    table: str,
    candidate: ShippedAcls,
    baseline: ShippedAcls | None = None,
    *,
    rule_changes: bool = True,
    with_example: bool = True,
) -> "DataFrame":
    """Return the same of a frame with the columns of `table`."""
    search = FlipSearch(table, candidate, baseline, rule_changes, with_example)

    def flips_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from search.flips_of_chunks([chunk_of(batch, search.texts, search.others)])

    return _summed(map_in_arrow(rows, flips_of, FLIPS_SCHEMA))


def _summed(found: "DataFrame") -> "DataFrame":
    sums = [getattr(sql, how)(name).alias(name) for name, how in _SUMS.items()]
    return found.groupBy(*_KEYS).agg(*sums).select(*FLIPS_SCHEMA.fieldNames())


@dataclass(frozen=True, slots=True)
class FlipSearch:
    """The search for flips in parts of files, as a worker runs it."""

    table: str
    candidate: ShippedAcls
    baseline: ShippedAcls | None
    rule_changes: bool
    with_example: bool
    clusters: Collection[str] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of texts that are read."""
        return (*_TEXTS[self.table], *(_RULE if self._compares_record else ()))

    @property
    def others(self) -> tuple[str, ...]:
        """All other columns that are read."""
        return (*_NUMBERS[self.table], *((_EXAMPLE[self.table],) if self.with_example else ()))

    @property
    def _compares_record(self) -> bool:
        return self.rule_changes and self.baseline is None

    def flips(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the flips of a part, each once in a chunk of it."""
        yield from self.flips_of_chunks(chunks([part], self.texts, self.others))

    def flips_of_chunks(self, found: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Yield the flips of chunks, each once in a chunk."""
        for chunk in found:
            batch = self._flips_of_chunk(self._of_clusters(chunk))
            if batch is not None:
                yield batch

    def _of_clusters(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """Return the rows of the clusters; a null names none."""
        if self.clusters is None:
            return chunk
        names = chunk[CLUSTER].with_text(chunk[CLUSTER].is_null(), UNNAMED)
        rows = np.flatnonzero(np.any([names.is_text(name) for name in self.clusters], axis=0))
        if len(rows) == len(names.codes):
            return chunk
        return {
            name: column.take(rows if isinstance(column, Coded) else pa.array(rows))
            for name, column in chunk.items()
        }

    def _flips_of_chunk(self, chunk: dict[str, Any]) -> pa.RecordBatch | None:
        questions = self._questions(chunk)
        recorded = chunk["decision"]
        was_allowed = recorded.is_text(ALLOWED)
        record = [recorded, rule_texts(chunk)] if self._compares_record else [recorded]
        then = record if self.baseline is None else _answers(self.baseline, questions, self.rule_changes)
        now = _answers(self.candidate, questions, self.rule_changes)
        before, after = (each[0].is_text(ALLOWED) for each in (then, now))
        is_flip = before != after
        if self.rule_changes:
            same = _are_equal(then[0], now[0]) | (then[0].is_null() & now[0].is_null())
            names_rule = ~(questions["resource_name"].is_null() | then[1].is_null() | now[1].is_null())
            is_flip |= same & names_rule & ~_are_equal(then[1], now[1])
        rows = np.flatnonzero(is_flip)
        if not len(rows):
            return None
        keys = {name: column.take(rows) for name, column in questions.items()}
        keys["access"] = self._access(chunk, rows)
        if self.baseline is None:
            keys |= {name: each.take(rows) for name, each in zip(_RECORD, record, strict=False)}
        first, sums = grouped(list(keys.values()), self._measures(chunk, rows, was_allowed))
        columns: dict[str, pa.Array] = {name: column.take(first).decoded() for name, column in keys.items()}
        was, is_now = (pa.array(each[rows[first]]) for each in (before, after))
        columns["kind"] = pc.if_else(
            was, pc.if_else(is_now, RULE_CHANGED, LOST), pc.if_else(is_now, GAINED, RULE_CHANGED)
        )
        question_columns = [columns[name] for name in QUESTION_COLUMNS]
        columns["to_decision"], columns["to_rule"] = answered(
            self.candidate, question_columns, with_rule=True
        )
        if self.baseline is not None:
            columns |= zip(_RECORD, answered(self.baseline, question_columns, with_rule=True), strict=True)
        columns.setdefault("from_rule", pa.nulls(len(first), pa.string()))
        columns |= sums
        return pa.record_batch([columns[field.name].cast(field.type) for field in _ARROW], schema=_ARROW)

    def _questions(self, chunk: dict[str, Any]) -> dict[str, Coded]:
        if self.table == EVENTS:
            principal = joined(chunk["principal_type"], ":", chunk["principal_name"])
        else:
            principal = chunk["principal"]
        return {"principal": principal} | {name: chunk[name] for name in QUESTION_COLUMNS[1:]}

    def _access(self, chunk: dict[str, Any], rows: npt.NDArray[np.int64]) -> Coded:
        """Return the way of access of these rows."""
        if self.table == ROLLUP:
            access: Coded = chunk["access"]
            return access.take(rows)
        taken = {name: chunk[name].take(rows) for name in ("access", "decision", "resource_name")}
        return ways_of_access(taken | {"log_if_denied": chunk["log_if_denied"].take(pa.array(rows))})

    def _measures(
        self, chunk: dict[str, Any], rows: npt.NDArray[np.int64], was_allowed: npt.NDArray[np.bool_]
    ) -> dict[str, tuple[pa.Array, str]]:
        places = pa.array(rows)
        if self.table == EVENTS:
            events = decision_counts(chunk).take(places)
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


def rule_texts(chunk: Mapping[str, Any]) -> Coded:
    """Return recorded rules (`rule.kind` …) as the audit line writes them; null for an event without one."""
    columns = [chunk[name] for name in _RULE]
    _, first, places = np.unique(combined(columns), return_index=True, return_inverse=True)
    decoded = [column.take(first).decoded().to_pylist() for column in columns]
    texts = [_rule_text(*values) for values in zip(*decoded, strict=True)]
    numbers = np.array([len(texts) if text is None else at for at, text in enumerate(texts)], np.int32)
    return Coded(numbers[places], pa.array([*(text or "" for text in texts), None], pa.string()))


def _rule_text(kind: str | None, *fields: str | None) -> str | None:
    if kind != MATCHING_ACL:
        return kind
    if None in fields:
        return None
    binding = ", ".join(f"{name}={value}" for name, value in zip(_ACL_NAMES, fields, strict=True))
    return f"MatchingAcl(acl=StandardAcl[{binding}])"


def _are_equal(one: Coded, other: Coded) -> npt.NDArray[np.bool_]:
    """Return for each row whether both have the same text; a null equals nothing."""
    texts = pc.unique(pa.concat_arrays([one.texts, other.texts]).drop_null())
    places = [pc.index_in(each.texts, value_set=texts).fill_null(-1).to_numpy() for each in (one, other)]
    left, right = (each[column.codes] for each, column in zip(places, (one, other), strict=True))
    equal: npt.NDArray[np.bool_] = (left == right) & (left >= 0)
    return equal


def _answers(shipped: ShippedAcls, questions: dict[str, Coded], with_rule: bool) -> list[Coded]:
    """Return the ACLs' decision on each question, and on request the rule."""
    columns = [questions[name].to_arrow() for name in QUESTION_COLUMNS]
    return [coded(each) for each in answered(shipped, columns, with_rule=with_rule, as_codes=True)]
