"""Least privilege of everybody: the table `recommendations` of the table `audit_rollup`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.pipeline.privilege.group import RECOMMENDED, solved_group
from kustos.pipeline.privilege.grouping import GROUP, GROUP_ACCESSES, grouped_rows
from kustos.pipeline.privilege.legitimate import EVERY_USE, Legitimate, distinct_accesses, known_names
from kustos.pipeline.privilege.options import DEFAULT_OPTIONS, PrivilegeOptions
from kustos.pipeline.schemas import ACL_SCHEMA, RECOMMENDATIONS_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def recommend(
    rollup: "DataFrame",
    options: PrivilegeOptions = DEFAULT_OPTIONS,
    legitimate: Legitimate = EVERY_USE,
    *,
    names: "DataFrame | None" = None,
    group_accesses: int = GROUP_ACCESSES,
) -> "DataFrame":
    """Return the table `recommendations`: for each principal the cheapest ACLs for all that it needs.

    They allow nothing that was denied to it. `names` (`resource_type`, `resource_name`) are the known names
    that over-grant is counted in; without them those that the roll-up knows (see `known_names`).
    """
    known = (
        known_names(rollup) if names is None else names.select("resource_type", "resource_name").distinct()
    )
    return recommend_for(distinct_accesses(rollup, legitimate), known, options, group_accesses=group_accesses)


def recommend_for(
    accesses: "DataFrame",
    names: "DataFrame",
    options: PrivilegeOptions = DEFAULT_OPTIONS,
    *,
    group_accesses: int = GROUP_ACCESSES,
) -> "DataFrame":
    """Return the same for `distinct_accesses` and known names, each of them once."""

    def solve(key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield solved_group(key[0].as_py() or "", batches, options)

    rows = grouped_rows(accesses, names, options, group_accesses=group_accesses)
    return rows.groupBy(*GROUP).applyInArrow(solve, RECOMMENDATIONS_SCHEMA)


def recommended_bindings(recommendations: "DataFrame") -> list[AclBinding]:
    """Return the recommended ACLs, in order: an action, which brings them to where it is called."""
    table = recommendations.filter(f"outcome = '{RECOMMENDED}'").select(*ACL_SCHEMA.fieldNames()).toArrow()
    bindings = [
        AclBinding(
            ResourcePattern(ResourceType[kind], name, PatternType[how]),
            AccessControlEntry(principal, host, AclOperation[operation], AclPermissionType[permission]),
        )
        for kind, name, how, principal, host, operation, permission in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        )
    ]
    return sorted(bindings, key=_order)


def _order(binding: AclBinding) -> tuple[Any, ...]:
    pattern, entry = binding.pattern, binding.entry
    return (
        entry.principal,
        pattern.resource_type,
        pattern.name,
        pattern.pattern_type,
        entry.host,
        entry.operation,
    )
