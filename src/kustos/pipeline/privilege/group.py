"""One group of rows, in a worker: Arrow in, the optimiser, Arrow out."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.privilege.ceiling import PrincipalCeiling
from kustos.pipeline.privilege.group_rows import DENIAL, USE
from kustos.pipeline.privilege.options import PrivilegeOptions
from kustos.pipeline.privilege.solver import least_privilege
from kustos.pipeline.privilege.values import (
    Denial,
    PrincipalRecommendation,
    Problem,
    RecommendedAcl,
    Unserved,
    UnservedUse,
    Use,
)

RECOMMENDED: Final = "RECOMMENDED"
UNSERVED: Final = "UNSERVED"
OVERRULED: Final = "OVERRULED"

GROUP_ROWS_MAX: Final = 2_000_000
"""Rows of one group that a worker takes, some 2 GB: names with one prefix are never split, however many."""

_READ: Final = ("parts", "kind", "host", "operation", "resource_type", "resource_name", "event_count")
_OVERRULED: Final = "a resource of the type must be allowed, so the question for any cannot stay denied"
_TEXT: Final = pa.string()
_COUNT: Final = pa.int64()
_ARROW_SCHEMA: Final = pa.schema(
    [
        ("outcome", _TEXT),
        ("resource_type", _TEXT),
        ("resource_name", _TEXT),
        ("pattern_type", _TEXT),
        ("principal", _TEXT),
        ("host", _TEXT),
        ("operation", _TEXT),
        ("permission_type", _TEXT),
        ("access_count", _COUNT),
        ("event_count", _COUNT),
        ("name_count", _COUNT),
        ("known_count", _COUNT),
        ("over_grant_count", _COUNT),
        ("host_count", _COUNT),
        ("examples", pa.list_(_TEXT)),
        ("reason", _TEXT),
    ]
)
"""RECOMMENDATIONS_SCHEMA as an Arrow schema."""

Row = tuple[Any, ...]


def solved_group(
    principal: str,
    batches: Iterable[pa.RecordBatch],
    options: PrivilegeOptions,
    *,
    ceiling: PrincipalCeiling | None = None,
    rows_max: int = GROUP_ROWS_MAX,
) -> pa.RecordBatch:
    """Return the rows of the table `recommendations` for one group of `group_rows.grouped_rows`.

    A group of more than `rows_max` rows is not solved, and all its uses are UNSERVED.
    """
    uses: list[Use] = []
    denials: list[Denial] = []
    known: dict[tuple[ResourceType, str], int] = {}
    operations = _EnumNames(AclOperation)
    types = _EnumNames(ResourceType)
    rows, parts = 0, 1
    too_many: list[Row] = []
    for batch in batches:
        rows += batch.num_rows
        columns = [batch.column(name).to_pylist() for name in _READ]
        if rows > rows_max:
            too_many.append(_too_much(principal, columns))
            continue
        for parts, kind, host, operation, resource_type, name, count in zip(*columns, strict=True):  # noqa: B007
            if kind == USE:
                uses.append(Use(host, operations[operation], types[resource_type], name, count))
            elif kind == DENIAL:
                denials.append(Denial(host, operations[operation], types[resource_type], name))
            else:
                known[types[resource_type], name] = count
    if too_many:
        too_many.append(_row_of_many(principal, len(uses), sum(use.event_count for use in uses)))
        return _batch(too_many)
    if parts > 1:
        options = replace(options, wildcard_share=None)
    answer = least_privilege(Problem(principal, tuple(uses), tuple(denials), known), options, ceiling=ceiling)
    return _batch(_rows(principal, answer))


class _EnumNames(dict[str, Any]):
    """Members of an enum by their names; any other text is UNKNOWN."""

    def __init__(self, members: Any) -> None:
        super().__init__(members.__members__)
        self._unknown = members.UNKNOWN

    def __missing__(self, name: str) -> Any:
        return self._unknown


def _rows(principal: str, answer: PrincipalRecommendation) -> list[Row]:
    rows = [_recommended(acl) for acl in answer.acls]
    rows += [_unserved(principal, unserved) for unserved in answer.unserved]
    for denial in answer.overruled:
        rows.append(_question(OVERRULED, principal, denial, 1, 0, _OVERRULED))
    return rows


def _recommended(acl: RecommendedAcl) -> Row:
    pattern, entry = acl.binding.pattern, acl.binding.entry
    return (
        RECOMMENDED,
        pattern.resource_type.name,
        pattern.name,
        pattern.pattern_type.name,
        entry.principal,
        entry.host,
        entry.operation.name,
        entry.permission_type.name,
        acl.access_count,
        acl.event_count,
        acl.name_count,
        acl.known_count,
        acl.over_grant_count,
        acl.host_count,
        list(acl.examples),
        acl.reason,
    )


def _unserved(principal: str, unserved: UnservedUse) -> Row:
    use = unserved.use
    return _question(UNSERVED, principal, use, 1, use.event_count, unserved.reason.value)


def _question(
    outcome: str, principal: str, question: Use | Denial, accesses: int, events: int, reason: str
) -> Row:
    kind, name, host, operation = (
        question.resource_type.name,
        question.name,
        question.host,
        question.operation.name,
    )
    counts = (accesses, events, 0, 0, 0, 0)
    return (outcome, kind, name, None, principal, host, operation, None, *counts, [], reason)


def _too_much(principal: str, columns: list[list[Any]]) -> Row:
    counts = [count for kind, count in zip(columns[1], columns[-1], strict=True) if kind == USE]
    return _row_of_many(principal, len(counts), sum(counts))


def _row_of_many(principal: str, accesses: int, events: int) -> Row:
    counts = (accesses, events, 0, 0, 0, 0)
    reason = Unserved.TOO_MUCH.value
    return (UNSERVED, None, None, None, principal, None, None, None, *counts, [], reason)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(_ARROW_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW_SCHEMA)
