"""The format of a file, found in its first lines: an unknown one is reported before a run, not quarantined.

Lines without a time say nothing about a format: every log may begin with them. If no line with a time is in a
form that kustos reads, the log is in another, and reading it would quarantine it as a whole. A log may have
no event for long: then a layout counts that most of its lines are in.
"""

import re
from collections.abc import Iterator, Sequence
from typing import IO, Final

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.lines import json_grammar
from kustos.pipeline.lines.envelopes import KUSTOS_KEYS
from kustos.pipeline.lines.json_values import JsonObject, MalformedError, read_object
from kustos.pipeline.lines.kafka_grammar import read_line
from kustos.pipeline.lines.known_values import INVALID
from kustos.pipeline.lines.layouts import compiled, detected, detected_envelope

FIRST_LINES_MAX: Final = 2_000
FIRST_BYTES_MAX: Final = 1 << 20
"""How far a format is looked for: the lines of a broker's start, its settings among them."""

SHOWN_CHARACTERS: Final = 160
"""So much of a line shows its format."""

JUDGED_LINES_MAX: Final = 200
"""Lines without an event by which a layout is judged: each is matched with all usual ones."""

_LINE_BYTES_MAX: Final = 1 << 16
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d")
_EPOCH_TIME: Final = re.compile(r"(?<!\d)1\d{9}(?:\d{3})?(?!\d)")
"""Seconds or milliseconds, as JSON often has its time."""

_OWN: Final = re.compile(r"\[\d{4}-\d\d-\d\d[ T]\d\d:")
"""Kafka's own layout; also of lines that are not events."""

_AUDIT: Final = re.compile(r"\bPrincipal = .* is (?:Allowed|Denied) [oO]peration = ")
_KNOWN_KEY: Final = re.compile(rf'"(?:{"|".join(sorted(KUSTOS_KEYS))})"\s*:')


class UnknownFormatError(AuditInputError):
    """A file is in no format that is read; the text shows a line of it, and names the setting to try."""


def layout_of(content: IO[bytes], place: str, layout: str | None) -> str | None:
    """Return the layout of a file's lines: that which was set, a usual one, or None for Kafka's own.

    Raises `UnknownFormatError`, `ConfigurationError` for a wrong `layout`, and what reading raises.
    """
    form = None if layout is None else compiled(layout)
    texts: list[str] = []
    for text in _first_lines(content):
        # the first event settles it: a smaller file than the limits would be read as a whole
        if form is not None and form.as_kafkas(text) is not None:
            return layout
        if form is None and _is_audit(text) and _is_event(text):
            return None
        texts.append(text)
    audit = [text for text in texts if _is_audit(text)]
    if form is not None and any(_is_event(text) for text in audit):
        return None
    timed = [text for text in texts if _has_time(text)]
    if audit:
        found = detected(audit, _is_event) if layout is None else None
        # cut or forged lines of the known form are quarantined
        is_known = found is not None or any(_OWN.match(text) for text in audit)
    elif any(_is_known_json(text) for text in texts):
        return None
    else:
        found, is_known = _without_events(timed, layout)
    if is_known:
        return found
    enveloped = _enveloped(texts, timed) if layout is None else None
    if enveloped is not None or not timed:
        return enveloped
    shown = (audit or timed)[0]
    tried = "" if layout is None else f", not in the layout `{layout}`"
    raise UnknownFormatError(
        f"`{place}` is in no format that is known{tried}: its line `{shown[:SHOWN_CHARACTERS]}`; "
        f"{_advice(shown)}, else take the file out of the folder or set `on_unknown_format` to `quarantine`"
    )


def _without_events(timed: Sequence[str], layout: str | None) -> tuple[str | None, bool]:
    """Return the layout of a log without an event as yet, None for Kafka's own, and whether it is known.

    Lines in Kafka's own layout may begin with a bracket, as a thread does: only all of them together show it.
    """
    own = [text for text in timed if _OWN.match(text)]
    found = None
    if layout is None:
        judged = (own or timed)[:JUDGED_LINES_MAX]
        found = detected(judged, lambda _: True)
        count = sum(found is not None and compiled(found).as_kafkas(text) is not None for text in judged)
        if count < (len(judged) if own else len(judged) / 2):
            found = None
    return found, found is not None or bool(own)


def _enveloped(texts: Sequence[str], timed: Sequence[str]) -> str | None:
    """Return the layout with an envelope by which lines are events, or most are of a broker; else None."""
    found, _ = detected_envelope(texts, _is_event)
    if found is not None:
        return found
    judged = timed[:JUDGED_LINES_MAX]
    found, count = detected_envelope(judged, lambda text: _OWN.match(text) is not None)
    return found if count >= len(judged) / 2 else None


def _advice(line: str) -> str:
    """Return what to do with a file that has such a line."""
    if not line.startswith("{"):
        return "if log4j wrote it set `layout` to its pattern, such as `%d{ISO8601} %p %m (%c) [%t]%n`"
    return (
        "it is JSON, but not an event of kustos or Confluent: if it has lines of a log as `message` or `log` "
        "set `layout` to `json` and the pattern of these lines"
    )


def _has_time(text: str) -> bool:
    """Return whether a line has a time; of JSON only whole objects count, as a banner may have a brace."""
    if not text.startswith("{"):
        return _TIME.search(text) is not None
    return bool(_object(text)) and (_TIME.search(text) or _EPOCH_TIME.search(text)) is not None


def _is_known_json(text: str) -> bool:
    if not text.startswith("{"):
        return False
    found = _object(text)
    return not KUSTOS_KEYS.isdisjoint(found) if found else _KNOWN_KEY.search(text) is not None


def _object(text: str) -> JsonObject:
    """Return the object that is the line, an empty one if it is none."""
    try:
        return read_object(text)
    except MalformedError:
        return {}


def _is_event(text: str) -> bool:
    """Return whether a line is an event, also a decision of another service than Kafka."""
    if text.startswith("{"):
        return "reason" not in json_grammar.read_line(text)
    found = read_line(text)
    return not isinstance(found, str) or found.startswith(INVALID)


def _is_audit(text: str) -> bool:
    """Return whether a line is text of an authorizer, in any layout."""
    return not text.startswith("{") and _AUDIT.search(text) is not None


def _first_lines(content: IO[bytes]) -> Iterator[str]:
    count, left = 0, FIRST_BYTES_MAX
    while left > 0 and count < FIRST_LINES_MAX:
        line = content.readline(min(left, _LINE_BYTES_MAX))
        if not line:
            break
        left -= len(line)
        if line.strip():
            count += 1
            yield line.decode("utf-8", "replace").rstrip("\r\n")
