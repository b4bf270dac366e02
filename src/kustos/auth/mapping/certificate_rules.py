r"""`ssl.principal.mapping.rules`: they map the name in a certificate to the name of a user (KIP-371).

    DEFAULT | RULE:<pattern>/<replacement>/[L|U]

Commas separate rules. The first rule whose pattern matches the whole name applies: it replaces every match in
the name, then changes the case. Within the pattern and the replacement, `/` is written `\/`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from kustos.auth.errors import MappingRuleError, NoMatchingRuleError
from kustos.auth.mapping.replacements import (
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
    if len(rules) > MAX_RULES_CHARACTERS:
        raise MappingRuleError(f"the rules have more than {MAX_RULES_CHARACTERS} characters, shorten them")
    parsed = tuple(_parse(text) for text in _split(rules.strip(_TRIMMED)) if text)
    check_rule_count(len(parsed))

    def name_of(distinguished_name: str) -> str:
        check_name(distinguished_name)
        for rule in parsed:
            found = distinguished_name if rule is None else rule.apply(distinguished_name)
            if found is not None:
                return found
        raise NoMatchingRuleError(f"no rule applies to `{distinguished_name}`")

    return name_of


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
