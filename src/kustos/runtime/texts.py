"""Texts from and for people: reads hand-written files up to a limit, and formats errors and lists."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

REASONLESS: Final = "the system gives no reason"


class TextFileError(Exception):
    """A text cannot be read, is too long, or is not UTF-8; the message gives file, reason and remedy."""


def reason_of(error: OSError) -> str:
    """Return the reason of a system error in lower case, and the remedy for a missing permission."""
    # other libraries set their own text, but the number is the system's
    text = os.strerror(error.errno) if error.errno else error.strerror or str(error)
    reason = (text or REASONLESS).lower()
    return f"{reason}, check its permissions" if isinstance(error, PermissionError) else reason


@contextmanager
def naming_the_setting(host: str, port: int, key: str) -> Iterator[None]:
    """Add the address and its setting to an OSError of binding an address."""
    try:
        yield
    except OSError as error:
        reason = reason_of(error)
        raise OSError(error.errno, f"cannot listen on `{host}:{port}`: {reason}, see `{key}`") from None


def words_of(error: BaseException) -> str:
    """Return the text of an error; for a system error the file and the reason, without numbers."""
    if not isinstance(error, OSError) or not error.errno:
        return str(error)
    if error.filename is None:
        # event loops store their context here, such as the address
        return error.strerror or reason_of(error)
    return f"`{error.filename}`: {reason_of(error)}"


def expanded(path: str | Path) -> Path:
    """Return a path with `~` or `~user` replaced; as in a shell, that of an unknown user stays."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for an unknown user


def read_text_file(path: Path, bytes_max: int, what: str = "file") -> str:
    """Return the text of a file without a byte order mark; errors call the file `what`.

    Raises `TextFileError`.
    """
    try:
        with path.open("rb") as file:
            return read_text_stream(file, bytes_max, str(path), what)
    except OSError as error:
        raise TextFileError(f"cannot read the {what} `{path}`: {reason_of(error)}") from error


def read_text_stream(stream: BinaryIO, bytes_max: int, name: str, what: str = "file") -> str:
    """Return the rest of a stream; raise `TextFileError`, or the `OSError` of the stream."""
    data = stream.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise TextFileError(f"the {what} `{name}` is larger than {bytes_max} bytes, split it or name another")
    return text_of_bytes(data, name)


def text_of_bytes(data: bytes, name: str) -> str:
    """Decode UTF-8; raise `TextFileError` naming the invalid line."""
    try:
        # spreadsheets put a mark before UTF-8
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextFileError(f"{name}, line {line}: this is not text in UTF-8") from None


_LIKENESS: Final = 0.8
"""The minimum similarity of a suggested name, from 0 to 1."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ..." with the most similar known name, an empty text if none is similar."""
    from difflib import get_close_matches

    alike = get_close_matches(name, list(known), n=1, cutoff=_LIKENESS)
    return f"did you mean `{alike[0]}`" if alike else ""


LISTED_MAX: Final = 8
"""The number of list items that a text names; it counts the others, and JSON has all."""


def listed(items: Sequence[str], last: str, shown_max: int = LISTED_MAX) -> str:
    """Return `a, b and c`, with `last` for "and"; only counts the end of a longer list."""
    if len(items) > shown_max:
        shown = max(1, shown_max - 1)
        return f"{', '.join(items[:shown])} {last} {len(items) - shown} more"
    if len(items) > 1:
        return f"{', '.join(items[:-1])} {last} {items[-1]}"
    return "".join(items)


def quoted(text: str) -> str:
    """Return a text in backticks."""
    return f"`{text}`"
