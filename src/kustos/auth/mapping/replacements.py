"""Matches and replaces as Java's Matcher does, in a time that no client's name can increase.

A client with a certificate or a ticket chooses parts of its name. So names are limited, and the engine is
RE2: a pattern such as `(a+)+b`, which takes a backtracking engine minutes, takes RE2 microseconds.
`replace_all` may scan the name once for each of its characters.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kustos.auth.errors import MappingRuleError, NoMatchingRuleError
from kustos.auth.mapping.java_patterns import translate
from kustos.extras import needs_extra

if TYPE_CHECKING:
    import re2

DEFAULT_RULE: Final = "DEFAULT"

MAX_NAME_CHARACTERS: Final = 1024
"""The maximum length of a name that rules are applied to: X.520 allows 64 for most parts of a name. Usual
names have a twentieth of it, and 1024 scans of it take milliseconds."""

MAX_RULES: Final = 128
"""The maximum number of rules in one setting: a name that no rule matches is compared with all of them."""

_MAX_PROGRAM_BYTES: Final = 1_048_576
"""RE2's memory limit for one compiled pattern; a pattern that needs more is refused at startup."""

_LINE_BREAK: Final = re.compile("[\n\r\x85\u2028\u2029]")
_GROUP_REFERENCE: Final = re.compile(r"\$(\d+)", re.ASCII)
_MAX_INT32_DIGITS: Final = 9

Template = tuple[str | int, ...]
"""A replacement: texts, and numbers of groups."""


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A compiled pattern of Java."""

    text: str
    group_count: int
    group_names: dict[str, int] = field(repr=False)
    _compiled: "re2._Regexp" = field(repr=False)

    @classmethod
    def compile(cls, text: str) -> "JavaPattern":
        """Return the pattern; raise `MappingRuleError` for what Java or kustos refuses."""
        with needs_extra("mapping", "a mapping rule"):
            import re2
        translated = translate(text)
        options = re2.Options()
        options.max_mem = _MAX_PROGRAM_BYTES
        options.log_errors = False
        try:
            compiled = re2.compile(translated.text, options)
        except re2.error:
            raise MappingRuleError(f"the pattern `{text}` cannot be used: it repeats too much") from None
        return cls(text, translated.group_count, dict(translated.group_names), compiled)

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        return self._compiled.fullmatch(name) is not None

    def replace(self, name: str, template: Template, *, every: bool) -> str:
        """Return the name with its first match replaced, or every one.

        As in Java, an empty match may directly follow another match.
        """
        out: list[str] = []
        copied = position = 0
        while position <= len(name) and (found := self._compiled.search(name, position)) is not None:
            start, end = found.span()
            out.append(name[copied:start])
            out.extend(part if isinstance(part, str) else found.group(part) or "" for part in template)
            copied = end
            position = end if end > start else end + 1
            if not every:
                break
        return "".join([*out, name[copied:]])


def check_name(name: str) -> None:
    """Raise `NoMatchingRuleError` for a name that is too long or contains a line break."""
    if len(name) > MAX_NAME_CHARACTERS:
        raise NoMatchingRuleError(f"the name is longer than {MAX_NAME_CHARACTERS} characters")
    if _LINE_BREAK.search(name):
        raise NoMatchingRuleError("the name has a line break in it")


def match_rule(expression: re.Pattern[str], text: str, form: str) -> re.Match[str] | None:
    """Return the parts of a rule, None for `DEFAULT`; raise `MappingRuleError`.

    `form` is the syntax of a rule, for the message.
    """
    if text == DEFAULT_RULE:
        return None
    found = expression.match(text)
    end = len(DEFAULT_RULE) if text.startswith(DEFAULT_RULE) else 0 if found is None else found.end()
    if found is None or end != len(text):
        raise MappingRuleError(
            f"invalid rule: `{text}`, unmatched substring: `{text[end:]}`; write `{DEFAULT_RULE}` or {form}"
        )
    return found


def check_rule_count(count: int) -> None:
    """Raise `MappingRuleError` if there are more rules than `MAX_RULES`."""
    if count > MAX_RULES:
        raise MappingRuleError(f"there are {count} rules, at most {MAX_RULES} are applied")


def template_of(replacement: str, pattern: JavaPattern) -> Template:
    """Parse a replacement in Java's notation; raise `MappingRuleError` if Java would fail on a match.

    `$n` is group n, with as many digits as form the number of an existing group; `${name}` is a named group;
    a backslash quotes the next character.
    """
    parts: list[str | int] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        if character == "\\":
            if position + 1 == len(replacement):
                raise _unusable(replacement, "it ends in a backslash")
            parts.append(replacement[position + 1])
            position += 2
        elif character == "$":
            group, position = _group(replacement, position + 1, pattern)
            parts.append(group)
        else:
            parts.append(character)
            position += 1
    return tuple(parts)


def _group(replacement: str, position: int, pattern: JavaPattern) -> tuple[int, int]:
    """Return the group that a reference names, and the position behind it."""
    if replacement.startswith("{", position):
        end = replacement.find("}", position)
        name = replacement[position + 1 : end] if end >= 0 else ""
        if name not in pattern.group_names:
            raise _unusable(replacement, f"the pattern has no group named `{name}`")
        return pattern.group_names[name], end + 1
    digits = _GROUP_REFERENCE.match(replacement, position - 1)
    if digits is None:
        raise _unusable(replacement, r"`$` names no group, write `\$` for the character")
    group, used = int(digits[1][0]), 1
    if group > pattern.group_count:
        raise _unusable(replacement, f"the pattern has no group {group}")
    for digit in digits[1][1:]:
        if group * 10 + int(digit) > pattern.group_count:
            break
        group, used = group * 10 + int(digit), used + 1
    return group, position + used


def escape_missing_groups(replacement: str, group_count: int) -> str:
    """Return a replacement with a backslash before references to missing groups.

    Kafka does this for rules of certificates, and this function has the same flaws: it changes nothing if the
    pattern has no groups, and the backslash for a second reference is at the wrong position, because the
    first backslash has shifted it.
    """
    if group_count == 0:
        return replacement
    escaped = replacement
    for found in _GROUP_REFERENCE.finditer(replacement):
        digits = found[1]
        if digits.startswith("0"):
            continue
        if len(digits) > _MAX_INT32_DIGITS:
            raise _unusable(replacement, "a group's number is too long")
        group = int(digits)
        while group > group_count and group >= 10:
            group //= 10
        if group > group_count:
            escaped = f"{escaped[: found.start()]}\\{escaped[found.start() :]}"
    return escaped


def _unusable(replacement: str, reason: str) -> MappingRuleError:
    return MappingRuleError(f"the replacement `{replacement}` cannot be used: {reason}")
