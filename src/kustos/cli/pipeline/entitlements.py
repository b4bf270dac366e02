"""The entitlements of a review: files for spreadsheets and for the sign-off, and output on a terminal."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kustos.pipeline.deciding import AclsInForce
    from kustos.pipeline.tables import Tables
    from kustos.signoff import Document, RowChoice

SHOWN_MAX: Final = 40
"""Rows shown on a terminal; a file has all of them."""

_ORDER: Final = ("resource_type", "resource_name", "operation", "principal", "host")
_BREADTHS: Final = {
    "NAMED": "on one name",
    "PREFIXED": "on a prefix",
    "WILDCARD": "on every name",
    "EVERYONE": "for all users (`User:*`)",
    "SUPER_USER": "super users",
    "DEFAULT": "without any ACL",
}
_DORMANT: Final = {True: "yes", False: "no", None: "too early to say"}
_EFFECTS: Final = {"WHOLE": "yes", "PARTLY_DENIED": "in part", "VOID": "denied"}
_CHANGES: Final = {
    "NEW": "new",
    "GONE": "gone",
    "CHANGED": "changed",
    "SAME": "the same",
    "revoked_and_granted": "revoked then, still granted",
}


_COMPARED: Final = {
    "team": "team",
    "effect": "effect",
    "denied_by": "denies",
    "granted_since": "recreated",
    "principal_count": "principals",
    "name_count": "names",
    "is_dormant": "dormancy",
}


class EntitlementFiles:
    """The rows of one review, selected and compared: read once, written to files, then shown.

    A temporary file holds the rows to show, because the rows of a large cluster need too much memory.
    """

    def __init__(
        self,
        tables: "Tables",
        acls: "AclsInForce",
        choice: "RowChoice",
        former: "Document | None",
        *,
        as_of: datetime,
        metadata: Path | None = None,
    ) -> None:
        from kustos.signoff import Comparison, former_of

        self.tables = tables
        self._acls: Final = acls
        self._choice: Final = choice
        self._former: Final = former
        self._as_of: Final = as_of
        self._metadata: Final = metadata
        self._comparison: Final = Comparison(None if former is None else former_of(former))
        self._aside: Final = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 -- closed with it
        self.shown = ShownRows(0, [])

    def write(
        self, spark: Any, csv: Path | None, sign_off: Path | None, record: dict[str, Any]
    ) -> dict[str, Any]:
        """Write the requested files; return the result of the comparison.

        `record`: what the record covers, as a review returns it. Afterwards `documents` has all rows, and
        `shown` has the rows for a terminal.
        """
        rows = self._kept_aside(self._rows(spark))
        if sign_off is not None:
            held = list(rows)
            self._write_document(sign_off, held, record)
            rows = iter(held)
        if csv is not None:
            from kustos.signoff import entitlements_csv

            _write_lines(csv, entitlements_csv(rows))
        for _ in rows:
            pass  # kept aside on the way
        if self._former is None:
            return {}
        return {"since": {"as_of": self._former["review"]["as_of"], **self._comparison.counts}}

    def write_details(self, spark: Any, path: Path) -> None:
        """Write the accesses behind the selected entitlements."""
        from kustos.pipeline.review.access import chosen_rows
        from kustos.signoff import review_csv

        accesses = chosen_rows(self.tables.read(spark, "access_review"), self._choice)
        ordered = accesses.orderBy("team", "principal", "resource_type", "resource_name", "operation")
        rows = (row.asDict(recursive=True) for row in ordered.toLocalIterator())
        _write_lines(path, review_csv(rows))

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield each row in JSON types."""
        self._aside.seek(0)
        for line in self._aside:
            yield json.loads(line)

    def _kept_aside(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        from kustos.cli.pipeline.shown import plain

        is_chosen = not self._choice.is_everything
        for row in rows:
            self._aside.write(json.dumps(plain(row)) + "\n")
            # without a selection only new and changed rows are shown
            if is_chosen or row["change"] not in (None, "SAME"):
                self.shown.add(row)
            yield row

    def _rows(self, spark: Any) -> Iterator[dict[str, Any]]:
        """Yield the selected rows of today, then the selected rows of the former review that are gone.

        Rows are compared before they are narrowed: a part of an unchanged row has not changed.
        """
        from kustos.pipeline.review.access import chosen_rows

        table = self.tables.read(spark, "entitlements")
        if self._former is None and not self._choice.is_everything:
            table = chosen_rows(table, self._choice)  # what is gone follows from all rows
        found = table.orderBy(*_ORDER).toLocalIterator()
        rows: Iterator[dict[str, Any]] = self._comparison.of(row.asDict(recursive=True) for row in found)
        yield from rows if self._choice.is_everything else self._choice.narrowed(rows, self._acls)
        yield from self._gone(spark)

    def _gone(self, spark: Any) -> list[dict[str, Any]]:
        """Return the selected rows that are gone, with their uses up to the end of their ACLs."""
        from kustos.pipeline.history import read_history
        from kustos.pipeline.review.revoked import with_uses_until_revoked
        from kustos.pipeline.task_errors import task_errors

        cluster = self.tables.chosen_cluster.name
        rows = [{**row, "cluster": cluster} for row in self._comparison.gone() if self._choice.takes(row)]
        if self._former is None or not rows:
            return rows
        history = None
        if self._metadata is not None:
            history = read_history(spark, self._metadata)
        with task_errors():
            return with_uses_until_revoked(
                spark,
                self.tables.read(spark, "audit_rollup"),
                rows,
                super_users=self._acls.super_users,
                former_as_of=datetime.fromisoformat(self._former["review"]["as_of"]),
                as_of=self._as_of,
                history=history,
            )

    def _write_document(self, path: Path, rows: Iterable[dict[str, Any]], record: dict[str, Any]) -> None:
        from kustos.signoff import review_document, write_review

        since = None
        if self._former is not None:
            since = {
                "as_of": self._former["review"]["as_of"],
                "review_digest": self._former["review_digest"],
                "gone": [row for row in rows if row["change"] == "GONE"],
            }
        document = review_document(
            (row for row in rows if row["change"] != "GONE"),
            self._acls,
            as_of=self._as_of,
            dormant_days=record["window_days"],
            created_at=datetime.now(UTC),
            cluster=self.tables.chosen_cluster.name,
            since=since,
            record=record,
        )
        path.write_text(write_review(document), encoding="utf-8")


@dataclass(slots=True)
class ShownRows:
    """The first SHOWN_MAX rows for a terminal, and the number of all rows."""

    count: int
    first: list[dict[str, Any]]

    def add(self, row: dict[str, Any]) -> None:
        """Count a row, and keep it if it is one of the first."""
        self.count += 1
        if len(self.first) < SHOWN_MAX:
            self.first.append(row)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)


def print_entitlements(counts: dict[str, Any], shown: ShownRows, title: str, *, is_chosen: bool) -> None:
    """Print the sums of a review and what is new, or the selected rows."""
    from kustos.cli.output import print_lines, print_paragraph, print_table

    print_lines(title)
    print_paragraph(counts["record"]["text"])
    if is_chosen:
        _print_rows(shown, is_compared="since" in counts)
        return
    print_table(
        ("entitled", "rows", "used", "no use recorded", "dormant", "too early to say", "denied"),
        [
            (
                _BREADTHS[one["breadth"]],
                *(one[name] for name in ("rows", "used", "unused", "dormant", "too_early", "void")),
            )
            for one in counts["entitlements"]
        ],
    )
    accesses = counts["accesses"]
    print_lines(f"{accesses['used']} accesses by {accesses['principals']} principals are behind them")
    if "since" in counts:
        since = counts["since"]
        print_table(
            (f"since {str(since['as_of'])[:10]}", "rows"),
            [(_CHANGES[name], since[name]) for name in _CHANGES if name in since],
        )
        if shown.count:
            print_lines("new, changed and gone:")
            _print_rows(shown, is_compared=True)
    if counts["findings"]:
        print_table(
            ("found", "count", "safe to remove", "too early to say"),
            [
                (
                    one["kind"].replace("_", " ").lower(),
                    *(one[name] for name in ("count", "safe_to_remove", "too_early")),
                )
                for one in counts["findings"]
            ],
        )
    print_lines("all rows are in the tables `entitlements`, `access_review` and `findings`")


def _print_rows(shown: ShownRows, *, is_compared: bool) -> None:
    """Print rows as a table; on a terminal, which is too narrow for it, as two lines each."""
    from kustos.cli.output import is_terminal, print_lines, print_paragraph, print_table
    from kustos.cli.pipeline.shown import day

    if not shown.count:
        print_lines("no ACL allows it")
        return
    if is_terminal():
        for row in shown.first:
            operation = "do" if row["resource_type"] == "ANY" else row["operation"]
            print_lines(f"{_who(row)} may {operation} {_what(row)}")
            print_paragraph(_remarks(row), indent="  ")
    else:
        titles = ("principal", "may", "resource", "in effect", "uses", "by", "last used", "dormant")
        print_table(
            (*titles, "change") if is_compared else titles,
            [
                (
                    _who(row),
                    row["operation"],
                    _what(row),
                    _EFFECTS[row["effect"]],
                    row["use_count"],
                    row["used_by_count"],
                    "none recorded" if row["last_used"] is None else day(_time(row["last_used"])),
                    _DORMANT[row["is_dormant"]],
                    *([_change(row)] if is_compared else []),
                )
                for row in shown.first
            ],
        )
    if shown.count > len(shown.first):
        print_lines(f"and {shown.count - len(shown.first):,} more, see `--csv` or `-o json`")


def _remarks(row: dict[str, Any]) -> str:
    """Return the other columns of a row, in words."""
    from kustos.cli.pipeline.shown import day

    said = [] if row["change"] is None else [", ".join(_change(row))]
    if row["effect"] != "WHOLE":
        said.append("denied in part" if row["effect"] == "PARTLY_DENIED" else "denied")
    if row["use_count"]:
        times = "once" if row["use_count"] == 1 else f"{row['use_count']:,} times"
        by = "" if row["used_by_count"] == 1 else f" by {row['used_by_count']:,} principals"
        said.append(f"used {times}{by}, the last on {day(_time(row['last_used']))}")
    else:
        said.append("no use recorded")
    if row["is_dormant"] is None:
        said.append("too early to say whether it is used")
    return "; ".join(said)


def _time(value: datetime | str | None) -> datetime | None:
    """Return the time of a row; a former review has it as text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _change(row: dict[str, Any]) -> tuple[str, ...]:
    """Return what changed, and whether the row was revoked before and is still granted."""
    words = [_CHANGES[row["change"]]]
    if row["changed"]:
        words = [
            f"changed: {_COMPARED[row['changed'][0]]}",
            *(_COMPARED[name] for name in row["changed"][1:]),
        ]
    if row["former_decision"] == "revoke" and row["change"] != "GONE":
        words.append("was revoked")
    return tuple(words)


def _who(row: dict[str, Any]) -> str:
    count = f" ({row['principal_count']} known)" if row["principal"] == "User:*" else ""
    host = f" from {row['host']}" if row["host"] != "*" else ""
    return f"{row['principal']}{count}{host}"


def _what(row: dict[str, Any]) -> str:
    if row["basis"] == "SuperUser":
        return "everything (super user)"
    if row["basis"] == "DefaultAllow":
        return "every resource without ACLs"
    is_prefix = row["pattern_type"] == "PREFIXED"
    how = f" (prefix, {row['name_count']} known)" if is_prefix else ""
    if not is_prefix and row["resource_name"] == "*":
        how = f" ({row['name_count']} known)"
    return f"{row['resource_type']} {row['resource_name']}{how}"
