"""`kustos trial`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.options import Output, exit_code_if
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.analysis import DifferenceCount, DifferenceKey, TrialSummary
    from kustos.cli.output import Columns

EXAMPLES = """
kustos trial /var/lib/kustos/audit
kustos trial /var/lib/kustos/audit --exit-code -o json
"""

Audit = Annotated[
    list[Path],
    typer.Argument(metavar="AUDIT...", help="Audit files of JSON lines, or directories of them."),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many differences to show.")]
ExitCodeFlag = Annotated[bool, exit_code_if("any use would have been denied, or had no answer")]


def trial(
    audit: Audit,
    limit: Limit = 20,
    exit_code: ExitCodeFlag = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Sum up what ACLs on trial would have changed.

    Reads the events of a node with candidate ACLs, or with a listener in mode shadow: who would have been
    denied what, how often, and by which rule. It also reads files that are still being written. If no
    answer of the ACLs on trial is known, it reports that; it never counts as agreement.
    """
    from kustos.analysis import TrialSummary
    from kustos.cli.failures import ExitCode
    from kustos.cli.metadata.history import audit_lines
    from kustos.cli.output import print_rows
    from kustos.cli.terminal import progress

    with progress("reading audit events"):
        summary = TrialSummary.of(audit_lines(audit))
    rows = summary.sorted()
    hidden = len(rows) - limit
    print_rows(
        difference_columns(),
        rows[:limit],
        output,
        document=lambda: _document(summary, rows[:limit]),
        lead=tuple(_lead(summary)),
        tail=(f"{hidden} more, see `--limit`",) if hidden > 0 else (),
    )
    return ExitCode.NO if exit_code and (summary.lost_uses or summary.errors) else ExitCode.OK


_WORDS: Final = {
    "SHADOW_DENIED": "would be denied",
    "LOST": "lost",
    "GAINED": "gained",
    "ERROR": "no answer",
}
_WAYS: Final = {"ACCESS": "use", "PROBE": "probe", "LISTING": "list"}


def difference_columns() -> "Columns[tuple[DifferenceKey, DifferenceCount]]":
    """Return the columns of differences."""
    from kustos.cli.output import Column, ColumnFormats, Columns
    from kustos.metadata.inspection import moment_text

    wide = ColumnFormats.WIDE
    return Columns(
        (
            Column("kind", lambda row: _WORDS[row[0].kind.value], title="what"),
            Column("access", lambda row: _WAYS[row[0].access], title="of"),
            Column("principal", lambda row: row[0].principal),
            Column("operation", lambda row: row[0].operation),
            Column("resource_type", lambda row: row[0].resource_type),
            Column("resource_name", lambda row: row[0].resource_name or "(any)"),
            Column("decisions", lambda row: row[1].decisions),
            Column("hosts", lambda row: len(row[1].hosts), wide),
            Column("first", lambda row: moment_text(row[1].first_ms), wide),
            Column("last", lambda row: moment_text(row[1].last_ms), wide),
            Column("candidate", lambda row: row[0].candidate, wide),
            Column("rule", lambda row: row[0].rule, title="by"),
        ),
        lambda row: (row[0].principal,),
        "the principals",
    )


def _lead(summary: "TrialSummary") -> list[str]:
    """Return what was on trial, and what is not known."""
    from kustos.metadata.inspection import moment_text

    lines = [
        f"{moment_text(load.time_ms)}  node {load.node_id}: "
        + (f"{load.source} on trial" if load.failure is None else f"no candidate: {load.failure}")
        for load in summary.loads
    ]
    if not (summary.loads or summary.differences):
        lines.append("no event names ACLs on trial, so the absence of differences shows no agreement")
    elif not summary.differences:
        lines.append("no decision would change")
    if summary.errors:
        lines.append(f"{summary.errors} decisions have no answer of the ACLs on trial")
    if summary.unreadable:
        lines.append(f"{summary.unreadable} lines cannot be read")
    return lines


def _document(summary: "TrialSummary", rows: "list[tuple[DifferenceKey, DifferenceCount]]") -> dict[str, Any]:
    from kustos.metadata.inspection import moment_text

    return {
        "lost_uses": summary.lost_uses,
        "errors": summary.errors,
        "unreadable_lines": summary.unreadable,
        "candidates": [
            {
                "timestamp": moment_text(load.time_ms),
                "node_id": load.node_id,
                "source": load.source,
                "failure": load.failure,
            }
            for load in summary.loads
        ],
        "differences": [
            {
                "kind": key.kind.value,
                "access": key.access,
                "principal": key.principal,
                "operation": key.operation,
                "resource_type": key.resource_type,
                "resource_name": key.resource_name,
                "decisions": count.decisions,
                "hosts": sorted(count.hosts),
                "first": moment_text(count.first_ms),
                "last": moment_text(count.last_ms),
                "candidate": key.candidate,
                "rule": key.rule,
            }
            for key, count in rows
        ],
    }
