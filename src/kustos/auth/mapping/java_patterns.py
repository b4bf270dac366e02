"""Translates regular expressions of Java for RE2, which matches in linear time.

Java's Pattern and RE2 find the same matches for what this module accepts. It rewrites forms that the two
define differently, such as `\\s` and `.`. It refuses forms that RE2 does not support (look-around,
back-references, possessive quantifiers), forms whose meaning depends on the Java release (`\\b`), and forms
that rules do not need. Texts with line breaks never match, so `$` and `.` have the same meaning in both, and
the flags `s`, `m`, `d` have no effect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NoReturn

from kustos.auth.errors import MappingRuleError

MAX_PATTERN_CHARACTERS: Final = 1024
"""The maximum length of a pattern, which bounds the compiled program. Rules in use have less than a hundred
characters."""

Range = tuple[int, int]

_LAST_CODE_POINT: Final = 0x10FFFF
_DIGITS: Final[tuple[Range, ...]] = ((0x30, 0x39),)
_UPPER: Final[tuple[Range, ...]] = ((0x41, 0x5A),)
_LOWER: Final[tuple[Range, ...]] = ((0x61, 0x7A),)
_WORD: Final[tuple[Range, ...]] = (*_DIGITS, *_UPPER, (0x5F, 0x5F), *_LOWER)
_SPACE: Final[tuple[Range, ...]] = ((0x09, 0x0D), (0x20, 0x20))
_PUNCTUATION: Final[tuple[Range, ...]] = ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))

_PREDEFINED: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_POSIX: Final = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "Alpha": (*_UPPER, *_LOWER),
    "Digit": _DIGITS,
    "Alnum": (*_DIGITS, *_UPPER, *_LOWER),
    "Punct": _PUNCTUATION,
    "Space": _SPACE,
    "ASCII": ((0x00, 0x7F),),
    "XDigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
"""Java's POSIX classes; they are of ASCII only."""

_CONTROLS: Final = {"t": 0x09, "n": 0x0A, "r": 0x0D, "f": 0x0C, "a": 0x07, "e": 0x1B}
_HEX: Final = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})")
_PROPERTY: Final = re.compile(r"[pP]\{([A-Za-z]+)\}")
_REPETITION: Final = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
_GROUP_NAME: Final = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_GROUP_FLAGS: Final = re.compile(r"\?([ismd]*)(?:-([ismd]*))?([:)])")


@dataclass(frozen=True, slots=True)
class TranslatedPattern:
    """A pattern for RE2, with the numbers of its groups as in Java."""

    text: str
    group_count: int
    group_names: Mapping[str, int]


@dataclass(slots=True)
class _Level:
    """An open group: whether its content so far can match the empty string, and its flag `i`."""

    ignores_case: bool
    can_be_empty: bool = True
    """The current alternative."""
    alternative_can_be_empty: bool = False
    """Any earlier alternative."""


@dataclass(slots=True)
class _Translation:
    pattern: str
    position: int = 0
    out: list[str] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=lambda: [_Level(ignores_case=False)])
    group_count: int = 0
    group_names: dict[str, int] = field(default_factory=dict)
    atom: int | None = None
    """The index in `out` at which the last atom begins; None if no quantifier may follow."""
    atom_can_be_empty: bool = False
    starts: list[int] = field(default_factory=list)
    """The indexes in `out` at which open groups begin."""


def translate(pattern: str) -> TranslatedPattern:
    """Return Java's `pattern` for RE2; raise `MappingRuleError` if Java or this module refuses it."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise MappingRuleError(f"a pattern is longer than {MAX_PATTERN_CHARACTERS} characters, shorten it")
    state = _Translation(pattern)
    while state.position < len(pattern):
        character = pattern[state.position]
        if character in "*+?{":
            _quantifier(state)
        elif character == "(":
            _open(state)
        elif character == ")":
            _close(state)
        elif character == "|":
            _alternative(state)
        else:
            _single(state, character)
    if state.starts:
        _refuse(state, "a group is not closed")
    return TranslatedPattern("".join(state.out), state.group_count, state.group_names)


def _refuse(state: _Translation, reason: str) -> NoReturn:
    raise MappingRuleError(
        f"the pattern `{state.pattern}` cannot be used: {reason}, at character {state.position}"
    )


def _single(state: _Translation, character: str) -> None:
    """Read something that is neither a group nor a quantifier."""
    if character in "^$":
        state.position += 1
        _assertion(state, r"\A" if character == "^" else r"\z")
    elif character == ".":
        state.position += 1
        _atom(state, "(?s:.)")
    elif character == "[":
        _atom(state, _bracketed(state))
    elif character == "\\":
        _escape(state)
    else:
        state.position += 1
        _atom(state, _set(state, [(ord(character), ord(character))]))


def _assertion(state: _Translation, text: str) -> None:
    state.out.append(text)
    state.atom = None


def _atom(state: _Translation, text: str) -> None:
    """Add what matches one character."""
    state.atom, state.atom_can_be_empty = len(state.out), False
    state.out.append(text)
    _settle(state)


def _settle(state: _Translation) -> None:
    """Add the last atom to its level when no quantifier can make it optional any more."""
    following = state.pattern[state.position : state.position + 1]
    optional = following in {"*", "?"} or state.pattern.startswith(("{0,", "{0}"), state.position)
    if not (optional or state.atom_can_be_empty):
        state.levels[-1].can_be_empty = False


def _quantifier(state: _Translation) -> None:
    if state.atom is None:
        _refuse(state, "there is nothing to repeat")
    character = state.pattern[state.position]
    if character == "{":
        found = _REPETITION.match(state.pattern, state.position)
        if found is None:
            _refuse(state, r"`{` begins no repetition, write `\{` for the character")
        lowest, highest = int(found[1]), int(found[3] or found[1])
        if lowest > highest:
            _refuse(state, "a repetition ends below its beginning")
        repeats, text = highest > 1 or (bool(found[2]) and found[3] is None), found[0]
        state.position = found.end()
    else:
        repeats, text = character in "*+", character
        state.position += 1
    if repeats and state.atom_can_be_empty:
        _refuse(state, "it repeats what can match nothing")
    if state.pattern.startswith("?", state.position):
        text += "?"
        state.position += 1
    elif state.pattern.startswith("+", state.position):
        _refuse(state, "possessive quantifiers are not supported")
    state.out.append(text)
    state.atom = None


def _open(state: _Translation) -> None:
    state.starts.append(len(state.out))
    level = _Level(state.levels[-1].ignores_case)
    rest = state.position + 1
    if not state.pattern.startswith("?", rest):
        state.group_count += 1
        state.out.append("(")
        state.position = rest
    elif named := _GROUP_NAME.match(state.pattern, rest):
        if named[1] in state.group_names:
            _refuse(state, "two groups have one name")
        state.group_count += 1
        state.group_names[named[1]] = state.group_count
        state.out.append("(")
        state.position = named.end()
    elif flags := _GROUP_FLAGS.match(state.pattern, rest):
        ignores_case = (level.ignores_case or "i" in flags[1]) and "i" not in (flags[2] or "")
        state.position = flags.end()
        if flags[3] == ")":
            # from here to the end of the group around it
            state.starts.pop()
            state.levels[-1].ignores_case = ignores_case
            state.atom = None
            return
        level.ignores_case = ignores_case
        state.out.append("(?:")
    else:
        _refuse(state, "look-around, atomic groups and other flags than `i` are not supported")
    state.levels.append(level)
    state.atom = None


def _close(state: _Translation) -> None:
    if not state.starts:
        _refuse(state, r"`)` closes no group, write `\)` for the character")
    level = state.levels.pop()
    state.out.append(")")
    state.position += 1
    state.atom = state.starts.pop()
    state.atom_can_be_empty = level.can_be_empty or level.alternative_can_be_empty
    _settle(state)


def _alternative(state: _Translation) -> None:
    level = state.levels[-1]
    level.alternative_can_be_empty |= level.can_be_empty
    level.can_be_empty = True
    state.out.append("|")
    state.position += 1
    state.atom = None


def _escape(state: _Translation) -> None:
    """Read a backslash outside of brackets and what follows it."""
    letter = state.pattern[state.position + 1 : state.position + 2]
    if letter == "Q":
        end = state.pattern.find(r"\E", state.position + 2)
        quoted = state.pattern[state.position + 2 : end if end >= 0 else None]
        state.position = end + 2 if end >= 0 else len(state.pattern)
        for number, character in enumerate(quoted, start=1):
            state.atom, state.atom_can_be_empty = len(state.out), False
            state.out.append(_set(state, [(ord(character), ord(character))]))
            if number == len(quoted):
                _settle(state)
            else:
                state.levels[-1].can_be_empty = False
    elif letter in {"A", "z", "Z"}:
        state.position += 2
        _assertion(state, r"\A" if letter == "A" else r"\z")
    else:
        _atom(state, _set(state, _escaped(state)))


def _escaped(state: _Translation) -> list[Range]:
    """Return the characters that an escape matches, and move the position behind it."""
    start = state.position + 1
    letter = state.pattern[start : start + 1]
    if letter.lower() in _PREDEFINED:
        state.position = start + 1
        return _complement(_PREDEFINED[letter.lower()]) if letter.isupper() else [*_PREDEFINED[letter]]
    if letter in _CONTROLS:
        state.position = start + 1
        return [(_CONTROLS[letter], _CONTROLS[letter])]
    if found := _HEX.match(state.pattern, start):
        code = int(found[1] or found[2] or found[3], 16)
        if code > _LAST_CODE_POINT or 0xD800 <= code <= 0xDFFF:
            _refuse(state, "an escape is not a character of Unicode")
        state.position = found.end()
        return [(code, code)]
    if (found := _PROPERTY.match(state.pattern, start)) and found[1] in _POSIX:
        if state.levels[-1].ignores_case:
            _refuse(state, "a class by name under the flag `i` is not supported")
        state.position = found.end()
        return _complement(_POSIX[found[1]]) if letter == "P" else [*_POSIX[found[1]]]
    if not letter or (letter.isascii() and letter.isalnum()):
        _refuse(state, f"the escape `\\{letter}` is not supported")
    state.position = start + 1
    return [(ord(letter), ord(letter))]


def _bracketed(state: _Translation) -> str:
    """Read a class in brackets, and move the position behind it."""
    state.position += 1
    negated = state.pattern.startswith("^", state.position)
    state.position += negated
    first, ranges = state.position, list[Range]()
    while not state.pattern.startswith("]", state.position) or state.position == first:
        _refuse_in_brackets(state, first)
        item = _one_of_brackets(state)
        rest = state.pattern[state.position : state.position + 2]
        if rest[:1] == "-" and rest != "-]":
            state.position += 1
            _refuse_in_brackets(state, first)
            last = _one_of_brackets(state)
            if len(item) != 1 or len(last) != 1 or item[0][0] != item[0][1] or last[0][0] != last[0][1]:
                _refuse(state, "a range begins or ends with a class")
            item = [(item[0][0], last[0][0])]
            if item[0][0] > item[0][1]:
                _refuse(state, "a range ends below its beginning")
        ranges += item
    state.position += 1
    return _set(state, ranges, negated=negated)


def _refuse_in_brackets(state: _Translation, first: int) -> None:
    rest = state.pattern[state.position :]
    if not rest:
        _refuse(state, "a class in brackets is not closed")
    if rest[0] in "[]" or rest.startswith("&&"):
        _refuse(state, "nested classes, intersections and bare brackets in brackets are not supported")
    if rest[0] == "-" and state.position != first and not rest.startswith("-]"):
        _refuse(state, r"`-` is neither at an end of the brackets nor in a range, write `\-`")


def _one_of_brackets(state: _Translation) -> list[Range]:
    character = state.pattern[state.position]
    if character == "\\":
        return _escaped(state)
    state.position += 1
    return [(ord(character), ord(character))]


def _set(state: _Translation, ranges: list[Range], *, negated: bool = False) -> str:
    """Return a class of RE2; Java folds only the case of ASCII under `i`."""
    if state.levels[-1].ignores_case:
        ranges = [*ranges, *_other_case(ranges)]
    inside = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)
    return f"[{'^' if negated else ''}{inside}]"


def _other_case(ranges: list[Range]) -> list[Range]:
    found: list[Range] = []
    for (letters, shift), (low, high) in ((pair, each) for pair in _CASES for each in ranges):
        first, last = max(low, letters[0]), min(high, letters[1])
        if first <= last:
            found.append((first + shift, last + shift))
    return found


_CASES: Final = ((_UPPER[0], 0x20), (_LOWER[0], -0x20))


def _complement(ranges: tuple[Range, ...]) -> list[Range]:
    """Return all other characters; `ranges` are in order."""
    found, start = list[Range](), 0
    for low, high in ranges:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    return [*found, (start, _LAST_CODE_POINT)] if start <= _LAST_CODE_POINT else found
