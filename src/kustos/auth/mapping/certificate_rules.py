r"""`ssl.principal.mapping.rules`: they map the name in a certificate to the name of a user (KIP-371).
`kustos.ssl.group.mapping.rules` map the fields of a certificate to the names of groups.

    DEFAULT | RULE:<pattern>/<replacement>/[L|U]

Commas separate rules. The first rule whose pattern matches the whole name applies: it replaces every match in
the name, then changes the case. Each rule for groups applies to each field whose whole text it matches.
Within the pattern and the replacement, `/` is written `\/`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kustos.auth.errors import MappingRuleError, NoMatchingRuleError
from kustos.auth.groups import checked_groups
from kustos.auth.mapping.replacements import (
    DEFAULT_RULE,
    JavaPattern,
    Template,
    check_name,
    check_rule_count,
    escape_missing_groups,
    match_rule,
    template_of,
)

"""Kafka's default of `ssl.principal.mapping.rules`: the whole name."""

MAX_RULES_CHARACTERS: Final = 65_536
"""The maximum length of the setting; `MAX_RULES` rules of usual length have a tenth of it."""

MAX_FIELDS: Final = 128
"""The maximum number of names in a certificate that rules for groups are applied to: certificates of hosts
have up to a hundred, and all rules take milliseconds for this number."""

_PART: Final = r"(?:\\[^\n\r\x85\u2028\u2029]|[^\\/])*"
_RULE: Final = re.compile(rf"RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)")
_BLANKS: Final = re.compile(r"\s+", re.ASCII)
_SEPARATOR: Final = re.compile(r"\s*(?:,\s*|\Z)", re.ASCII)
_TRIMMED: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's `trim` removes."""

_CASES: Final[dict[str, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, "": str}


@dataclass(frozen=True, slots=True)
class _MappingRule:
    pattern: JavaPattern
    template: Template
    case: str

    def apply(self, name: str) -> str | None:
        """Return the user, None if the rule does not match."""
        if not self.pattern.matches(name):
            return None
        return _CASES[self.case](self.pattern.replace(name, self.template, every=True))


def ssl_principal_mapper(rules: str) -> Callable[[str], str]:
    """Return the function from the name in a certificate, in RFC 2253's form, to the name of the user.

    Raise `MappingRuleError` for rules that are not valid. The function raises `NoMatchingRuleError` for a
    name that no rule matches, that has more than `MAX_NAME_CHARACTERS`, or that has a line break; the caller
    must close such a connection. Empty rules match nothing, as in Kafka.
    """
    parsed = _parse_all(rules)

    def name_of(distinguished_name: str) -> str:
        check_name(distinguished_name)
        for rule in parsed:
            found = distinguished_name if rule is None else rule.apply(distinguished_name)
            if found is not None:
                return found
        raise NoMatchingRuleError(f"no rule applies to `{distinguished_name}`")

    return name_of


def ssl_group_mapper(rules: str) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return the function from the fields of a certificate, such as `OU=payments`, to the client's groups.

    Raise `MappingRuleError` for rules that are not valid. The function raises `NoMatchingRuleError` for too
    many fields and for a field that rules do not apply to, because it is too long or has a line break, and
    `GroupError`; the caller must close such a connection.
    """
    parsed = _parse_all(rules)
    if None in parsed:
        raise MappingRuleError(f"`{DEFAULT_RULE}` would make a group of every field, write `RULE:...`")

    def groups_of(fields: Sequence[str]) -> tuple[str, ...]:
        if len(fields) > MAX_FIELDS:
            raise NoMatchingRuleError(f"the certificate has more than {MAX_FIELDS} names")
        found: set[str] = set()
        for field in fields:
            check_name(field)
            groups = [rule.apply(field) for rule in parsed if rule is not None]
            found.update(group for group in groups if group is not None)
        return checked_groups(sorted(found))

    return groups_of


def _parse_all(rules: str) -> tuple["_MappingRule | None", ...]:
    if len(rules) > MAX_RULES_CHARACTERS:
        raise MappingRuleError(f"the rules have more than {MAX_RULES_CHARACTERS} characters, shorten them")
    parsed = tuple(_parse(text) for text in _split(rules.strip(_TRIMMED)) if text)
    check_rule_count(len(parsed))
    return parsed


def _split(rules: str) -> Iterator[str]:
    """Yield the rules' texts, empty ones included; commas within a rule's parts do not separate."""
    position = 0
    while position < len(rules):
        blank = _BLANKS.match(rules, position)
        position = position if blank is None else blank.end()
        rule = _RULE.match(rules, position)
        separator = None if rule is None else _SEPARATOR.search(rules, rule.end())
        if separator is None:
            separator = _SEPARATOR.search(rules, position)
        if separator is None:
            # the expression finds the end at the latest
            raise AssertionError(rules)
        yield rules[position : separator.start()]
        position = max(separator.end(), position + 1)


def _parse(text: str) -> _MappingRule | None:
    """Return the rule, None for `DEFAULT`; raise `MappingRuleError`."""
    found = match_rule(_RULE, text, "`RULE:pattern/replacement/` with `L` or `U` behind it")
    if found is None:
        return None
    pattern = JavaPattern.compile(found["pattern"])
    replacement = escape_missing_groups(found["replacement"], pattern.group_count)
    return _MappingRule(pattern, template_of(replacement, pattern), found["case"])
