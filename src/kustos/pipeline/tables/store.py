"""The tables in a folder: their places, reading as of the last run, and replacement as a whole."""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kustos.pipeline.errors import StaleRollupError, TablesDamagedError, TablesError
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.places import Place, place_of, source_of
from kustos.pipeline.schemas import CLUSTER
from kustos.pipeline.tables.clusters import (
    Cluster,
    Ids,
    chosen_cluster,
    clusters_of_files,
    named_rows,
    names_read,
    others_of,
    rows_of_cluster,
)
from kustos.pipeline.tables.delta import (
    DataFile,
    new_name,
    open_table,
    write_file,
)
from kustos.pipeline.tables.integrity import check_number, committed_files, run_of
from kustos.pipeline.tables.layout import (
    AUDIT_EVENTS,
    AUDIT_RAW,
    AUDIT_ROLLUP,
    BY_DAY,
    GROWING,
    INPUTS,
    QUARANTINE,
    RUNS,
    SCHEMAS,
    SECURITY_EVENTS,
    period_of,
    stored_schema,
)
from kustos.pipeline.tables.parquet_reader import check_schemas, read_parquet
from kustos.pipeline.tables.parquet_writer import write_rows
from kustos.pipeline.tables.rollup.days import refreshed_state
from kustos.pipeline.tables.runs import (
    UPKEEP,
    InputFile,
    State,
    read_inputs,
    read_state,
)
from kustos.pipeline.tables.transaction import Transaction, Write, transaction, when_free
from kustos.runtime import reason_of

NO_IDS: Final[Ids] = {}

_log = logging.getLogger("kustos.pipeline.tables")

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Tables:
    """A folder of Delta tables, read as the last committed run left them.

    `Tables.at("s3://bucket/access")` lie in an object store, with credentials from the environment. With a
    `cluster` only its rows are read, and answers replace only its answers; see `of_cluster`, which also gives
    the `ids`: answers have the names of clusters, where rows may have ids. With `as_of` every table is read
    as that commit left it: what is read together was committed together; see `rolled_up` and `update`.
    """

    folder: Place
    cluster: Cluster | None = None
    ids: Ids = field(default_factory=dict, hash=False)
    as_of: State | None = field(default=None, compare=False)

    @classmethod
    def at(cls, place: str | Place) -> "Tables":
        """Return the tables at a local path, or at an address in an object store; raise `TablesError`."""
        try:
            return cls(place_of(place))
        except ValueError as error:
            raise TablesError(str(error)) from None

    def read(
        self,
        spark: SparkSession,
        name: str,
        *,
        columns: Collection[str] | None = None,
        first_day: date | None = None,
        last_day: date | None = None,
    ) -> DataFrame:
        """Return a table as of the last committed run; empty if nothing was ever written.

        `columns`: only these are read, and `cluster`; by default all. `first_day` and `last_day`, both
        included, choose rows of a table by day. Files of other days, and files that have no row of the
        cluster by Delta's statistics, are not opened. An object store is asked for no other columns; on a
        disk Spark reads by itself only the columns that a query needs.

        The rows stay as they are for a day, whatever is written meanwhile. A roll-up that lacks events or is
        damaged is refreshed first, see `rolled_up`. Raises `TablesError` for an unknown name or column, and
        for days of a table that is not by day, `SchemaConflictError`, `StaleRollupError`,
        `TablesDamagedError`.
        """
        if name == AUDIT_ROLLUP and (self.as_of is None or self.as_of.stale_days):
            tables = self.rolled_up(spark)
            return tables.read(spark, name, columns=columns, first_day=first_day, last_day=last_day)
        place, files = self.place(name), self._files_read(name, first_day, last_day)
        schema = SCHEMAS.get(name)
        if schema is None:
            version = self._seen().versions.get(name)
            table = None if version is None else open_table(place, version)
            if table is None:
                raise TablesError(f"there is no table `{name}` in `{self.folder}`")
            schema = from_arrow_schema(pa.schema(table.schema().to_arrow()))
        rows = read_parquet(spark, place, files, schema if columns is None else _narrowed(schema, columns))
        if name == AUDIT_RAW:
            return rows
        if CLUSTER not in schema.names:  # such as `runs`
            rows = rows.withColumn(CLUSTER, sql.lit(UNNAMED))
        return rows_of_cluster(rows, self.cluster, name == QUARANTINE)

    def _files_read(self, name: str, first_day: date | None, last_day: date | None) -> list[str]:
        """Return the files that may have rows of these days and of the cluster, by Delta's log alone."""
        is_all = first_day is None and last_day is None
        if not is_all and name not in BY_DAY:
            raise TablesError(f"`{name}` is not by day, read it as a whole")
        names = None if self.cluster is None else names_read(self.cluster, name == QUARANTINE)
        return [
            file.name
            for file in self.snapshot(name)
            if (is_all or _is_within(file.day, first_day, last_day))
            and (names is None or file.statistics.may_name(names))
        ]

    def rolled_up(self, spark: SparkSession) -> "Tables":
        """Return the tables as of one commit whose events are all in the roll-up, for an answer to read.

        That is the last commit. If it left days without a roll-up, as a stream does until its next upkeep and
        a killed one for good, they are rolled up first; meanwhile another run may write. A roll-up that
        another program damaged is rebuilt. Raises `StaleRollupError` if that fails, because the tables cannot
        be written for example, and `TablesDamagedError` if events are damaged.
        """
        if self.as_of is not None and not self.as_of.stale_days:
            return self
        tables = self.of_last_run()
        try:
            state = when_free(lambda: refreshed_state(spark, tables))
        except (TablesError, OSError) as error:
            if isinstance(error, TablesDamagedError):
                raise
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            raise tables._stale(
                f"cannot be refreshed here ({reason}), run `kustos pipeline run` where it can be written"
            ) from error
        return replace(self, as_of=state)

    def of_last_run(self) -> "Tables":
        """Return the tables that are read as the last committed run left them at each time."""
        return replace(self, as_of=None)

    def _stale(self, what: str) -> StaleRollupError:
        days = sorted(self._seen().stale_days)
        fault = f"lacks events of {period_of(days)}" if days else "is damaged"
        return StaleRollupError(f"the roll-up in `{self.folder}` {fault} and {what}")

    def clusters(self) -> tuple[str, ...]:
        """Return the clusters that the rows of runs name, sorted; the empty text is the unnamed one.

        Delta's log says it for most files, so days cost nothing. Raises what `read` raises.
        """
        searched = {SECURITY_EVENTS: list(self.snapshot(SECURITY_EVENTS)), AUDIT_ROLLUP: []}
        # a damaged one is rebuilt by `rolled_up`; until then the events say what clusters there are
        with suppress(TablesDamagedError):
            searched[AUDIT_ROLLUP] = list(self.snapshot(AUDIT_ROLLUP))
        rolled_up = {file.day for file in searched[AUDIT_ROLLUP]} - self._seen().stale_days
        searched[AUDIT_EVENTS] = [file for file in self.snapshot(AUDIT_EVENTS) if file.day not in rolled_up]
        found: set[str] = set()
        for name, files in searched.items():
            place = self.place(name)
            try:
                found |= clusters_of_files(place, files)
            except (OSError, pa.ArrowInvalid):
                check_schemas(place, [file.name for file in files], SCHEMAS[name])
                raise
        return tuple(sorted(found))

    def of_cluster(self, name: str | None = None, ids: Ids = NO_IDS) -> "Tables":
        """Return the tables narrowed to one cluster: by default the only one, or that of these tables.

        `ids`: by the name of a cluster what rows also name it by. Raises `ClusterError` for a name that no
        row has, and without a name if there are several; and what `read` raises.
        """
        if name is None and self.cluster is not None:
            return self
        return replace(self, cluster=chosen_cluster(self.clusters(), name, ids), ids=ids)

    @property
    def chosen_cluster(self) -> Cluster:
        """The cluster that the tables are narrowed to; the unnamed one if they are not."""
        return self.cluster or Cluster(UNNAMED, frozenset({UNNAMED}))

    def of_all_clusters(self) -> "Tables":
        """Return the tables with the rows of all clusters."""
        return replace(self, cluster=None)

    def files(self, name: str, first_day: date | None = None, last_day: date | None = None) -> list[Place]:
        """Return the files of a table that runs write; if it is by day, only those of these days.

        For readers of files instead of rows (`columns`). Raises what `read` raises, and `StaleRollupError`
        for a roll-up that lacks events: take the files of `rolled_up` tables.
        """
        if name == AUDIT_ROLLUP and self._seen().stale_days:
            raise self._stale("its files are stale, take the files of `Tables.rolled_up`")
        is_all = name not in BY_DAY
        found = self.chosen(name, lambda file: is_all or _is_within(file.day, first_day, last_day))
        return [path for path, _ in found]

    def chosen(
        self, name: str, is_wanted: Callable[[DataFile], bool] = lambda _: True
    ) -> list[tuple[Place, DataFile]]:
        """Return the wanted files of a table that runs write, with what the log says; as `files` raises."""
        place = self.place(name)
        found = [(place / file.name, file) for file in self.snapshot(name) if is_wanted(file)]
        check_schemas(place, [file.name for _, file in found], SCHEMAS[name])
        return found

    def snapshot(self, name: str) -> tuple[DataFile, ...]:
        """Return the files of a table as of the last committed run, none if it was never written.

        Raises `TablesDamagedError` if another program has changed the files or the log, `TablesError`.
        """
        state, place = self._seen(), self.place(name)
        if not state.number:
            check_number(place, run_of(open_table(place)), 0)
        return committed_files(place, state)

    def replace(self, name: str, rows: DataFrame) -> "Tables":
        """Replace a whole table by rows, and return the tables as of that commit.

        Tables of one cluster keep the rows of others. `rows` may depend on the former table. Raises
        `TablesError` for a table that only runs write.
        """
        self._check_replaceable(name)
        return self.update(f"replace-{name}", lambda _: {name: rows})

    def update(
        self, run_id: str, rows_of: "Callable[[Tables], Mapping[str, DataFrame]]", *, is_kept: bool = False
    ) -> "Tables":
        """Replace whole tables by rows in one commit; return the tables as of it. Raise as `replace` does.

        `rows_of` gets the tables as they are before the commit, and is called while they are locked: no other
        run changes them in between. What takes long is computed before, because other runs wait meanwhile.
        `is_kept`: also rows of clusters stay that no event names any more, since nothing can bring them back.
        """
        with self.transaction() as change:
            before = replace(self, as_of=change.state)
            writes = []
            for name, answer in rows_of(before).items():
                self._check_replaceable(name)
                schema, rows = SCHEMAS.get(name), named_rows(answer, self.cluster)
                former = before._former(rows.sparkSession, name, is_kept=is_kept)
                if self.cluster is not None and former is not None:
                    clusters = None if is_kept else before.clusters()
                    rows = rows.unionByName(others_of(former, self.cluster, clusters, self.ids), True)
                staged = rows if schema is None else rows.to(schema)
                stored = stored_schema(name, staged.schema)
                change.add(name, write_rows(staged, change.place(name), change.mark, stored))
                writes.append(Write(table=name, schema=stored, has_days=False, replaces=None))
            change.commit(run_id, UPKEEP, writes)
            return replace(self, as_of=change.state_now())

    def _former(self, spark: SparkSession, name: str, *, is_kept: bool) -> DataFrame | None:
        """Return the rows of a table that is to be replaced, None for one without rows of other clusters.

        A damaged one must not keep its replacement out, so it counts as without rows unless it `is_kept`.
        """
        if self.cluster is None or not self.has(name):
            return None
        try:
            return self.of_all_clusters().read(spark, name)
        except TablesDamagedError as error:
            if is_kept:
                raise
            _log.warning("%s; rows of other clusters in it are gone, ask about these clusters again", error)
            return None

    def read_small(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a small table without Spark, none if it was never written."""
        schema = stored_schema(name)
        return [
            row
            for file in self.files(name)
            for row in parquet.read_table(source_of(file), schema=schema, partitioning=None).to_pylist()
        ]

    def change_small(
        self, run_id: str, name: str, changed: Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]]
    ) -> None:
        """Replace the rows of a small table by what a function makes of them, without Spark.

        The function is called while the tables are locked. Raises as `replace` does.
        """
        self._check_replaceable(name)
        schema = stored_schema(name)
        with self.transaction() as change:
            former = replace(self, as_of=change.state).read_small(name)
            rows = pa.Table.from_pylist(list(changed(former)), schema=schema)
            try:
                change.add(name, [write_file(change.place(name), new_name(change.mark), rows)])
            except OSError as error:
                raise TablesError(f"cannot write to `{self.place(name)}`: {reason_of(error)}") from error
            write = Write(table=name, schema=schema, has_days=False, replaces=None)
            change.commit(run_id, UPKEEP, [write])

    def _check_replaceable(self, name: str) -> None:
        if name in GROWING or name in (RUNS, INPUTS):
            raise TablesError(f"`{name}` is written by runs only")
        self.place(name)

    def has(self, name: str) -> bool:
        """Return whether a table was ever written."""
        return name in self._seen().versions

    def place(self, name: str) -> Place:
        """Return the folder of a table, which need not exist; raise `TablesError` for an invalid name."""
        if _NAME.fullmatch(name) is None:
            raise TablesError(f"`{name}` is not a name of a table, take small letters, digits and `_`")
        return self.folder / name

    def days(self, name: str) -> frozenset[str]:
        """Return the days (ISO dates) for which a table by day has files; raise `TablesError`."""
        return frozenset(file.day for file in self.snapshot(name) if file.day is not None)

    def recorded_rows(self) -> int:
        """Return how many rows of all clusters the tables by day have; raise as `state` does."""
        return sum(found.rows for name, found in self._seen().contents.items() if name in BY_DAY)

    def state(self) -> State:
        """Return the state that the last committed run left; raise `TablesDamagedError`, `TablesError`."""
        return read_state(self.folder)

    def _seen(self) -> State:
        """Return the state in which the tables are read."""
        return self.state() if self.as_of is None else self.as_of

    def inputs(self) -> Mapping[str, InputFile]:
        """Return the files that runs have read, by path; raise `TablesDamagedError`, `TablesError`."""
        return read_inputs(self.folder, self._seen()).files

    def known_inputs(self) -> tuple[InputFile, ...]:
        """Return these files, after the logs that gave way to others at their paths; raise likewise."""
        return read_inputs(self.folder, self._seen()).all()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Lock the tables and yield a transaction.

        Raises `TablesInUseError`, `TablesDamagedError` or `TablesError`.
        """
        with transaction(self.folder) as change:
            yield change


def rows_of(files: Sequence[DataFile]) -> int:
    """Return how many rows these files have."""
    return sum(file.rows for file in files)


def _narrowed(schema: StructType, columns: Collection[str]) -> StructType:
    """Return the fields of these columns and of `cluster`; raise `TablesError` for an unknown one."""
    unknown = sorted(set(columns) - set(schema.names))
    if unknown:
        raise TablesError(f"there is no column `{unknown[0]}`, take some of {', '.join(schema.names)}")
    return StructType([field for field in schema.fields if field.name in {CLUSTER, *columns}])


def _is_within(day: str | None, first_day: date | None, last_day: date | None) -> bool:
    if day is None:
        return False
    found = date.fromisoformat(day)
    return (first_day is None or first_day <= found) and (last_day is None or found <= last_day)
