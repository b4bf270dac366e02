"""Policy files: YAML, or JSON, which is also YAML.

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

from collections.abc import Iterator
from typing import Final

import yaml

from kustos.analysis.policy import Policy, PolicyError, Statement, StatementKind
from kustos.analysis.sentences import SentenceError, parse_sentence

POLICY_VERSION: Final = 1

POLICY_CHARACTERS_MAX: Final = 4_194_304
"""Longest policy accepted: tens of thousands of statements, and a minute of work at most."""

_STATEMENT_KEYS: Final = ("id", "never", "always", "reason", "super_users")


def parse_policy(text: str, file: str = "policy") -> Policy:
    """Return the policy of a file's text; raise `PolicyError` with the line, the value and the rule."""
    if len(text) > POLICY_CHARACTERS_MAX:
        raise PolicyError(
            file, 1, f"{text[:16]}...", f"a policy has at most {POLICY_CHARACTERS_MAX} characters"
        )
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise PolicyError(file, line, error.problem or "?", "this is not YAML") from error
    except yaml.YAMLError as error:
        raise PolicyError(file, 1, str(error).splitlines()[0], "this is not YAML") from error
    except RecursionError as error:
        raise PolicyError(file, 1, "...", "this is nested too deeply") from error
    return _PolicyReader(file).policy(root)


class _PolicyReader:
    """Reads nodes, which know their lines."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _wrong(self, node: yaml.Node | None, value: str, rule: str) -> PolicyError:
        return PolicyError(self._file, 1 if node is None else node.start_mark.line + 1, value, rule)

    def policy(self, root: yaml.Node | None) -> Policy:
        """Return the policy of a document."""
        fields = self._mapping(root, ("version", "statements"))
        if "version" not in fields:
            raise self._wrong(root, "version", f"is missing, begin with `version: {POLICY_VERSION}`")
        if self._text(fields["version"]) != str(POLICY_VERSION):
            value = self._text(fields["version"])
            raise self._wrong(fields["version"], value, f"the version is {POLICY_VERSION}")
        if "statements" not in fields:
            raise self._wrong(root, "statements", "is missing, list at least one")
        statements: list[Statement] = []
        lines: dict[str, int] = {}
        for number, node in enumerate(self._items(fields["statements"]), start=1):
            statement = self._statement(node, number)
            if statement.statement_id in lines:
                line = lines[statement.statement_id]
                raise self._wrong(node, statement.statement_id, f"the statement on line {line} has this id")
            lines[statement.statement_id] = statement.line
            statements.append(statement)
        return Policy(tuple(statements))

    def _statement(self, node: yaml.Node, number: int) -> Statement:
        fields = self._mapping(node, _STATEMENT_KEYS)
        kinds = [kind for kind in StatementKind if kind.value in fields]
        if len(kinds) != 1:
            raise self._wrong(node, "never, always", "a statement has exactly one of them")
        kind = kinds[0]
        sentence_node = fields[kind.value]
        sentence = self._text(sentence_node)
        try:
            parsed = parse_sentence(sentence)
        except SentenceError as error:
            raise self._wrong(sentence_node, error.value, error.rule) from error
        counts_super_users = "super_users" in fields and self._flag(fields["super_users"])
        if counts_super_users and kind is StatementKind.ALWAYS:
            raise self._wrong(
                fields["super_users"], "super_users", "belongs to `never`, super users always may"
            )
        return Statement(
            statement_id=self._text(fields["id"]) if "id" in fields else f"statement {number}",
            kind=kind,
            principals=parsed.principals,
            operations=parsed.operations,
            resource_type=parsed.resource_type,
            sites=parsed.sites,
            hosts=parsed.hosts,
            sentence=f"{kind.value}: {sentence}",
            reason=self._text(fields["reason"]) if "reason" in fields else None,
            counts_super_users=counts_super_users,
            file=self._file,
            line=node.start_mark.line + 1,
        )

    def _mapping(self, node: yaml.Node | None, keys: tuple[str, ...]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._wrong(node, self._shown(node), f"here should be a mapping with {', '.join(keys)}")
        fields: dict[str, yaml.Node] = {}
        for key_node, value_node in node.value:
            key = self._text(key_node)
            if key not in keys:
                raise self._wrong(key_node, key, f"nothing is called so here, there are {', '.join(keys)}")
            if key in fields:
                raise self._wrong(key_node, key, "is there twice")
            fields[key] = value_node
        return fields

    def _items(self, node: yaml.Node) -> Iterator[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            raise self._wrong(node, self._shown(node), "here should be a list of statements")
        yield from node.value

    def _text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self._wrong(node, self._shown(node), "here should be a text")
        return str(node.value)

    def _flag(self, node: yaml.Node) -> bool:
        value = self._text(node)
        if value not in {"true", "false"}:
            raise self._wrong(node, value, "here should be `true` or `false`")
        return value == "true"

    @staticmethod
    def _shown(node: yaml.Node | None) -> str:
        if node is None:
            return "end of the file"
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
