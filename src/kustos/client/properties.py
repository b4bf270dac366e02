r"""Parses Java's `.properties` format as `java.util.Properties.load` does.

`#` and `!` begin comments; a key ends at the first unescaped `=`, `:` or blank; a backslash at the end of a
line joins the next one without its leading blanks; `\t \n \r \f \uXXXX` are escapes, and a backslash before
any other character is dropped. The last of several equal keys counts.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kustos.client.errors import SettingsError
from kustos.runtime import reason_of
from kustos.settings import settings_of

MAX_FILE_BYTES: Final = 1024 * 1024
"""The limit of a file's size: people write these files, so a larger one is a mistake."""

BYTE_ORDER_MARK: Final = "\ufeff"

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    """Return keys and values of a file (UTF-8); raise `SettingsError` if it cannot be read."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError(f"`{path}` is larger than {MAX_FILE_BYTES} bytes, which no configuration is")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read the properties file `{path}`: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"the properties file `{path}` is not UTF-8 text") from error
    if text.startswith(BYTE_ORDER_MARK):
        raise SettingsError(
            f"`{path}` begins with a byte order mark, which Java takes for a part of the first key; "
            "save it as UTF-8 without the mark"
        )
    try:
        return parse_properties(text)
    except SettingsError as error:
        raise SettingsError(f"`{path}`: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values of a text; raise `SettingsError` for a malformed escape."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        key_end = _find_key_end(line)
        value_at = key_end
        while value_at < len(line) and line[value_at] in _BLANKS:
            value_at += 1
        if value_at < len(line) and line[value_at] in "=:":
            value_at += 1
            while value_at < len(line) and line[value_at] in _BLANKS:
                value_at += 1
        found[_unescape(line[:key_end], number)] = _unescape(line[value_at:], number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, line) with continuations joined and comments left out."""
    whole, started = "", 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        part = line.lstrip(_BLANKS)
        if not whole:
            if not part or part[0] in "#!":
                continue
            started = number
        whole += part
        if (len(whole) - len(whole.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        yield started, whole
        whole = ""
    if whole:
        yield started, whole


def whole_number(properties: Mapping[str, str], key: str, unit: str, least: int = 1) -> int | None:
    """Return the number of a key, None if it is not set; raise `SettingsError` for one below 0 or 1.

    The number has 31 bits, like Kafka's type INT. `unit` is for the message.
    """
    text = properties.get(key, "").strip()
    if not text:
        return None
    # Python refuses to parse numbers of thousands of digits
    if not (text.isascii() and text.isdigit() and len(text) <= 10) or not least <= int(text) < 2**31:
        bound = "above 0" if least else "from 0 up"
        raise SettingsError(f"`{key}` is `{text}`, use a whole number of {unit} {bound}")
    return int(text)


def group_fields(group: type, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the declared fields of a group; a blank value is the default.

    Raise `SettingsError` naming the wrong key.
    """
    found: dict[str, Any] = {}
    for name, setting in settings_of(group).items():
        text = properties.get(setting.name, "").strip()
        try:
            found[name] = setting.kind.read(text) if text else setting.default
        except ValueError:
            raise SettingsError(f"`{setting.name}` is `{text}`, use {setting.kind.takes}") from None
    return found


def _find_key_end(line: str) -> int:
    escaped = False
    for index, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "=: \t\f":
            return index
    return len(line)


def _unescape(text: str, line_number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        escaped = next(characters, "")
        if escaped != "u":
            out.append(_ESCAPES.get(escaped, escaped))
            continue
        digits = "".join(next(characters, "") for _ in range(4))
        if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
            raise SettingsError(f"line {line_number} has a `\\u` without four hexadecimal digits")
        out.append(chr(int(digits, 16)))
    return "".join(out)
