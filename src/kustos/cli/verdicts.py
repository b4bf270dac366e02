"""Output of the verdicts of `verify`."""

from collections.abc import Sequence
from typing import Final

from kustos.analysis import CounterExample, Verdict
from kustos.analysis.lint import acl_text
from kustos.authorizer import RuleKind
from kustos.cli.broker_settings import BrokerSettings
from kustos.cli.output import (
    Column,
    ColumnFormats,
    Columns,
    OutputFormat,
    Words,
    counted,
    print_lines,
    print_paragraph,
    print_rows,
)

_RULES = {
    RuleKind.SUPER_USER: "the principal is a super user",
    RuleKind.DEFAULT_ALLOW: "no ACL names the resource, and the default then is to allow",
    RuleKind.DEFAULT_DENY: "no ACL allows it",
}


VERDICTS: Final[Columns[Verdict]] = Columns(
    (
        Column("result", lambda verdict: "holds" if verdict.holds else "BROKEN"),
        Column("id", lambda verdict: verdict.statement.statement_id, title="statement"),
        Column("place", lambda verdict: f"{verdict.statement.file}:{verdict.statement.line}"),
        Column("sentence", lambda verdict: Words(verdict.statement.sentence), ColumnFormats.WIDE),
        Column("reason", lambda verdict: Words(verdict.statement.reason or ""), ColumnFormats.WIDE),
        Column(
            "counter_examples",
            lambda verdict: Words("; ".join(_example_text(each) for each in verdict.counter_examples)),
        ),
    ),
    lambda verdict: () if verdict.holds else (verdict.statement.statement_id,),
    "the broken statements, as `--statement` takes them",
)


def print_verdicts(verdicts: Sequence[Verdict], settings: BrokerSettings, output: OutputFormat) -> None:
    """Print the verdicts for a person, or as one document for a program."""
    print_rows(
        VERDICTS,
        verdicts,
        output,
        document=lambda: {
            "holds": all(verdict.holds for verdict in verdicts),
            "statements": [verdict.to_json() for verdict in verdicts],
            "settings": settings.to_json(),
        },
        tail=(_summary(verdicts),),
        people=lambda: _print_for_people(verdicts),
    )


def _summary(verdicts: Sequence[Verdict]) -> str:
    held = sum(verdict.holds for verdict in verdicts)
    return f"{counted(len(verdicts), 'statement')}: {held} held, {len(verdicts) - held} broken"


def _print_for_people(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        statement = verdict.statement
        print_lines(
            f"{'holds ' if verdict.holds else 'BROKEN'}  {statement.statement_id}  "
            f"({statement.file}:{statement.line})"
        )
        if verdict.holds:
            continue
        print_paragraph(statement.sentence, indent="        ")
        if statement.reason:
            print_paragraph(f"reason: {statement.reason}", indent="        ")
        for example in verdict.counter_examples:
            print_paragraph(_example_text(example), indent="          ", first="        - ")
        if verdict.is_cut:
            print_lines("        and more, see `--counter-examples-max`")
    print_lines("", _summary(verdicts))


def _example_text(example: CounterExample) -> str:
    rule = example.decision.rule
    why = _RULES[rule.kind] if rule.binding is None else acl_text(rule.binding)
    verb = "may" if example.decision.allowed else "may not"
    probe = example.probe
    kind = probe.resource_type.name.lower().replace("_", " ")
    return f"{probe.principal} {verb} {probe.operation.name} {kind} `{probe.name}` from {probe.host}: {why}"
