"""A month of an estate as roll-up rows: principals by Zipf's law, families of names, some of it denied.

A principal belongs to a team. It uses a share of the names of some families, most of its own team's, from a
few hosts, with one operation a family or two. Some accesses appear only after the twentieth day: what a
recommendation of the first twenty days is worth then can be told.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow as pa
from pyarrow import parquet

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

FIRST_DAY: Final = date(2026, 10, 1)
DAYS: Final = 30
LATER: Final = 20
"""Days that a recommendation learns from, where the rest of the month tells what it is worth."""

TEAMS: Final = 80
KINDS: Final = ("orders", "payments", "events", "audit", "state", "commands", "metrics", "dead-letters")
FAMILY_NAMES: Final = 60
ROW_GROUP: Final = 200_000
DENIED_SHARE: Final = 0.01
DAYS_EACH_MEAN: Final = 3

_EPOCH_DAY: Final = (FIRST_DAY - date(1970, 1, 1)).days
_DAY_US: Final = 86_400_000_000
_RULE: Final = pa.struct(
    [(name, pa.string()) for name in ("kind", "resource_type", "resource_name", "pattern_type", "principal")]
    + [(name, pa.string()) for name in ("host", "operation", "permission_type")]
)
_TIME: Final = pa.timestamp("us", tz="UTC")

Access = tuple[str, str, str, str, bool, int, int, int]
"""host, operation, resource type, name, whether allowed, first day, days with an event, events a day"""


@dataclass(frozen=True, slots=True)
class Estate:
    """How large: principals, and distinct accesses of all of them."""

    principals: int
    accesses: int
    seed: int = 20261121

    def sizes(self) -> list[int]:
        """Return the accesses of each principal: by Zipf's law, the largest with a hundredth or so."""
        weights = 1 / (numpy.arange(self.principals) + 20.0) ** 0.9
        return [max(20, int(size)) for size in weights / weights.sum() * self.accesses]

    def accesses_of(self, number: int, size: int) -> list[Access]:
        """Return the accesses of one principal, each once."""
        random = numpy.random.default_rng([self.seed, number])
        team = number % TEAMS
        hosts = [f"10.{team}.{number % 200}.{host}" for host in range(1, int(random.integers(2, 12)))]
        found: dict[tuple[str, str, str, str], Access] = {}
        family = 0
        while len(found) < size and family < 4 * TEAMS * len(KINDS):
            owner = team if random.random() < 0.6 else int(random.integers(TEAMS))
            kind = KINDS[int(random.integers(len(KINDS)))]
            family += 1
            prefix = f"team{owner:02d}.{kind}-"
            is_group = random.random() < 0.15
            operation = "READ" if is_group or random.random() < 0.65 else "WRITE"
            share = float(random.choice([0.1, 0.3, 0.6, 1.0]))
            allowed = random.random() >= DENIED_SHARE * 4
            for name in random.permutation(FAMILY_NAMES)[: max(1, int(FAMILY_NAMES * share))]:
                is_allowed = allowed or random.random() < 0.75
                days = min(DAYS, int(random.geometric(1 / DAYS_EACH_MEAN)))
                first = int(random.integers(DAYS - days + 1)) if random.random() < 0.3 else 0
                for host in hosts:
                    if len(found) >= size or random.random() < 0.3:
                        continue
                    asked = (host, operation, "GROUP" if is_group else "TOPIC", f"{prefix}{name:03d}")
                    found.setdefault(asked, (*asked, is_allowed, first, days, 1 + int(random.pareto(1.2))))
        return list(found.values())

    def todays_acls(self) -> Iterator[AclBinding]:
        """Yield the ACLs of today, which allow what was allowed and nothing that was denied.

        Most stand for a whole family, some of them only from the team's addresses; of a family of which
        something was denied each name that was allowed has its own.
        """
        for number, size in enumerate(self.sizes()):
            found = self.accesses_of(number, size)
            asked = [(operation, kind, name, is_it) for _, operation, kind, name, is_it, *_ in found]
            denied = {(operation, kind, _family(name)) for operation, kind, name, is_it in asked if not is_it}
            uses = {(operation, kind, name) for operation, kind, name, is_it in asked if is_it}
            patterns = {
                (operation, kind, name if (operation, kind, _family(name)) in denied else _family(name))
                for operation, kind, name in uses
            }
            for place, (operation, kind, name) in enumerate(sorted(patterns)):
                how = PatternType.PREFIXED if name.endswith("-") else PatternType.LITERAL
                host = f"10.{number % TEAMS}.0.0/16" if place % 5 == 0 else "*"
                yield AclBinding(
                    ResourcePattern(ResourceType[kind], name, how),
                    AccessControlEntry(
                        f"User:app-{number:04d}", host, AclOperation[operation], AclPermissionType.ALLOW
                    ),
                )

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield every name there is, used or not: type and name."""
        for team in range(TEAMS):
            for kind in KINDS:
                for number in range(FAMILY_NAMES):
                    for resource_type in ("TOPIC", "GROUP"):
                        yield resource_type, f"team{team:02d}.{kind}-{number:03d}"


def _family(name: str) -> str:
    """Return the beginning that the names of a family share."""
    return name.rpartition("-")[0] + "-"


def write(estate: Estate, folder: Path) -> tuple[int, int]:
    """Write the roll-up and the known names as Parquet; return accesses and rows."""
    folder.mkdir(parents=True, exist_ok=True)
    accesses = rows = 0
    writer: Any = None
    pending: list[tuple[str, Access]] = []
    for number, size in enumerate(estate.sizes()):
        pending += [(f"User:app-{number:04d}", access) for access in estate.accesses_of(number, size)]
        if len(pending) < ROW_GROUP // DAYS_EACH_MEAN and number + 1 < estate.principals:
            continue
        table = _table(pending)
        accesses, rows, pending = accesses + len(pending), rows + table.num_rows, []
        if writer is None:
            writer = parquet.ParquetWriter(folder / "rollup.parquet", table.schema)
        writer.write_table(table)
    writer.close()
    types, names = zip(*estate.names(), strict=True)
    parquet.write_table(
        pa.table({"resource_type": list(types), "resource_name": list(names)}), folder / "names.parquet"
    )
    return accesses, rows


def _table(pending: list[tuple[str, Access]]) -> pa.Table:
    repeats = numpy.array([access[6] for _, access in pending])
    which = numpy.repeat(numpy.arange(len(pending)), repeats)
    starts = numpy.repeat(numpy.cumsum(repeats) - repeats, repeats)
    first = numpy.array([access[5] for _, access in pending])[which]
    day = _EPOCH_DAY + first + (numpy.arange(len(which)) - starts)
    count = numpy.array([access[7] for _, access in pending])[which]
    take = pa.array(which)

    def column(values: list[str]) -> pa.Array:
        return pa.array(values).take(take)

    allowed = [access[4] for _, access in pending]
    kinds = column(["MatchingAcl" if is_allowed else "DefaultDeny" for is_allowed in allowed])
    nothing = pa.nulls(len(which), pa.string())
    time = pa.array(day * _DAY_US + 8 * 3_600_000_000).cast(_TIME)
    return pa.table(
        {
            "day": pa.array(day.astype("int32")).cast(pa.date32()),
            "principal": column([principal for principal, _ in pending]),
            "host": column([access[0] for _, access in pending]),
            "operation": column([access[1] for _, access in pending]),
            "resource_type": column([access[2] for _, access in pending]),
            "resource_name": column([access[3] for _, access in pending]),
            "decision": column(["ALLOWED" if is_allowed else "DENIED" for is_allowed in allowed]),
            "access": pa.array(["ACCESS"]).take(pa.array(numpy.zeros(len(which), dtype="int32"))),
            "rule": pa.StructArray.from_arrays([kinds, *[nothing] * 7], fields=list(_RULE)),
            "event_count": pa.array(count),
            "reference_count": pa.array(count),
            "first_time": time,
            "last_time": time,
            "hours": pa.array(numpy.full(len(which), 1 << 8, dtype="int32")),
            "sample_event_id": nothing,
        }
    )
