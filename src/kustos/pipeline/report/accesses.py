"""Accesses on the page: rows of `access_counts`, and the heat map of principals and resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kustos.pipeline.report.answers import utc


@dataclass(frozen=True, slots=True)
class AccessRow:
    """One row of `access_counts`; `attempts` leaves out what was only filtered from a list."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str | None
    decision: str
    event_count: int
    attempts: int
    first_time: datetime
    last_time: datetime


ResourceLabel = tuple[str, str | None] | None
"""Type and name, None for all others."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Allowed and denied by (principal, resource); None stands for all others, listed last."""

    principals: tuple[str | None, ...]
    resources: tuple[ResourceLabel, ...]
    cells: Mapping[tuple[str | None, ResourceLabel], tuple[int, int]]


def access_row(row: Any) -> AccessRow:
    """Return a row of `access_counts`, but for `probe_count`, and its `place` if it has one."""
    values = row.asDict()
    listing = values.pop("listing_count")
    values.pop("cluster")
    values.pop("place", None)
    values["attempts"] = values["event_count"] - listing
    return AccessRow(**{**values, "first_time": utc(row["first_time"]), "last_time": utc(row["last_time"])})


def matrix_of(rows: Sequence[Any]) -> Matrix:
    """Return the heat map of the rows of `access_matrix`."""
    cells: dict[tuple[str | None, ResourceLabel], tuple[int, int]] = {}
    by_principal: dict[str | None, int] = {}
    by_resource: dict[ResourceLabel, int] = {}
    for row in rows:
        resource = None if row["other_resource"] else (row["resource_type"], row["resource_name"])
        principal = None if row["other_principal"] else row["principal"]
        cells[principal, resource] = (row["allowed"], row["denied"])
        total = row["allowed"] + row["denied"]
        by_principal[principal] = by_principal.get(principal, 0) + total
        by_resource[resource] = by_resource.get(resource, 0) + total
    principals = sorted(by_principal, key=lambda name: (name is None, -by_principal[name], name or ""))
    resources = sorted(by_resource, key=lambda label: (label is None, -by_resource[label], str(label)))
    return Matrix(tuple(principals), tuple(resources), cells)
