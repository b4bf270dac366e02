"""Parses `sasl.jaas.config` as Kafka's JaasConfig does (with a Java StreamTokenizer).

    <login module class> <control flag> (<option>=<value>)* ;

Unquoted words begin with a letter, `_` or `$` and continue with these, digits, `.` and `-`; a number is not a
word. `/` begins a comment up to the end of the line or, as `/*`, up to `*/`. Any other value is in single or
double quotes, with Java's backslash escapes. Errors never quote the text: after a misplaced quote, a password
can look like any other token.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from types import MappingProxyType
from typing import Final, NamedTuple

from kustos.auth.errors import JaasError

ALLOWED_LOGIN_MODULES_CONFIG: Final = "org.apache.kafka.allowed.login.modules"
DISALLOWED_LOGIN_MODULES_CONFIG: Final = "org.apache.kafka.disallowed.login.modules"

DISALLOWED_LOGIN_MODULES: Final = frozenset(
    {"com.sun.security.auth.module.JndiLoginModule", "com.sun.security.auth.module.LdapLoginModule"}
)
"""Kafka 4.3.1's default of `org.apache.kafka.disallowed.login.modules`: they load remote objects."""

MAX_TEXT_SIZE: Final = 1_048_576
"""The maximum length of a configuration: about ten thousand PLAIN users; for more, use SCRAM."""

_SKIPPED: Final = re.compile(r"[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9_$.\-\xa0-\U0010ffff]*")
_SECTION: Final = re.compile(r"\w+\s*\{")
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]*)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")


@unique
class ControlFlag(Enum):
    """The effect of a login module's failure; irrelevant with one module."""

    REQUIRED = "required"
    REQUISITE = "requisite"
    SUFFICIENT = "sufficient"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginModulePolicy:
    """The login modules that a JAAS configuration may name; if `allowed` is given, `disallowed` has no
    effect."""

    allowed: frozenset[str] | None = None
    disallowed: frozenset[str] = DISALLOWED_LOGIN_MODULES

    def check(self, login_module: str) -> None:
        """Raise `JaasError` for a module that may not be used."""
        name = login_module.strip()
        if self.allowed is not None and name not in self.allowed:
            raise JaasError(
                f"login module `{name}` is not in `{ALLOWED_LOGIN_MODULES_CONFIG}`, use one that is"
            )
        if self.allowed is None and name in self.disallowed:
            raise JaasError(
                f"login module `{name}` is not allowed (`{DISALLOWED_LOGIN_MODULES_CONFIG}`), use another"
            )


DEFAULT_LOGIN_MODULE_POLICY: Final = LoginModulePolicy()


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module; option values are secrets and never shown."""

    login_module: str
    control_flag: ControlFlag
    options: Mapping[str, str] = field(repr=False)

    def __repr__(self) -> str:
        return f"JaasEntry({self.login_module}, {self.control_flag.value}, <{len(self.options)} options>)"


class _Token(NamedTuple):
    """`text` is None for a token that is not a word: a number, or a single character, which is in `mark`."""

    text: str | None
    mark: str
    position: int


def parse_jaas_config(
    text: str, policy: LoginModulePolicy = DEFAULT_LOGIN_MODULE_POLICY
) -> tuple[JaasEntry, ...]:
    """Return the entries, at least one; raise `JaasError` naming the mistake and its position."""
    if len(text) > MAX_TEXT_SIZE:
        raise JaasError(f"the JAAS config is longer than {MAX_TEXT_SIZE} characters")
    tokens = _tokens(text)
    try:
        entries = tuple(_entry(token, tokens) for token in tokens)
    except JaasError as error:
        cause = _cause(text)
        raise (JaasError(cause) if cause else error) from None
    if not entries:
        raise JaasError("the JAAS config names no login module")
    for entry in entries:
        policy.check(entry.login_module)
    return entries


def _cause(text: str) -> str:
    """Return a hint for a common mistake in an invalid text, empty if there is none."""
    given = text.strip()
    if given[:1] in {"'", '"'} and given[-1:] == given[0]:
        return "the whole value is in quotes, which belong to it in a properties file; leave them out"
    if _SECTION.match(given):
        return "it is a section of a JAAS file; give only its login module and options, without the braces"
    if not given.endswith(";") and text[-1:] in {" ", "\t"}:
        return (
            "the value ends with a blank and without a semicolon; a backslash continues a line only if "
            "nothing follows it, not even a blank"
        )
    return ""


def single_jaas_entry(text: str, policy: LoginModulePolicy = DEFAULT_LOGIN_MODULE_POLICY) -> JaasEntry:
    """Return the only entry; raise `JaasError` unless there is exactly one, as in Kafka."""
    entries = parse_jaas_config(text, policy)
    if len(entries) != 1:
        raise JaasError(f"the JAAS config has {len(entries)} login modules, it must be one")
    return entries[0]


def _entry(first: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    if first.text is None:
        raise JaasError(f"a login module class is expected at character {first.position}")
    flag = next(tokens, None)
    if flag is None:
        raise JaasError("the control flag is missing after the login module, write `required`")
    try:
        control_flag = ControlFlag((flag.text or "").lower())
    except ValueError:
        raise JaasError(
            f"there is no control flag at character {flag.position}, "
            "use `required`, `requisite`, `sufficient` or `optional`"
        ) from None
    options: dict[str, str] = {}
    for key in tokens:
        if key.text is None and key.mark == ";":
            return JaasEntry(first.text, control_flag, MappingProxyType(options))
        equals = next(tokens, None)
        value = next(tokens, None) if equals is not None and equals.mark == "=" else None
        if key.text is None or value is None or value.text is None:
            raise JaasError(f'the option at character {key.position} is not written `name="value"`')
        options[key.text] = value.text
    raise JaasError("the login module's entry does not end with a semicolon, write `;` after the last option")


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        if skipped := _SKIPPED.match(text, position):
            position = skipped.end()
        elif text[position] in "\"'":
            value, end = _quoted(text, position)
            yield _Token(value, "", position)
            position = end
        elif word := _WORD.match(text, position):
            yield _Token(word[0], "", position)
            position = word.end()
        elif number := _NUMBER.match(text, position):
            yield _Token(None, "0", position)
            position = number.end()
        else:
            yield _Token(None, text[position], position)
            position += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    """Return the quoted value and its end; a line break closes it too, as in Java."""
    quote, position = text[start], start + 1
    out: list[str] = []
    while position < len(text) and text[position] not in "\r\n":
        character = text[position]
        position += 1
        if character == quote:
            return "".join(out), position
        if character == "\\" and position < len(text):
            if octal := _OCTAL.match(text, position):
                character, position = chr(int(octal[0], 8)), octal.end()
            else:
                character = _ESCAPES.get(text[position], text[position])
                position += 1
        out.append(character)
    return "".join(out), position
