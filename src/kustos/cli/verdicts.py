"""How the verdicts of `verify` look."""

from collections.abc import Sequence

from kustos.analysis import CounterExample, Verdict
from kustos.analysis.lint.findings import acl_text
from kustos.authorizer import RuleKind
from kustos.cli.output import OutputFormat, counted, print_json, print_lines, print_paragraph

_RULES = {
    RuleKind.SUPER_USER: "the principal is a super user",
    RuleKind.DEFAULT_ALLOW: "no ACL names the resource, and the default then is to allow",
    RuleKind.DEFAULT_DENY: "no ACL allows it",
}


def print_verdicts(verdicts: Sequence[Verdict], output: OutputFormat) -> None:
    """Print them for a person, or as one document for a program."""
    broken = [verdict for verdict in verdicts if not verdict.holds]
    if output is OutputFormat.JSON:
        print_json({"holds": not broken, "statements": [verdict.to_json() for verdict in verdicts]})
        return
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
            _print_example(example)
        if verdict.is_cut:
            print_lines("        and more, see `--counter-examples-max`")
    held = len(verdicts) - len(broken)
    print_lines("", f"{counted(len(verdicts), 'statement')}: {held} held, {len(broken)} broken")


def _print_example(example: CounterExample) -> None:
    rule = example.decision.rule
    why = _RULES[rule.kind] if rule.binding is None else acl_text(rule.binding)
    verb = "may" if example.decision.allowed else "may not"
    probe = example.probe
    kind = probe.resource_type.name.lower().replace("_", " ")
    print_paragraph(
        f"{probe.principal} {verb} {probe.operation.name} {kind} `{probe.name}` from {probe.host}: {why}",
        indent="          ",
        first="        - ",
    )
