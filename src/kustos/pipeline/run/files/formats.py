"""The format of a file, found in its first lines: an unknown one is told before a run, not quarantined.

Lines without a time say nothing about a format: every log may begin with them. If no line with a time is in a
form that kustos reads, the log is in another, and reading it would quarantine it as a whole.
"""

import re
from typing import IO, Final

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.lines.kafka_grammar import read_line
from kustos.pipeline.lines.layouts import compiled, detected

FIRST_LINES_MAX: Final = 2_000
FIRST_BYTES_MAX: Final = 1 << 20
"""How far a format is looked for: the lines of a broker's start, its settings among them."""

SHOWN_CHARACTERS: Final = 160
"""So much of a line tells its format."""

_LINE_BYTES_MAX: Final = 1 << 16
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d")
_KNOWN: Final = re.compile(r"\{|\[\d{4}-\d\d-\d\d[ T]\d\d:")
"""JSON, and Kafka's own layout; also of lines that are no events."""
_AUDIT: Final = re.compile(r"\bPrincipal = .* is (?:Allowed|Denied) [oO]peration = ")


class UnknownFormatError(AuditInputError):
    """A file is in no format that is read; the text shows a line of it, and names the setting to try."""


def layout_of(content: IO[bytes], place: str, layout: str | None) -> str | None:
    """Return the layout of a file's lines: that which was set, a usual one, or None for Kafka's own.

    Raises `UnknownFormatError`, `ConfigurationError` for a wrong `layout`, and what reading raises.
    """
    texts = _first_lines(content)
    audit = [text for text in texts if _AUDIT.search(text)]
    if layout is not None:
        form = compiled(layout)
        if any(form.as_kafkas(text) is not None for text in texts):
            return layout
    if any(_is_event(text) for text in audit):
        return None
    found = detected(audit, _is_event) if layout is None else None
    stamped = [text for text in texts if _TIME.search(text)]
    if found is not None or (not audit and any(_KNOWN.match(text) for text in texts)) or not stamped:
        return found
    if audit and any(_KNOWN.match(text) for text in audit):
        return None  # cut or forged lines of the known form
    shown = (audit or stamped)[0][:SHOWN_CHARACTERS]
    tried = "" if layout is None else f", not in the layout `{layout}`"
    raise UnknownFormatError(
        f"`{place}` is in no format that is known{tried}: its line `{shown}`; if log4j wrote it set "
        "`layout` to its pattern, such as `%d{ISO8601} %p %m (%c) [%t]%n`, else take the file out of "
        "the folder or set `on_unknown_format` to `quarantine`"
    )


def _is_event(text: str) -> bool:
    return not isinstance(read_line(text), str)


def _first_lines(content: IO[bytes]) -> list[str]:
    texts: list[str] = []
    left = FIRST_BYTES_MAX
    while left > 0 and len(texts) < FIRST_LINES_MAX:
        line = content.readline(min(left, _LINE_BYTES_MAX))
        if not line:
            break
        left -= len(line)
        if line.strip():
            texts.append(line.decode("utf-8", "replace").rstrip("\r\n"))
    return texts
