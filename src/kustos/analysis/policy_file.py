"""Policy files, in the form of `sentence_file`.

    version: 1
    statements:
      - id: payments-writers
        never: anyone but User:pay-* WRITE topics under payments.
        reason: money moves there
      - always: User:app READ topics under orders. from 10.0.0.0/8

Each statement has `never` or `always`, a sentence (see `sentences`). `id` names it in reports and
`reason` explains it. `super_users: true` extends a `never` to super users, to whom ACLs do not
apply.
"""

from typing import Final

import yaml

from kustos.analysis.policy import Policy, Statement, StatementKind
from kustos.analysis.sentence_file import SentenceFile

POLICY_VERSION: Final = 1

_STATEMENT_KEYS: Final = ("id", "never", "always", "reason", "super_users")


def parse_policy(text: str, file: str = "policy") -> Policy:
    """Return the policy in a file's text; raise `PolicyError` with the line, the value and the rule."""
    reader = SentenceFile(text, file)
    statements: dict[str, Statement] = {}
    for number, node in enumerate(reader.entries(POLICY_VERSION, "statements"), start=1):
        statement = _statement(reader, node, number)
        if (other := statements.get(statement.statement_id)) is not None:
            raise reader.wrong(
                node, statement.statement_id, f"the statement on line {other.line} has this id"
            )
        statements[statement.statement_id] = statement
    return Policy(tuple(statements.values()))


def _statement(reader: SentenceFile, node: yaml.Node, number: int) -> Statement:
    fields = reader.mapping(node, _STATEMENT_KEYS)
    kinds = [kind for kind in StatementKind if kind.value in fields]
    if len(kinds) != 1:
        raise reader.wrong(node, "never, always", "a statement has exactly one of them")
    kind = kinds[0]
    sentence = reader.text(fields[kind.value])
    parsed = reader.sentence(fields[kind.value], sentence)
    counts_super_users = reader.flag(fields.get("super_users"))
    if counts_super_users and kind is StatementKind.ALWAYS:
        rule = "belongs to `never`, super users always may"
        raise reader.wrong(fields["super_users"], "super_users", rule)
    return Statement(
        statement_id=reader.text(fields["id"]) if "id" in fields else f"statement {number}",
        kind=kind,
        principals=parsed.principals,
        operations=parsed.operations,
        resource_type=parsed.resource_type,
        sites=parsed.sites,
        hosts=parsed.hosts,
        sentence=f"{kind.value}: {sentence}",
        reason=reader.text(fields["reason"]) if "reason" in fields else None,
        counts_super_users=counts_super_users,
        file=reader.file,
        line=node.start_mark.line + 1,
    )
