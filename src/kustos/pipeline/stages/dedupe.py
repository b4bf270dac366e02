"""Which lines are copies of one another: the same result for any split of the input into runs.

Theory of operation. An event with an id of its own is the same event wherever the id occurs with the same
content on the same day. A line without one (Kafka's text, and every quarantined line) is identified by its
log and its text: the n-th equal line of a log is the same line in each copy of the log. So a log that grew,
was renamed, moved or compressed gives no line twice, real repetitions within a millisecond count, and equal
lines of two brokers are two events. Lines of a topic have a position instead.

To compare lines Spark must shuffle them, which costs more than to read them; yet nearly no line has a copy.
So `repeated_keys` compares a few bytes of each line's key (`identified`), and only lines with such a key are
shuffled: `resolve_copies`. All others take `resolve_alone`. For a run of few lines `verdicts` gives the same
outcomes.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DateType, StringType, StructField, StructType

from kustos.pipeline.schemas import ANY_EVENT_SCHEMA
from kustos.pipeline.stages.by_batch import by_batch
from kustos.pipeline.stages.generated_ids import DIGEST_CHARACTERS, EVENT_ID_BEGIN, LINE_ID_BEGIN, line_digest
from kustos.pipeline.stages.line_columns import PARSED_SCHEMA

IDENTIFIED_SCHEMA: Final = StructType(
    [
        *PARSED_SCHEMA.fields,
        StructField("day", DateType()),
        StructField("brings_id", BooleanType()),
        StructField("line_key", StringType()),
        StructField("is_counted", BooleanType()),
    ]
)
"""A parsed line with `day`, its date in UTC. `brings_id`: its text has an event id. `line_key`: the key of a
line without one, else null. `is_counted`: equal lines of its file are numbered."""

IDENTIFIED: Final = to_arrow_schema(IDENTIFIED_SCHEMA, timezone="UTC")

EVENT, DUPLICATE, QUARANTINED = "event", "duplicate", "quarantined"

CONFLICT: Final = "event_id_conflict"

MILLISECONDS_OF_A_DAY: Final = 86_400_000

_KEY_COLUMNS: Final = ("line_key", "is_counted", "log", "position")

_KEPT: Final = tuple(name for name in IDENTIFIED_SCHEMA.fieldNames() if name not in _KEY_COLUMNS)


def identified(parsed: pa.RecordBatch) -> pa.RecordBatch:
    """Return lines (PARSED_SCHEMA) with their keys, as IDENTIFIED_SCHEMA.

    The key is an event's own id, for any other line a digest of log and text.
    """
    event_ids, positions = parsed["event_id"], parsed["position"]
    brings_id = event_ids.is_valid()
    keys: pa.Array = pa.nulls(parsed.num_rows, pa.string())
    if event_ids.null_count:
        others = pc.invert(brings_id)
        unnamed = parsed.filter(others)
        generated = (
            EVENT_ID_BEGIN + line_digest(*each)
            for each in zip(
                unnamed["log"].to_pylist(),
                unnamed["position"].to_pylist(),
                unnamed["line"].cast(pa.binary()).to_pylist(),
                strict=True,
            )
        )
        keys = pc.replace_with_mask(keys, others, pa.array(generated, pa.string()))
    columns = [
        parsed["time"].cast(pa.date32()),
        brings_id,
        keys,
        pc.and_not(positions.is_null(), brings_id),
    ]
    return pa.RecordBatch.from_arrays([*parsed.columns, *columns], schema=IDENTIFIED)


def day_of(time_ms: Column) -> Column:
    """Return the date in UTC, whatever the session's time zone is."""
    return sql.date_from_unix_date(sql.floor(time_ms / MILLISECONDS_OF_A_DAY).cast("int"))


def content() -> Column:
    """Return all fields of an event, for comparison."""
    return sql.struct(*ANY_EVENT_SCHEMA.fieldNames())


def deduplicate(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with `outcome`, `day`, `line_id`, and an event id for every event.

    An event id that comes again on its day with another content is quarantined: one of the two is a forgery
    or a fault, and dropping it would hide that.
    """
    return parsed.transform(identify).transform(resolve_copies)


def identify(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with the key of each line, as IDENTIFIED_SCHEMA."""
    return by_batch(parsed, identified, IDENTIFIED_SCHEMA)


def repeated_keys(identified: DataFrame) -> DataFrame:
    """Return as `key_hash` the hashes of keys that more than one line may have.

    It includes hashes that two keys share, so that a collision cannot hide a copy.
    """
    hashes = identified.select(_key_hash().alias("key_hash"))
    return hashes.groupBy("key_hash").count().filter("count > 1").select("key_hash")


def of_keys(identified: DataFrame, keys: DataFrame, *, others: bool = False) -> DataFrame:
    """Return the lines of these `repeated_keys`, or all others."""
    marked = identified.withColumn("key_hash", _key_hash())
    return marked.join(keys, "key_hash", "left_anti" if others else "left_semi").drop("key_hash")


def resolve_alone(identified: DataFrame) -> DataFrame:
    """Return lines without copies with their outcomes, as `resolve_copies` does, without a comparison."""
    outcome = sql.when(sql.col("reason").isNull(), sql.lit(EVENT)).otherwise(sql.lit(QUARANTINED))
    return identified.withColumn("outcome", outcome).transform(_named, sql.col("reason"), sql.lit("1"))


def resolve_copies(identified: DataFrame) -> DataFrame:
    """Return the lines with their outcomes, each compared with all lines of the same key."""
    in_one_file = Window.partitionBy("key", "source_file").orderBy("line")
    occurrence = sql.when(sql.col("is_counted"), sql.row_number().over(in_one_file)).otherwise(sql.lit(1))
    numbered = identified.withColumn("key", _key()).repartition("key").withColumn("occurrence", occurrence)
    copies = Window.partitionBy("key", "day", "occurrence").orderBy("source_file", "line", "log", "position")
    first = sql.first(content()).over(copies.rowsBetween(Window.unboundedPreceding, 0))
    ranked = numbered.withColumns({"copy": sql.row_number().over(copies), "first": first})
    is_event = sql.col("reason").isNull()
    outcome = (
        sql.when(sql.col("copy") == 1, sql.when(is_event, sql.lit(EVENT)).otherwise(sql.lit(QUARANTINED)))
        .when(content().eqNullSafe(sql.col("first")), sql.lit(DUPLICATE))
        .otherwise(sql.lit(QUARANTINED))
    )
    judged = ranked.withColumn("outcome", outcome)
    is_conflict = is_event & (sql.col("outcome") == QUARANTINED)
    reason = sql.when(is_conflict, sql.lit(CONFLICT)).otherwise(sql.col("reason"))
    return judged.transform(_named, reason, sql.col("occurrence").cast("string"))


def _named(rows: DataFrame, reason: Column, occurrence: Column) -> DataFrame:
    """Return the rows with the ids that follow from their keys, without the key columns."""
    numbered = sql.concat("line_key", sql.lit("-"), occurrence)
    ids = {
        "event_id": sql.when(sql.col("reason").isNull(), sql.coalesce("event_id", numbered)),
        "reason": reason,
    }
    kept = [ids.get(name, sql.col(name)).alias(name) for name in (*_KEPT, "outcome")]
    line_id = sql.when(sql.col("brings_id"), sql.concat(sql.lit(LINE_ID_BEGIN), _digest())).otherwise(
        numbered
    )
    return rows.select(*kept, line_id.alias("line_id"))


def _key() -> Column:
    return sql.coalesce("event_id", "line_key")


def _key_hash() -> Column:
    return sql.xxhash64(_key())


def _digest() -> Column:
    # bytes, not characters: different invalid UTF-8 must not become equal by decoding
    line = sql.rtrim(sql.coalesce("line", sql.lit("")), sql.lit("\r"))
    place = sql.coalesce(sql.col("position").cast("string"), sql.lit(""))
    parts = (part.cast("binary") for part in (sql.col("log"), sql.lit("\n"), place, sql.lit("\n"), line))
    return sql.sha2(sql.concat(*parts), 256).substr(1, DIGEST_CHARACTERS)
