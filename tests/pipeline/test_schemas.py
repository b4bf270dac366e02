"""Spark's schema is the table of audit fields, nothing else."""

from pyspark.sql.types import StructType

from kustos.authorizer.audit.fields import AUDIT_FIELDS
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, EVENT_SCHEMA, REQUIRED_FIELDS


def _dotted(struct: StructType, prefix: str = "") -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    for field in struct.fields:
        if isinstance(field.dataType, StructType):
            found += _dotted(field.dataType, f"{prefix}{field.name}.")
        else:
            found.append((prefix + field.name, field.dataType.simpleString(), field.nullable))
    return found


def test_every_audit_field_is_in_the_schema_once_in_order_with_its_type() -> None:
    types = {"timestamp_ms": "bigint", "long": "bigint"}
    expected = [(f.name, types.get(f.kind, f.kind), f.nullable) for f in AUDIT_FIELDS]
    assert _dotted(EVENT_SCHEMA) == expected


def test_the_deciding_rule_is_a_struct_and_required() -> None:
    assert isinstance(EVENT_SCHEMA["rule"].dataType, StructType)
    assert not EVENT_SCHEMA["rule"].nullable
    assert "rule.kind" in REQUIRED_FIELDS


def test_the_table_adds_only_time_source_cluster_and_conflict() -> None:
    assert AUDIT_EVENTS_SCHEMA.fieldNames() == [
        *EVENT_SCHEMA.fieldNames(),
        "time",
        "source_format",
        "source_file",
        "cluster",
        "conflicting_file",
    ]
