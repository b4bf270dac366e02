"""What people say about anomalies: acknowledged by whom, when and why. Needs no Spark."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.errors import TriageError
from kustos.pipeline.short_ids import ids_of_beginnings

if TYPE_CHECKING:
    from kustos.pipeline.tables import Tables

TABLE: Final = "anomaly_states"

REASON_CHARACTERS_MAX: Final = 1_000
"""A sentence or a few; the rest belongs into a ticket."""
NAME_CHARACTERS_MAX: Final = 200

_SEVERITIES: Final = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}

State = dict[str, Any]
"""A row of `anomaly_states`."""


def stored_states(tables: "Tables") -> list[State]:
    """Return the rows of `anomaly_states`, the gravest and newest first; raise what `Tables.files` raises.

    Those of the cluster that the tables are narrowed to, or of all.
    """
    rows = tables.read_small(TABLE)
    if tables.cluster is not None:
        rows = [row for row in rows if (row["cluster"] or "") in tables.cluster.ids]
    return sorted(
        rows,
        key=lambda row: (
            _SEVERITIES.get(row["severity"], len(_SEVERITIES)),
            -row["last_day"].toordinal(),
            -row["score"],
            row["anomaly_id"],
        ),
    )


def acknowledge(
    tables: "Tables", beginnings: Sequence[str], *, by: str, reason: str, at: datetime
) -> list[State]:
    """Note that somebody knows of these anomalies, and return their rows.

    A HIGH one is open again when it is seen on another day; any, when it comes back after it was resolved.
    Raises `TriageError`, also for an anomaly that another person acknowledged and that is not reopened, and
    what `Tables.change_small` raises.
    """
    for what, text, most in (("by", by, NAME_CHARACTERS_MAX), ("reason", reason, REASON_CHARACTERS_MAX)):
        if not text.strip() or len(text) > most:
            raise TriageError(f"`{what}` of an acknowledgement has 1 to {most} characters")
    said = {"acknowledged_by": by, "acknowledged_at": at, "acknowledged_reason": reason}

    def change(row: State) -> State:
        if row["state"] == "ACKNOWLEDGED" and row["acknowledged_by"] != by:
            raise TriageError(
                f"`{row['acknowledged_by']}` has acknowledged anomaly `{row['anomaly_id']}`, reopen it first"
            )
        state = "ACKNOWLEDGED" if row["state"] == "OPEN" else row["state"]
        return row | said | {"acknowledged_day": row["last_day"], "state": state}

    return _changed(tables, beginnings, change)


def reopen(tables: "Tables", beginnings: Sequence[str]) -> list[State]:
    """Take back what was said about these anomalies, and return their rows; raise as `acknowledge` does."""
    nothing = dict.fromkeys(("acknowledged_by", "acknowledged_at", "acknowledged_reason", "acknowledged_day"))

    def change(row: State) -> State:
        return row | nothing | {"state": "SUPPRESSED" if row["state"] == "SUPPRESSED" else "OPEN"}

    return _changed(tables, beginnings, change)


def _changed(tables: "Tables", beginnings: Sequence[str], change: Callable[[State], State]) -> list[State]:
    made: list[State] = []

    def rows_after(rows: list[State]) -> list[State]:
        known = [row["anomaly_id"] for row in rows]
        where = "`kustos pipeline anomalies list`"
        ids = ids_of_beginnings(known, beginnings, "anomalies", TriageError, where)
        after = [change(row) if row["anomaly_id"] in ids else row for row in rows]
        made.extend(row for row in after if row["anomaly_id"] in ids)
        return after

    if not tables.has(TABLE):
        raise TriageError("there are no anomalies yet, look for them with `kustos pipeline anomalies find`")
    tables.change_small("triage-anomalies", TABLE, rows_after)
    return made
