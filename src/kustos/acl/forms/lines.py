r"""Lines of a text: they end with `\n` only, since names may hold any other separator."""

from collections.abc import Iterator

from kustos.acl.forms.values import LINE_CHARACTERS_MAX, AclFormatError, Place


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
    """Finds the line of a position; cheap while positions mostly increase."""

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
