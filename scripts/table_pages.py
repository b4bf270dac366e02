"""The reference page of the pipeline's tables: each column with its type, meaning and unit."""

from collections.abc import Iterator
from typing import Final

from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from kustos.pipeline.schemas import ACL_SCHEMA, RULE_FIELDS, RULE_SCHEMA, meaning_of, unit_of
from kustos.pipeline.tables.layout import RUNS, TABLES, TableLayout
from scripts.pages import page, table

_HEAD: Final = ("column", "type", "meaning", "unit")


def pipeline_tables() -> str:
    """Return the page of the tables."""
    overview = [(f"[`{one.name}`](#{one.name})", one.meaning, _writers(one)) for one in TABLES.values()]
    return page(
        "# Tables of the pipeline",
        "<!-- made from the declarations in `kustos.pipeline.tables.layout`; do not edit -->",
        "How to fill and read them: [keep tables of access](../how-to/pipeline-tables.md). The "
        "comments of columns in Delta's logs, which `DESCRIBE TABLE` shows, are the same texts.",
        table(("table", "rows", "written by"), overview),
        *(part for one in TABLES.values() for part in _section(one)),
        "## Structs",
        "A `rule` is the rule that decided:",
        table(("field", "type", "meaning"), [_field(field) for field in _struct(RULE_SCHEMA)]),
        "An `acl` has the same fields but `kind`.",
    )


def _section(one: TableLayout) -> Iterator[str | list[str]]:
    yield f"## `{one.name}`"
    key = ", ".join(f"`{name}`" for name in one.key)
    facts = [one.meaning, f"Partition: {one.partition.value}."]
    facts += [f"Key: {key}."] if key else []
    yield " ".join(facts) + f" If it is damaged: {one.loss.value}."
    yield table(_HEAD, [_row(one.name, field) for field in one.schema.fields])


def _row(name: str, field: StructField) -> tuple[str, ...]:
    unit = unit_of(field.name, field.dataType)
    return f"`{field.name}`", _type(field.dataType), meaning_of(name, field.name), unit


def _field(field: StructField) -> tuple[str, ...]:
    return f"`{field.name}`", _type(field.dataType), RULE_FIELDS[field.name]


def _struct(kind: DataType) -> list[StructField]:
    assert isinstance(kind, StructType)
    return kind.fields


def _type(kind: DataType) -> str:
    if kind == ACL_SCHEMA:
        return "[acl](#structs)"
    if kind == RULE_SCHEMA:
        return "[rule](#structs)"
    if isinstance(kind, ArrayType):
        return f"array of {_type(kind.elementType)}"
    return kind.simpleString()


def _writers(one: TableLayout) -> str:
    if one.name == RUNS:
        return "every commit"
    return ", ".join(f"`kustos pipeline {name}`" for name in one.writers)
