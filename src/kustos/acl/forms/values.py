"""Shared parts of the text formats: their names, lines, places in a text, an ACL with its place, the error.

Lines end with `\\n` only, because names may contain any other separator.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Final

from kustos.acl.values import AclBinding, AclValueError

LINE_CHARACTERS_MAX: Final = 1 << 20
"""The longest accepted line: three texts of the largest size in a record, every character escaped."""

TEXT_CHARACTERS_MAX: Final = 256 << 20
"""The longest accepted text: well over a million ACLs, several times as many as a cluster can keep in
memory."""

FILE_BYTES_MAX: Final = 2 * TEXT_CHARACTERS_MAX
"""The longest accepted file: over a million ACLs in the most verbose format."""

FIELD_BYTES_MAX: Final = 32_767
"""The longest name, principal or host in UTF-8: the limit of records in Kafka's log."""


@unique
class AclForm(StrEnum):
    """A text format of ACLs; the values are the values of `--form`."""

    KAFKA_ACLS = "kafka-acls"
    JSON = "json"
    JSON_LINES = "json-lines"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Place:
    """A line (from 1) of a text; `name` identifies the text in messages and is usually a path."""

    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.name}, line {self.line}"


class AclFormatError(AclValueError):
    """A text that is not a valid set of ACLs, or an ACL that a format cannot write.

    `place` is None when writing; `value` is the invalid value, `rule` the rule that it violates.
    """

    def __init__(self, place: Place | None, value: str, rule: str) -> None:
        self.place = place
        self.value = value
        self.rule = rule
        where = "" if place is None else f"{place}: "
        super().__init__(f"{where}`{_shortened(value)}` {rule}" if value else f"{where}{rule}")


@dataclass(frozen=True, slots=True)
class LocatedBinding:
    """An ACL and the line of its text where it begins."""

    binding: AclBinding
    line: int


VALUE_CHARACTERS_SHOWN_MAX: Final = 200
"""The maximum length of a value in an error: enough to find it, and short enough for a screen."""


def _shortened(value: str) -> str:
    if len(value) <= VALUE_CHARACTERS_SHOWN_MAX:
        return value
    return f"{value[:VALUE_CHARACTERS_SHOWN_MAX]}..."


def numbered_lines(text: str, name: str) -> Iterator[tuple[int, str]]:
    r"""Yield each line without its `\n`, with its number from 1; raise `AclFormatError` for a huge one."""
    start, number = 0, 1
    while start < len(text):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        if end - start > LINE_CHARACTERS_MAX:
            raise AclFormatError(
                Place(name, number),
                "",
                f"the line has more than {LINE_CHARACTERS_MAX} characters, which no ACL needs",
            )
        yield number, text[start:end]
        start, number = end + 1, number + 1


class LineCounter:
    """Finds the line of a position; fast as long as positions mostly increase."""

    __slots__ = ("_line", "_position", "_text")

    def __init__(self, text: str, first_line: int = 1) -> None:
        self._text = text
        self._position = 0
        self._line = first_line

    def at(self, position: int) -> int:
        """Return the number of the line that holds a position."""
        if position >= self._position:
            self._line += self._text.count("\n", self._position, position)
        else:
            self._line -= self._text.count("\n", position, self._position)
        self._position = position
        return self._line
