"""What people say about findings: acknowledged by whom, when and why. Needs no Spark."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.errors import TriageError

if TYPE_CHECKING:
    from kustos.pipeline.tables import Tables

TABLE: Final = "finding_states"

ID_LENGTH_MIN: Final = 6
"""A shorter beginning of an id would soon be that of several."""
REASON_CHARACTERS_MAX: Final = 1_000
"""A sentence or a few; the rest belongs into a ticket."""
NAME_CHARACTERS_MAX: Final = 200

_SEVERITIES: Final = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}

State = dict[str, Any]
"""A row of `finding_states`."""


def stored_states(tables: "Tables") -> list[State]:
    """Return the rows of `finding_states`, the gravest and newest first; raise what `Tables.files` raises.

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
            row["finding_id"],
        ),
    )


def matching_ids(rows: Iterable[Mapping[str, Any]], beginnings: Sequence[str]) -> list[str]:
    """Return the ids that begin so, one for each; raise `TriageError` for none, several or a short one."""
    known = [row["finding_id"] for row in rows]
    found = []
    for beginning in beginnings:
        if len(beginning) < ID_LENGTH_MIN:
            raise TriageError(
                f"`{beginning}` is too short, give {ID_LENGTH_MIN} characters of the id or more"
            )
        ids = [each for each in known if each.startswith(beginning.lower())]
        if len(ids) != 1:
            what = "several findings have" if ids else "no finding has"
            raise TriageError(
                f"{what} an id that begins with `{beginning}`, see `kustos pipeline findings list`"
            )
        found += ids
    return found


def acknowledge(
    tables: "Tables", beginnings: Sequence[str], *, by: str, reason: str, at: datetime
) -> list[State]:
    """Note that somebody knows of these findings, and return their rows.

    A HIGH one is open again when it is seen on another day; any, when it comes back after it was resolved.
    Raises `TriageError`, and what `Tables.change_small` raises.
    """
    for what, text, most in (("by", by, NAME_CHARACTERS_MAX), ("reason", reason, REASON_CHARACTERS_MAX)):
        if not text.strip() or len(text) > most:
            raise TriageError(f"`{what}` of an acknowledgement has 1 to {most} characters")
    said = {"acknowledged_by": by, "acknowledged_at": at, "acknowledged_reason": reason}

    def change(row: State) -> State:
        state = "ACKNOWLEDGED" if row["state"] == "OPEN" else row["state"]
        return row | said | {"acknowledged_day": row["last_day"], "state": state}

    return _changed(tables, beginnings, change)


def reopen(tables: "Tables", beginnings: Sequence[str]) -> list[State]:
    """Take back what was said about these findings, and return their rows; raise as `acknowledge` does."""
    nothing = dict.fromkeys(("acknowledged_by", "acknowledged_at", "acknowledged_reason", "acknowledged_day"))

    def change(row: State) -> State:
        return row | nothing | {"state": "SUPPRESSED" if row["state"] == "SUPPRESSED" else "OPEN"}

    return _changed(tables, beginnings, change)


def _changed(tables: "Tables", beginnings: Sequence[str], change: Any) -> list[State]:
    made: list[State] = []

    def rows_after(rows: list[State]) -> list[State]:
        ids = set(matching_ids(rows, beginnings))
        after = [change(row) if row["finding_id"] in ids else row for row in rows]
        made.extend(row for row in after if row["finding_id"] in ids)
        return after

    if not tables.has(TABLE):
        raise TriageError("there are no findings yet, look for them with `kustos pipeline anomalies`")
    tables.change_small("triage-findings", TABLE, rows_after)
    return made
