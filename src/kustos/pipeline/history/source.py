"""The data source `kafka_metadata`: ACLs, SCRAM credentials and delegation tokens as they were, for Spark.

`spark.read.format("kafka_metadata").option("path", ...).load()` reads a metadata directory, Kafka's or
kustos', itself or its partition, or one snapshot, or a segment that holds its own beginning. Options:

- `table`: `acls` (the default), `scram_credentials`, `delegation_tokens`, or `range`
- `ignoreTornTail`: `true` to ignore an unfinished write at the end; a truncated copy has one too
- `endOffset`: read up to this offset, not including it. A controller or broker of a quorum may hold records
  that are not committed yet at the end of its log: give the high watermark (`DescribeQuorum`) there

The files must lie where the tasks run; on a cluster on a shared file system. A log is one task: its records
count in their order. Secrets (salts, keys, HMACs) are in no row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.schemas import (
    ACL_HISTORY_SCHEMA,
    ACL_SCHEMA,
    DELEGATION_TOKEN_HISTORY_SCHEMA,
    METADATA_RANGE_SCHEMA,
    SCRAM_CREDENTIAL_HISTORY_SCHEMA,
)
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.task_errors import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kustos.metadata.inspection import Moment

FORMAT: Final = "kafka_metadata"
TABLES: Final = {
    "acls": ACL_HISTORY_SCHEMA,
    "scram_credentials": SCRAM_CREDENTIAL_HISTORY_SCHEMA,
    "delegation_tokens": DELEGATION_TOKEN_HISTORY_SCHEMA,
    "range": METADATA_RANGE_SCHEMA,
}
"""The values of the option `table`, with their schemas."""
ROWS_PER_BATCH: Final = 8192
"""Rows handed to Spark at a time, some 2 MB."""

_OPTIONS: Final = frozenset({"path", "table", "endoffset", "ignoretorntail"})


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """The options of a read, parsed."""

    path: str
    table: str = "acls"
    end_offset: int | None = None
    ignore_torn_tail: bool = False

    @classmethod
    def of(cls, options: dict[str, str]) -> "HistoryOptions":
        """Return the parsed options of a reader; raise `MetadataHistoryError` for an invalid one."""
        values = {key.lower(): value for key, value in options.items()}
        unknown = sorted(set(values) - _OPTIONS)
        if unknown:
            raise MetadataHistoryError(
                f"option `{unknown[0]}` is not known to `{FORMAT}`, give `path`, `table`, `endOffset` "
                "or `ignoreTornTail`"
            )
        path, table = values.get("path", ""), values.get("table", "acls")
        if not path:
            raise MetadataHistoryError(f"`{FORMAT}` lacks the option `path`, give the metadata directory")
        if table not in TABLES:
            raise MetadataHistoryError(f"table `{table}` is not known, give one of {', '.join(TABLES)}")
        end = values.get("endoffset")
        if end is not None and not (end.isascii() and end.isdigit()):
            raise MetadataHistoryError(f"option `endOffset` is `{end}`, give an offset such as `1234`")
        ignored = values.get("ignoretorntail", "false").lower()
        if ignored not in {"true", "false"}:
            raise MetadataHistoryError(f"option `ignoreTornTail` is `{ignored}`, give `true` or `false`")
        return cls(path.removeprefix("file://"), table, None if end is None else int(end), ignored == "true")


class KafkaMetadataSource(DataSource):
    """The data source; `register` makes it known to a session."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `format` takes."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the schema of the requested table."""
        return TABLES[HistoryOptions.of(dict(self.options)).table]

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader; raise `MetadataHistoryError` for invalid options or another schema."""
        options = HistoryOptions.of(dict(self.options))
        if schema != TABLES[options.table]:
            raise MetadataHistoryError(f"the table `{options.table}` has a schema of its own, give none")
        return _Reader(options)


class _Reader(DataSourceReader):
    """Reads one log, in one task."""

    def __init__(self, options: HistoryOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002, there is but one
        """Yield the rows as Arrow record batches."""
        yield from record_batches(self._options)


def record_batches(options: HistoryOptions) -> Iterator[Any]:
    """Yield the rows of a table as Arrow record batches; raise `MetadataHistoryError`."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from kustos.metadata import MetadataError
    from kustos.pipeline.history.lives import rows_of
    from kustos.runtime import FileSystemStorage, reason_of

    schema = to_arrow_schema(TABLES[options.table], timezone="UTC")
    try:
        rows = rows_of(
            Path(options.path),
            options.table,
            FileSystemStorage(),
            options.end_offset,
            ignore_torn_tail=options.ignore_torn_tail,
        )
        while some := list(islice(rows, ROWS_PER_BATCH)):
            columns = zip(*some, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    except MetadataError as error:
        raise MetadataHistoryError(str(error)) from error
    except OSError as error:
        raise MetadataHistoryError(f"`{options.path}` cannot be read: {reason_of(error)}") from error


def history_range(path: str | Path, end_offset: int | None = None) -> dict[str, Any]:
    """Return the row of the table `range` as a mapping, read here, without Spark.

    Raises `MetadataHistoryError`.
    """
    options = HistoryOptions(str(path), "range", end_offset)
    rows: list[dict[str, Any]] = [row for batch in record_batches(options) for row in batch.to_pylist()]
    return rows[0]


def register(spark: "SparkSession") -> None:
    """Make the format `kafka_metadata` known to a session, classic or Connect."""
    spark.dataSource.register(KafkaMetadataSource)


def read_history(
    spark: "SparkSession", path: str | Path, table: str = "acls", *, end_offset: int | None = None
) -> DataFrame:
    """Return a table of a metadata log's history; raise `MetadataHistoryError` for an unknown table.

    `table` and `end_offset` as the options `table` and `endOffset`. One task reads the log, with each action;
    within `task_errors` a query over a log that cannot be read raises `MetadataHistoryError`.
    """
    given = {"path": str(path), "table": table, "endOffset": "" if end_offset is None else str(end_offset)}
    options = HistoryOptions.of({name: value for name, value in given.items() if value})
    return numbered_tasks(spark, 1, lambda _: record_batches(options), TABLES[table])


def acls_as_of(history: DataFrame, moment: str | int | datetime) -> DataFrame:
    """Return the ACLs in force at a moment, as ACL_SCHEMA, from ACL_HISTORY_SCHEMA.

    `moment`: an offset (the state after its record), or a time: ISO 8601 text, UTC unless it says
    otherwise, or a datetime with a time zone. Raises `MetadataHistoryError` for an invalid moment; a moment
    before the history begins fails the query.
    """
    parsed = _parsed(moment)
    if parsed.offset is not None:
        column, bound = "offset", sql.lit(parsed.offset)
    else:
        column, bound = "time", sql.timestamp_millis(sql.lit(parsed.time_ms))
    begins, ends = sql.col(f"valid_from_{column}"), sql.col(f"valid_to_{column}")
    refused = refusal(MetadataHistoryError(f"the history begins after {parsed.text}")).cast("boolean")
    in_force = (begins <= bound) & (ends.isNull() | (ends > bound))
    # one condition: of two, Spark may evaluate the other first and filter out the row that must raise
    is_too_early = sql.col("is_in_first_snapshot") & (begins > bound)
    return history.where(sql.when(is_too_early, refused).otherwise(in_force)).select(*ACL_SCHEMA.fieldNames())


def _parsed(moment: str | int | datetime) -> "Moment":
    from kustos.metadata.inspection import Moment  # its codecs take long to import

    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise MetadataHistoryError(f"`{moment}` has no time zone, give one, such as UTC")
        utc = moment.astimezone(UTC)
        return Moment(utc.isoformat(), time_ms=int(utc.timestamp() * 1000))
    try:
        return Moment.parse(str(moment))
    except ValueError as error:
        raise MetadataHistoryError(str(error)) from None
