"""Random roll-ups and ACLs, large enough that one run of Spark meets most shapes; and rows by hand."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.acl.forms import texts_of
from kustos.pipeline.queries.record import RecordCoverage
from kustos.pipeline.schemas import ACL_HISTORY_SCHEMA, ACL_SCHEMA, AUDIT_ROLLUP_SCHEMA

START = datetime(2026, 8, 1, tzinfo=UTC)
AS_OF = START + timedelta(days=120)

PRINCIPALS = ["User:alice", "User:bob", "User:carol", "User:root", "Group:ops"]
HOSTS = ["10.0.0.1", "10.0.0.9", "192.168.0.9"]
NAMES = ["pay.in", "pay.out", "orders", "logs", "*odd", "hardcode"]
OPERATIONS = ["READ", "WRITE", "DESCRIBE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"]

Row = dict[str, Any]


def acl(
    who: str,
    operation: str,
    kind: str,
    name: str,
    *,
    prefixed: bool = False,
    host: str = "*",
    deny: bool = False,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType[kind], name, PatternType.PREFIXED if prefixed else PatternType.LITERAL),
        AccessControlEntry(
            who, host, AclOperation[operation], AclPermissionType.DENY if deny else AclPermissionType.ALLOW
        ),
    )


def row(
    who: str,
    operation: str,
    name: str | None,
    *,
    kind: str = "TOPIC",
    day: int = 0,
    last: int | None = None,
    count: int = 1,
    decision: str = "ALLOWED",
    access: str = "ACCESS",
    host: str = "10.0.0.1",
    rule: AclBinding | str = "DefaultDeny",
) -> Row:
    """Return a row of a roll-up, first seen at 01:00 of a day and last seen at 23:00, or on a later day."""
    first = START + timedelta(days=day, hours=1)
    made: Row = dict.fromkeys(AUDIT_ROLLUP_SCHEMA.fieldNames())
    made |= {
        "day": first.date(),
        "principal": who,
        "host": host,
        "operation": operation,
        "resource_type": kind,
        "resource_name": name,
        "decision": decision,
        "access": access,
        "rule": rule_row(rule),
        "event_count": count,
        "reference_count": count,
        "first_time": first,
        "last_time": START + timedelta(days=day if last is None else last, hours=23),
        "hours": 1 << 1 | 1 << 23,
        "sample_event_id": f"{who}-{operation}-{name}-{day}-{host}",
    }
    return made


def rule_row(rule: AclBinding | str) -> Row:
    kind = rule if isinstance(rule, str) else "MatchingAcl"
    texts: dict[str, Any] = {} if isinstance(rule, str) else texts_of(rule)
    return {name: texts.get(name) for name in ("kind", *ACL_SCHEMA.fieldNames())} | {"kind": kind}


def rollup(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    return spark.createDataFrame(list(rows), AUDIT_ROLLUP_SCHEMA)


def whole_record(as_of: datetime = AS_OF, window_days: int = 90) -> RecordCoverage:
    """Return what a record without gaps covers, whatever the rows of a test are."""
    return RecordCoverage.of(
        (as_of.date() - timedelta(days=n) for n in range(2 * window_days)), as_of, window_days
    )


def history(spark: SparkSession, since: Sequence[tuple[AclBinding, int, int | None]]) -> DataFrame:
    """Return an `acl_history`: an ACL, the day from which it held and the day on which it ended."""
    rows = []
    for number, (binding, first, last) in enumerate(since):
        made: Row = {"acl_id": f"acl-{number}", **texts_of(binding)}
        made |= {"valid_from_offset": number, "valid_from_time": START + timedelta(days=first)}
        made |= {"valid_to_offset": None if last is None else 1000 + number}
        made |= {"valid_to_time": None if last is None else START + timedelta(days=last)}
        rows.append(made | {"is_in_first_snapshot": False})
    return spark.createDataFrame(rows, ACL_HISTORY_SCHEMA)


_ACL: Final[dict[str, Sequence[Any]]] = {
    "who": [*PRINCIPALS, "User:*"],
    "operation": [*OPERATIONS, "ALL"],
    "kind": ["TOPIC", "TOPIC", "GROUP"],
    "name": ["*", "pay.", "pay.in", "orders", "o", "logs", "*", "hard"],
    "prefixed": [False, True],
    "host": ["*", "*", "10.0.0.1", "10.0.0.0/24"],
    "deny": [False, False, False, True],
}
_ROW: Final[dict[str, Sequence[Any]]] = {
    "who": PRINCIPALS,
    "operation": OPERATIONS,
    "name": [*NAMES, None],
    "kind": ["TOPIC", "TOPIC", "GROUP"],
    "day": range(141),
    "count": range(1, 10),
    "decision": ["ALLOWED", "ALLOWED", "DENIED", "ERROR"],
    "access": ["ACCESS", "ACCESS", "LISTING", "PROBE"],
    "host": HOSTS,
}

acls = st.builds(acl, **{name: st.sampled_from(values) for name, values in _ACL.items()})
rows = st.builds(
    row,
    **{name: st.sampled_from(values) for name, values in _ROW.items()},
    rule=acls | st.sampled_from(["DefaultDeny", "SuperUser"]),
)
"""Rows whose recorded decision need not be that of any ACLs: what is reviewed may have changed since."""

acl_worlds = st.lists(acls, min_size=6, max_size=24, unique=True)
row_worlds = st.lists(rows, min_size=20, max_size=80)


def large_world(
    seed: int, *, row_count: int = 800, acl_count: int = 18
) -> tuple[list[Row], list[AclBinding]]:
    """Return rows and ACLs for a single job: hypothesis draws few rows, and many of them alike.

    In hundreds of rows, some fit the ACLs.
    """
    random = Random(seed)

    def chosen(choices: dict[str, Sequence[Any]]) -> dict[str, Any]:
        return {name: random.choice(values) for name, values in choices.items()}

    made = dict.fromkeys(acl(**chosen(_ACL)) for _ in range(acl_count))
    rules: list[AclBinding | str] = [*made, "DefaultDeny", "SuperUser"]
    return [row(**chosen(_ROW), rule=random.choice(rules)) for _ in range(row_count)], list(made)
