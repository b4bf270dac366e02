"""`sasl.kerberos.principal.to.local.rules`: they map a Kerberos principal to the name of a user.

    DEFAULT | RULE:[<n>:<format>](<pattern>)s/<from>/<to>/g/[L|U]

A rule applies to names of n components (service, and optionally host). The format builds a text from them:
`$0` is the realm, `$1` the service, `$2` the host. If the pattern matches the whole text, `from` is replaced
in it: once, or everywhere with `g`. `DEFAULT` returns the service of names in the node's own realm. The first
rule that applies determines the user.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kustos.auth.errors import MappingRuleError, NoMatchingRuleError
from kustos.auth.mapping.replacements import (
    JavaPattern,
    Template,
    check_name,
    check_rule_count,
    match_rule,
    template_of,
)

_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"RULE:\[(?P<count>[0-9]*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<source>[^/]*)/(?P<target>[^/]*)/(?P<every>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER: Final = re.compile(r"([^$]*)(\$[0-9]*)?")
_MAX_DIGITS: Final = 9
"""Java's integers have at most this many digits; a name has at most two components."""

_CASES: Final[dict[str | None, Callable[[str], str]]] = {"L": str.lower, "U": str.upper, None: str}


@dataclass(frozen=True, slots=True)
class KerberosName:
    """A principal: `service/host@REALM`, `service@REALM`, or a simple name without `@`."""

    service: str
    host: str | None = None
    realm: str | None = None

    @classmethod
    def parse(cls, text: str) -> "KerberosName":
        """Return the name; raise `NoMatchingRuleError` if it has more parts than a host and a realm."""
        found = _NAME.fullmatch(text)
        if found is not None:
            return cls(found[1], found[2], found[3])
        if "@" in text:
            raise NoMatchingRuleError(f"malformed Kerberos name: `{text}`")
        return cls(text)

    @property
    def components(self) -> tuple[str, ...]:
        """The values of `$0`, `$1` and `$2` in a format: realm, service and host."""
        return (self.realm or "", self.service, *(() if self.host is None else (self.host,)))


@dataclass(frozen=True, slots=True)
class _LocalRule:
    component_count: int
    format: str
    match: JavaPattern | None
    source: JavaPattern | None
    template: Template
    every: bool
    case: str | None

    def apply(self, components: tuple[str, ...]) -> str | None:
        if len(components) - 1 != self.component_count:
            return None
        base = _fill_in(self.format, components)
        if self.match is not None and not self.match.matches(base):
            return None
        found = base if self.source is None else self.source.replace(base, self.template, every=self.every)
        return _CASES[self.case](_simple(found))


def kerberos_shortener(rules: Sequence[str], default_realm: str) -> Callable[[str], str]:
    """Return the function from a principal's text to the name of the user.

    `default_realm`: the node's own, empty if it has none. Raise `MappingRuleError` for rules that are not
    valid. The function raises `NoMatchingRuleError` for a name that is malformed, too long or contains a line
    break, for a name that no rule applies to, and if the result contains `/` or `@`. As in Kafka, a name
    without a realm is always the user itself.
    """
    check_rule_count(len(rules))
    parsed = tuple(_parse(text) for text in rules)

    def name_of(principal: str) -> str:
        check_name(principal)
        name = KerberosName.parse(principal)
        if name.host is None and name.realm is None:
            return name.service
        for rule in parsed:
            if rule is not None:
                found = rule.apply(name.components)
            else:
                found = _simple(name.service) if name.realm == default_realm else None
            if found is not None:
                return found
        raise NoMatchingRuleError(f"no rule applies to `{principal}`")

    return name_of


def _parse(text: str) -> _LocalRule | None:
    """Return the rule, None for `DEFAULT`; raise `MappingRuleError`."""
    found = match_rule(_RULE, text, "`RULE:[n:$1@$0](pattern)s/from/to/g` with `/L` or `/U` behind it")
    if found is None:
        return None
    if not found["count"] or len(found["count"]) > _MAX_DIGITS:
        raise MappingRuleError(f"invalid rule: `{text}` has no number of components, write it before the `:`")
    source = None if found["source"] is None else JavaPattern.compile(found["source"])
    rule = _LocalRule(
        int(found["count"]),
        found["format"],
        None if found["match"] is None else JavaPattern.compile(found["match"]),
        source,
        () if source is None else template_of(found["target"], source),
        found["every"] is not None,
        found["case"],
    )
    if rule.component_count in {1, 2}:
        _fill_in(rule.format, ("",) * (rule.component_count + 1))
    return rule


def _fill_in(text: str, components: tuple[str, ...]) -> str:
    """Return the format with its numbers replaced; raise `MappingRuleError` for one that is out of range."""
    out: list[str] = []
    for plain, reference in _PARAMETER.findall(text):
        out.append(plain)
        if reference:
            number = reference[1:]
            if not number or len(number) > _MAX_DIGITS or int(number) >= len(components):
                raise MappingRuleError(
                    f"index `{number}` in `{text}` is outside of the valid range 0 to {len(components) - 1}"
                )
            out.append(components[int(number)])
    return "".join(out)


def _simple(name: str) -> str:
    if "/" in name or "@" in name:
        raise NoMatchingRuleError(f"`{name}` is not a simple name, after a rule of Kerberos")
    return name
