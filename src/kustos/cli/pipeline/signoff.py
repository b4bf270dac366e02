"""`kustos pipeline signoff`: decide, sign off and check a review document. Only a replay needs Spark."""

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kustos.cli.failures import ExitCode
from kustos.cli.options import DocumentOutput, exit_code_if, register
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    Config,
    RowsOfOperation,
    RowsOfPrincipal,
    RowsOfResource,
    RowsOfTeam,
    UnusedRows,
    configured,
    working,
)

if TYPE_CHECKING:
    from kustos.pipeline.queries.record import RecordCoverage
    from kustos.signoff import ReviewChanges, ReviewState, RowChoice

CHECK_EXAMPLES = """
kustos pipeline signoff check q3.json
kustos pipeline signoff check q3.jws --key auditors.pem --exit-code
"""
DECIDE_EXAMPLES = """
kustos pipeline signoff decide q3.json revoke --by alice \\
    --reason "team has moved" --row 5c1b9e02
kustos pipeline signoff decide q3.json keep --by alice --principal User:pay
kustos pipeline signoff decide q3.json revoke --by alice --reason "dead" \\
    --unused --operation DELETE --yes
kustos pipeline signoff decide q3.json keep --by alice --all --undecided
"""
CLOSE_EXAMPLES = """
kustos pipeline signoff close q3.json --by "Alice, platform team"
kustos pipeline signoff close q3.json --by "Alice, platform team" \\
    --key auditors.pem --out q3.jws
kustos pipeline signoff close q3.json --key auditors.pem --out q3.jws
"""
CHANGES_EXAMPLES = """
kustos pipeline signoff changes q3.json > remove.yaml
kustos pipeline signoff changes q3.json --commands
kustos pipeline signoff changes q3.json --replay --exit-code
"""

LOST_SHOWN_MAX: Final = 20
"""Uses shown on a terminal."""


class ReviewVerdict(StrEnum):
    """The decision of a reviewer."""

    KEEP = "keep"
    REVOKE = "revoke"
    ASK = "ask"


Document = Annotated[Path, typer.Argument(metavar="FILE", help="The document of `review --sign-off`.")]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="The reason; required to revoke and to ask.")
]
RowIds = Annotated[
    list[str] | None,
    typer.Option("--row", metavar="ID", help="A row, by its id or the first 6 characters of it."),
]
EveryRow = Annotated[bool, typer.Option("--all", help="Select every row.")]
Undecided = Annotated[bool, typer.Option("--undecided", help="Select only rows without a decision.")]
Overrule = Annotated[bool, typer.Option("--overrule", help="Also replace the decisions of other reviewers.")]
Yes = Annotated[bool, typer.Option("--yes", help="Decide without confirmation.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="The name of the reviewer.")]
ClosedBy = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Sign off, in the name of this person.")
]
PrivateKey = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="FILE", help="Sign by this private key: Ed25519 or P-256, in PEM or as a JWK."
    ),
]
KeyPasswordFile = Annotated[
    Path | None,
    typer.Option("--key-password-file", metavar="FILE", help="The file with the password of the key."),
]
Signed = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the signed review to this file (JWS).")
]

app = typer.Typer(help="Decide on the rows of a review, and sign it off.", no_args_is_help=True)


def check(
    document: Document,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="Verify the signature of FILE by this public key (PEM or JWK)."
        ),
    ] = None,
    exit_code: Annotated[bool, exit_code_if("it is not signed off")] = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Verify that a review was not altered, and show its progress.

    Digests detect rows, decisions and sign-offs that another program altered.
    """
    from kustos.signoff import verify_review, verify_signed_review

    contents = _read(document) if key is None else verify_signed_review(_text(document), key.read_bytes())
    state = verify_review(contents)
    _print_state(state, output)
    return ExitCode.NO if exit_code and not state.is_signed_off else ExitCode.OK


def decide(
    document: Document,
    verdict: Annotated[ReviewVerdict, typer.Argument(help="The decision on the rows.")],
    by: By,
    reason: Reason = "",
    row: RowIds = None,
    principal: RowsOfPrincipal = None,
    operation: RowsOfOperation = None,
    resource: RowsOfResource = None,
    team: RowsOfTeam = None,
    unused: UnusedRows = False,
    every_row: EveryRow = False,
    undecided: Undecided = False,
    overrule: Overrule = False,
    yes: Yes = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Record the decision of a reviewer on rows.

    Several options select the rows that match all of them. A decision is on a whole row: `--principal
    User:bob` does not select the rows of `User:*`, `--resource TOPIC:payments` no prefix or `*` that matches
    it. Unless `--row` names each row, the command shows the rows and asks for confirmation; scripts use
    `--yes`.

    Several reviewers may decide at the same time. If another reviewer has decided to keep or revoke a row,
    the command decides nothing.
    """
    from kustos.cli.pipeline.inputs import resource_choice
    from kustos.cli.terminal import confirm
    from kustos.signoff import ReviewDecision, RowChoice, change_review_file, verify_review, with_decisions

    choice = RowChoice.of(
        principal=principal,
        operation=operation,
        **resource_choice(resource),
        team=team,
        is_unused=unused,
        as_written=True,
    )
    _require_choice(every_row=every_row, is_everything=not row and choice.is_everything)
    seen = _read(document)
    wanted = _wanted(seen, row or [], choice, undecided=undecided)
    at, ids = datetime.now(UTC), [one["row_id"] for one in wanted]

    def decided_in(contents: Any) -> Any:
        return with_decisions(
            contents,
            ids,
            ReviewDecision(verdict.value),
            by=by,
            at=at,
            reason=reason,
            seen=seen,
            overrules=overrule,
        )

    decided_in(seen)  # an error comes before the question
    if not yes and not row:
        confirm(f"{verdict.value} {_rows(wanted, seen)}", [_row_text(one) for one in wanted], "--yes")
    decided = change_review_file(document, decided_in)
    _print_state(verify_review(decided), output, decided=_rows(wanted, seen))


def _require_choice(*, every_row: bool, is_everything: bool) -> None:
    """Raise a usage error unless the options select rows, or every row by `--all`."""
    from kustos.cli.failures import usage_error

    if is_everything and not every_row:
        raise usage_error(
            "select rows, for example with `--row`, `--principal`, `--team`, `--unused` or `--all`"
        )
    if every_row and not is_everything:
        raise usage_error("`--all` selects every row: remove it, or the other options that select rows")


def _wanted(contents: Any, named: list[str], choice: "RowChoice", *, undecided: bool) -> list[dict[str, Any]]:
    """Return the selected rows; raise `SignoffError` for a named row that is missing or not selected."""
    from kustos.cli.failures import usage_error
    from kustos.pipeline.short_ids import ids_of_beginnings
    from kustos.signoff import SignoffError

    rows = contents["review"]["rows"]
    every_id = [one["row_id"] for one in rows]
    ids = ids_of_beginnings(every_id, named, "rows", SignoffError, "the document") if named else every_id
    chosen = [one for one in rows if one["row_id"] in set(ids) and choice.takes(one)]
    if named and len(chosen) < len(ids):
        left = next(each for each in ids if each not in {one["row_id"] for one in chosen})
        raise usage_error(f"the other options do not select row `{left}`, use `--row` alone")
    wanted = [one for one in chosen if not (undecided and one["row_id"] in contents["decisions"])]
    if not wanted:
        raise usage_error("no row of the review is selected")
    return wanted


def _rows(rows: list[dict[str, Any]], contents: Any) -> str:
    """Return the number of these rows, of all rows, and of these rows with a decision."""
    from kustos.cli.output import counted

    before = sum(one["row_id"] in contents["decisions"] for one in rows)
    text = f"{counted(len(rows), 'row')} of {len(contents['review']['rows'])}"
    return f"{text}, {before} of them decided before" if before else text


def _row_text(row: dict[str, Any]) -> str:
    name = "(any)" if row["resource_name"] is None else row["resource_name"]
    how = " (prefix)" if row["pattern_type"] == "PREFIXED" else ""
    uses = f"used {row['use_count']:,} times" if row["use_count"] else "no use recorded"
    return f"{row['principal']} {row['operation']} {row['resource_type']} {name}{how}, {uses}"


def close(
    document: Document,
    by: ClosedBy = None,
    key: PrivateKey = None,
    key_password_file: KeyPasswordFile = None,
    out: Signed = None,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Sign off a review, and sign it by a key for auditors.

    `--by` signs off: each row must have the decision to keep or to revoke, and no decision changes
    afterwards. `--key` and `--out` write the review with a signature (JWS), which `signoff check --key`
    verifies.
    """
    from kustos.cli.failures import usage_error
    from kustos.signoff import change_review_file, sign_off, sign_review, verify_review

    if (key is None) != (out is None):
        raise usage_error("`--key` and `--out` go together: the private key, and the file to write")
    if out is not None and out.resolve() == document.resolve():
        raise usage_error(f"`--out` would replace the review `{document}`, name another file")
    if by is None and key is None:
        raise usage_error("use `--by` to sign off, `--key` and `--out` to sign by a key, or both")
    password = None if key_password_file is None else key_password_file.read_bytes().rstrip(b"\r\n")
    private_key = None if key is None else key.read_bytes()
    signature = ""

    def signed(contents: Any) -> Any:
        nonlocal signature
        closed = contents if by is None else sign_off(contents, by=by, at=datetime.now(UTC))
        if private_key is not None:
            signature = sign_review(closed, private_key, password)
        return closed

    # with a key that cannot sign, the review stays open
    contents = signed(_read(document)) if by is None else change_review_file(document, signed)
    if out is not None:
        _write_signature(out, signature, is_closed=by is not None)
    _print_state(verify_review(contents), output, signed=out)


def _write_signature(out: Path, signature: str, *, is_closed: bool) -> None:
    """Write the signed review; raise `SignoffError` with what to do if that fails."""
    from kustos.runtime import FileSystemStorage, reason_of
    from kustos.signoff import SignoffError

    try:
        FileSystemStorage().write(out, signature.encode("ascii"))
    except OSError as error:
        text = f"cannot write the signed review `{out}`: {reason_of(error)}"
        done = "; the review is signed off: repeat the command without `--by`" if is_closed else ""
        raise SignoffError(text + done) from error


def changes(
    document: Document,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print kafka-acls commands instead of YAML.")
    ] = False,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Verify by a replay that only revoked uses are lost; requires Spark."),
    ] = False,
    exit_code: Annotated[bool, exit_code_if("another use is lost, or it is too early to say")] = False,
    config: Config = DEFAULT_CONFIG,
) -> int:
    """Print the ACLs to remove for the revoked rows.

    An ACL that also grants a row to keep stays, and is reported on standard error. With --replay, today's
    ACLs without the removed ones decide all recorded use again; they must be the reviewed ACLs. If any other
    use would be lost, the command prints no removal. It also reports how much of `review.dormant_days` the
    record covers.
    """
    import sys

    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_lines, printable
    from kustos.signoff import changes_of

    if exit_code and not replay:
        raise usage_error("`--exit-code` requires `--replay`")
    contents = _read(document)
    proposed, record = _replayed(contents, config) if replay else (changes_of(contents), None)
    for one in proposed.contested:
        sys.stderr.write(
            f"kept: {printable(one.binding.audit_text())} grants {len(one.revoke)} revoked rows "
            f"and {len(one.other)} others\n"
        )
    if proposed.beyond_acls:
        sys.stderr.write(
            f"{len(proposed.beyond_acls)} revoked rows do not come from an ACL: super users, or the default\n"
        )
    if record is not None:
        _report_lost(proposed)
        sys.stderr.write(f"the record: {record.text('that no use is lost')}\n")
    if not proposed.unexpected:
        if commands:
            print_lines(*proposed.to_commands())
        else:
            sys.stdout.write(proposed.to_yaml())
    is_clear = not proposed.unexpected and (record is None or record.is_enough)
    return ExitCode.NO if exit_code and not is_clear else ExitCode.OK


def _replayed(document: Any, config: Path) -> "tuple[ReviewChanges, RecordCoverage]":
    """Return the changes with the result of a replay of all recorded use up to now, and the record."""
    from kustos.cli.pipeline.inputs import of_cluster, todays_acls
    from kustos.pipeline.queries.record import record_of
    from kustos.pipeline.review.access import lost_uses
    from kustos.signoff import changes_of

    configuration = configured(config)
    configuration, tables = of_cluster(configuration, document["review"].get("cluster"))
    acls = todays_acls(configuration, config.absolute().parent)
    changes_of(document, acls)  # report ACLs other than the reviewed ones before Spark's seconds of start-up
    with working("signoff", configuration.spark, tables.recorded_rows(), steps=1) as (spark, step):
        step("deciding recorded use without the removed ACLs")
        rollup = tables.read(spark, "audit_rollup")
        now, then = datetime.now(UTC), datetime.fromisoformat(document["review"]["as_of"])
        replays = [lost_uses(spark, rollup, acls, as_of=moment) for moment in (now, then)]
        record = record_of(rollup, now, configuration.review.dormant_days)
        return changes_of(document, acls, *replays), record


def _report_lost(proposed: "ReviewChanges") -> None:
    import sys

    from kustos.cli.output import counted, printable

    lost = proposed.unexpected or ()
    for principal, operation, kind, name in lost[:LOST_SHOWN_MAX]:
        resource = f"{kind} {name if name is not None else '(any)'}"
        sys.stderr.write(f"lost: {printable(f'{principal} {operation} {resource}')}\n")
    if len(lost) > LOST_SHOWN_MAX:
        sys.stderr.write(f"and {len(lost) - LOST_SHOWN_MAX:,} more\n")
    if lost:
        sys.stderr.write("nothing is removed: uses that were not revoked would be lost\n")
    else:
        removed = counted(len(proposed.remove), "ACL")
        sys.stderr.write(f"replay: without {removed} only revoked uses are lost\n")


def _text(path: Path) -> str:
    from kustos.cli.text_files import read_text

    return read_text(str(path))


def _read(path: Path) -> Any:
    from kustos.signoff import read_review

    return read_review(_text(path))


def _print_state(
    state: "ReviewState", output: OutputFormat, decided: str | None = None, signed: Path | None = None
) -> None:
    from dataclasses import asdict

    from kustos.cli.output import print_document, print_lines

    if output.is_document:
        print_document(asdict(state), output)
        return
    if decided is not None:
        print_lines(f"decided {decided}")
    print_lines(
        f"{state.rows} rows: {state.keep} keep, {state.revoke} revoke, {state.ask} ask, "
        f"{state.undecided} undecided; {'signed off' if state.is_signed_off else 'open'}"
    )
    if signed is not None:
        print_lines(str(signed))


register(app, "check", check, CHECK_EXAMPLES)
register(app, "decide", decide, DECIDE_EXAMPLES)
register(app, "close", close, CLOSE_EXAMPLES)
register(app, "changes", changes, CHANGES_EXAMPLES)
