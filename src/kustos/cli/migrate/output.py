"""Output of a plan: counts and tables for people, everything as one document for programs."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from kustos.acl.forms import texts_of
from kustos.cli.acls.output import print_bindings
from kustos.cli.migrate.plan import MigrationPlan, MigrationRefusal, NewPassword
from kustos.cli.output import (
    Cell,
    OutputFormat,
    Words,
    counted,
    print_document,
    print_lines,
    print_paragraph,
    print_table,
)
from kustos.metadata import ScramMechanism

SHOWN_MAX: Final = 20
"""Rows of each table on a terminal; the document has all of them."""

_Item = TypeVar("_Item")


def print_plan(plan: MigrationPlan, output: OutputFormat, *, applied: bool) -> None:
    """Print the plan; `applied` says whether it was applied."""
    if output.is_document:
        print_document(document_of(plan, applied=applied), output)
        return
    print_lines(f"from  {plan.source}", f"to    {plan.target}", "")
    created = "created" if applied else "to create"
    print_table(("what", "found", "already there", created, "not migrated"), _counts(plan))
    if plan.acls_only_there:
        print_lines(
            "", f"{counted(plan.acls_only_there, 'ACL')} of the target are not in the source and stay"
        )
    _print_refused(plan.refused)
    _print_new_passwords(plan.new_passwords)
    _print_some(
        "not migrated by this command",
        ("where", "what", "count"),
        plan.left,
        lambda each: (each.where, Words(each.what), each.count),
    )
    if not applied:
        _print_to_make(plan)
    print_lines("", *_conclusion(plan, applied=applied))


def _counts(plan: MigrationPlan) -> list[tuple[Cell, ...]]:
    of_users = sum(each.is_user for each in plan.refused)
    rows = (
        ("ACLs", plan.acls_present, len(plan.acls), len(plan.refused) - of_users),
        (
            "SCRAM credentials",
            plan.credentials_present,
            len(plan.credentials),
            len(plan.new_passwords) + of_users,
        ),
        ("delegation tokens", plan.tokens_present, len(plan.tokens), 0),
    )
    return [(name, sum(counts), *counts) for name, *counts in rows if name == "ACLs" or any(counts)]


def _print_to_make(plan: MigrationPlan) -> None:
    _print_some(
        "users to create",
        ("user", "mechanism", "iterations"),
        plan.credentials,
        lambda each: (each.user, _mechanism(each.mechanism), each.credential.iterations),
    )
    if plan.acls:
        print_lines("", "ACLs to create")
        print_bindings(plan.acls[:SHOWN_MAX])
        _print_remaining(len(plan.acls))


def _print_refused(refused: Sequence[MigrationRefusal]) -> None:
    if refused:
        print_lines("", "refused")
    for each in refused[:SHOWN_MAX]:
        print_paragraph(f"{each.where}: {each.what}", indent="    ", first="  ")
        print_paragraph(each.reason, indent="      ")
    _print_remaining(len(refused))


def _print_new_passwords(users: Sequence[NewPassword]) -> None:
    for reason in dict.fromkeys(each.reason for each in users):
        print_lines("")
        print_paragraph(
            f"need a new password, set it with `kustos users add`: {reason}", indent="  ", first=""
        )
        of_reason = [each for each in users if each.reason == reason]
        rows = ((each.user, _mechanism(each.mechanism), each.iterations) for each in of_reason)
        print_table(("user", "mechanism", "iterations"), islice(rows, SHOWN_MAX))
        _print_remaining(len(of_reason))


def _print_some(
    title: str, columns: Sequence[str], items: Sequence[_Item], row: Callable[[_Item], Sequence[Cell]]
) -> None:
    if items:
        print_lines("", title)
        print_table(columns, map(row, items[:SHOWN_MAX]))
        _print_remaining(len(items))


def _print_remaining(count: int) -> None:
    if count > SHOWN_MAX:
        print_lines(f"and {count - SHOWN_MAX:,} more, see `-o json`")


def _conclusion(plan: MigrationPlan, *, applied: bool) -> list[str]:
    if applied and not plan.is_empty:
        return ["done"]
    if plan.is_empty:
        return ["nothing to create: the target has everything that can be migrated"]
    if plan.refused:
        return ["nothing was changed; `--apply --skip-refused` creates everything except the refused items"]
    return ["nothing was changed; `--apply` applies the plan"]


def _mechanism(code: int) -> str:
    known = ScramMechanism.from_code(code)
    return known.mechanism_name if known else str(code)


def document_of(plan: MigrationPlan, *, applied: bool) -> dict[str, Any]:
    """Return the plan as JSON, without any secret."""
    return {
        "source": plan.source,
        "target": plan.target,
        "applied": applied,
        "complete": plan.is_complete,
        "acls": {
            "present": plan.acls_present,
            "only_in_target": plan.acls_only_there,
            "make": [texts_of(binding) for binding in plan.acls],
        },
        "users": {
            "present": plan.credentials_present,
            "make": [
                {
                    "user": each.user,
                    "mechanism": _mechanism(each.mechanism),
                    "iterations": each.credential.iterations,
                }
                for each in plan.credentials
            ],
            "need_password": [
                {
                    "user": each.user,
                    "mechanism": _mechanism(each.mechanism),
                    "iterations": each.iterations,
                    "reason": each.reason,
                }
                for each in plan.new_passwords
            ],
        },
        "tokens": {"present": plan.tokens_present, "make": [token.token_id for token in plan.tokens]},
        "refused": [{"where": each.where, "what": each.what, "reason": each.reason} for each in plan.refused],
        "left": [{"where": each.where, "what": each.what, "count": each.count} for each in plan.left],
    }
