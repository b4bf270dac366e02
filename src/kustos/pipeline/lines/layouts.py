"""Layouts of log4j: lines in any pattern of its own language, brought into the one that Kafka ships.

A pattern like `%d{ISO8601} %p %m (%c) [%t]%n` (Strimzi's) becomes a regular expression; a line that it
matches becomes `[time] LEVEL message (logger)`, which the grammar of Kafka's text then reads with all its
checks. Every variable part but the message is limited, and the message comes once, so that matching takes
linear time. Names of `envelopes` may come before the pattern, the outer one first, or alone: `cri`,
`cri json`, `kubectl %d{ISO8601} %p %m (%c) [%t]%n`. Without a pattern the line within is in Kafka's own
layout, is JSON of kustos, or has its time from the envelope.
Source: log4j's PatternLayout, versions 1 and 2, and Java's SimpleDateFormat.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.lines.envelopes import CRI, ENVELOPES, JSON, Content

LAYOUT_CHARACTERS_MAX: Final = 500
"""Longer than any pattern that somebody writes."""

USUAL_LAYOUTS: Final = (
    "%d{ISO8601} %p %m (%c) [%t]%n",
    "%d %-5p %m (%c)%n",
    "%d %-5p [%t] %c - %m%n",
    "%d [%t] %-5p %c - %m%n",
    "%d %-5p %c - %m%n",
    "%d %-5p %c: %m%n",
    "%d{yyyy-MM-dd HH:mm:ss} %-5p [%t] %c:%L - %m%n",
    "%d{yyyy-MM-dd HH:mm:ss} %-5p %c:%L - %m%n",
    "[%d] %p [%t] %m (%c)%n",
    "[%p] %d [%t] %c %M - %m%n",
)
"""Tried where no layout is set: of Strimzi, of log4j's manuals, of Confluent's operator."""

_NAMED_DATES: Final = {
    "": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT_PERIOD": "yyyy-MM-dd HH:mm:ss.SSS",
    "ISO8601": "yyyy-MM-dd{T}HH:mm:ss,SSS",
    "ISO8601_PERIOD": "yyyy-MM-dd{T}HH:mm:ss.SSS",
    "ISO8601_OFFSET_DATE_TIME_HHMM": "yyyy-MM-dd'T'HH:mm:ss,SSSZ",
    "ISO8601_OFFSET_DATE_TIME_HHCMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXXX",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
}
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE_PARTS: Final = {
    "yyyy": r"(?P<year>\d{4})",
    "uuuu": r"(?P<year>\d{4})",
    "MMM": rf"(?P<month_name>{'|'.join(_MONTHS)})",
    "MM": r"(?P<month>\d\d)",
    "dd": r"(?P<day>\d\d)",
    "HH": r"(?P<hour>\d\d)",
    "mm": r"(?P<minute>\d\d)",
    "ss": r"(?P<second>\d\d)",
    "SSS": r"(?P<millisecond>\d{3})",
    "SSSSSS": r"(?P<millisecond>\d{3})\d{3}",
    "SSSSSSSSS": r"(?P<millisecond>\d{3})\d{6}",
    "Z": r"(?P<zone>[+-]\d{4})",
    "X": r"(?P<zone>Z|[+-]\d\d)",
    "XX": r"(?P<zone>Z|[+-]\d{4})",
    "XXX": r"(?P<zone>Z|[+-]\d\d:\d\d)",
}
_NEEDED: Final = ("day", "hour", "minute", "second")
_WORD: Final = r"[^\]\[ ]{1,200}"
_CONVERSIONS: Final = {
    "p": r" {0,10}(?P<level>[A-Z]{1,10}) {0,10}",
    "c": r"(?P<logger>[\w.$\-]{1,200})",
    "m": r"(?P<message>.*)",
    "t": r"[^\]]{1,200}",
    "L": r"[\d?]{1,10}",
    "r": r"\d{1,20}",
    "n": "",
    **dict.fromkeys("CFM", _WORD),
    **dict.fromkeys("xX", r"[^\]]{0,200}"),
}
_LONG_NAMES: Final = {
    "date": "d", "level": "p", "logger": "c", "msg": "m", "message": "m", "thread": "t", "line": "L",
    "relative": "r", "class": "C", "file": "F", "method": "M", "tn": "t", "threadName": "t", "mdc": "X",
}  # fmt: skip
_CONVERSION: Final = re.compile(
    rf"%(?:(?P<percent>%)|-?\d{{0,3}}(?:\.-?\d{{1,3}})?"
    rf"(?P<name>{'|'.join(sorted(_LONG_NAMES, key=len, reverse=True))}"
    r"|[dpcmtLrnCFMxX])(?P<options>(?:\{[^}]*\})*))"
)
_DATE_TOKEN: Final = re.compile(r"'([^']*)'|\{T\}|([A-Za-z])\2*|.", re.DOTALL)


ENVELOPED: Final = (*ENVELOPES, *(f"{name} {JSON}" for name in ENVELOPES))
"""Envelopes that are tried where no layout is set: a broker in a container may write JSON, too."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A pattern of log4j, compiled, within envelopes; `is_utc` if it says so.

    Without a pattern `expression` is None: then there is an envelope.
    """

    pattern: str
    expression: re.Pattern[str] | None
    is_utc: bool
    envelopes: tuple[str, ...] = ()

    def as_kafkas(self, line: str) -> str | None:
        """Return a line of this layout in that of Kafka, or as JSON; None if it is of another layout."""
        content: Content | None = Content(line)
        for name in self.envelopes:
            content = None if content is None else content.opened(name)
        if content is None:
            return None
        return content.as_kafkas() if self.expression is None else self._matched(content.text)

    def _matched(self, line: str) -> str | None:
        found = None if self.expression is None else self.expression.match(line)
        if found is None:
            return None
        parts = found.groupdict()
        month = parts.get("month") or f"{_MONTHS.index(parts['month_name']) + 1:02d}"
        zone = "Z" if self.is_utc else parts.get("zone") or ""
        date = f"{parts['year']}-{month}-{parts['day']}"
        time = f"{parts['hour']}:{parts['minute']}:{parts['second']},{parts.get('millisecond') or '000'}"
        logger = parts.get("logger")
        end = "" if logger is None else f" ({_whole_name(logger)})"
        return f"[{date} {time}{zone}] {parts.get('level') or 'INFO'} {parts['message']}{end}"


def _whole_name(logger: str) -> str:
    """Return the name of Kafka's logger for a shortened one, such as `authorizer.logger`, else the same."""
    full = "kafka.authorizer.logger"
    return full if full.endswith(f".{logger}") or logger in ("k.a.logger", "k.a.l") else logger


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Layout:
    """Return a layout; raise `ConfigurationError` for an invalid pattern, or one without date or message."""
    if len(pattern) > LAYOUT_CHARACTERS_MAX:
        raise ConfigurationError(f"a layout has at most {LAYOUT_CHARACTERS_MAX} characters")
    envelopes, rest = _envelopes(pattern)
    if envelopes and not rest:
        return Layout(pattern, None, is_utc=False, envelopes=envelopes)
    return replace(_of_pattern(rest), pattern=pattern, envelopes=envelopes)


def _envelopes(layout: str) -> tuple[tuple[str, ...], str]:
    """Return the envelopes that a layout begins with, and its pattern."""
    names: list[str] = []
    rest = layout
    while (word := rest.partition(" "))[0] in ENVELOPES:
        names.append(word[0])
        rest = word[2]
    return tuple(names), rest


def is_cri(layout: str | None) -> bool:
    """Return whether lines of this layout may be parts, which `envelopes.joined_parts` joins."""
    return layout is not None and _envelopes(layout)[0][:1] == (CRI,)


def _of_pattern(pattern: str) -> Layout:
    expression = ""
    is_utc = False
    place = 0
    names: list[str] = []
    while place < len(pattern):
        found = _CONVERSION.match(pattern, place)
        if found is None:
            if pattern[place] == "%":
                raise ConfigurationError(
                    f"layout `{pattern}` has a conversion that is not known at "
                    f"`{pattern[place : place + 8]}`, take those of log4j: %d %p %c %m %t %L %n"
                )
            expression += re.escape(pattern[place])
            place += 1
            continue
        place = found.end()
        if found["percent"]:
            expression += "%"
            continue
        name = _LONG_NAMES.get(found["name"], found["name"])
        names.append(name)
        options = re.findall(r"\{([^}]*)\}", found["options"])
        if name == "d":
            expression += _date(pattern, options[0] if options else "")
            is_utc = _is_utc(pattern, options[1:])
        else:
            expression += _CONVERSIONS[name]
    repeated = next((name for name in ("d", "m", "c", "p") if names.count(name) > 1), None)
    if repeated or "d" not in names or "m" not in names:
        raise ConfigurationError(
            f"layout `{pattern}` needs `%d` and `%m`, and each of `%p` and `%c` at most once"
        )
    return Layout(pattern, re.compile(rf"{expression}\Z", re.ASCII | re.DOTALL), is_utc)


def _date(pattern: str, date: str) -> str:
    expression = ""
    for token in _DATE_TOKEN.finditer(_NAMED_DATES.get(date, date)):
        text = token[0]
        if text == "{T}":
            expression += "[ T]"
        elif token[1] is not None:
            expression += re.escape(token[1])
        elif token[2] is None:
            expression += re.escape(text)
        elif text in _DATE_PARTS:
            expression += _DATE_PARTS[text]
        else:
            raise ConfigurationError(
                f"layout `{pattern}` has `{text}` in its date, take yyyy MM dd HH mm ss SSS"
            )
    if "P<year>" not in expression or "P<month" not in expression:
        raise ConfigurationError(
            f"layout `{pattern}` has a date without year and month: its lines have no day"
        )
    if not all(f"P<{part}>" in expression for part in _NEEDED):
        raise ConfigurationError(f"layout `{pattern}` has a date without day, hour, minute or second")
    return expression


def _is_utc(pattern: str, zones: list[str]) -> bool:
    if not zones:
        return False
    if zones[0] in ("UTC", "GMT", "GMT+0"):
        return True
    raise ConfigurationError(
        f"layout `{pattern}` has a time zone, set it as `time_zone` of the input instead"
    )


def detected(lines: Iterable[str], is_event: Callable[[str], bool]) -> str | None:
    """Return the usual layout by which most of these lines are events; None if there is none by any."""
    best, most = None, 0
    texts = list(lines)
    for pattern in USUAL_LAYOUTS:
        layout = compiled(pattern)
        count = sum(is_event(text) for line in texts if (text := layout.as_kafkas(line)) is not None)
        if count > most:
            best, most = pattern, count
    return best


def detected_envelope(lines: Iterable[str], is_event: Callable[[str], bool]) -> tuple[str | None, int]:
    """Return the layout with an envelope by which most of these lines are events, and how many are."""
    best, most = None, 0
    texts = list(lines)
    for envelope in ENVELOPED:
        opened = [text for line in texts if (text := compiled(envelope).as_kafkas(line)) is not None]
        found, count = envelope, sum(map(is_event, opened))
        if opened and not count:
            pattern = detected(opened, is_event)
            if pattern is None:
                continue
            found = f"{envelope} {pattern}"
            inner = compiled(pattern)
            count = sum(is_event(text) for line in opened if (text := inner.as_kafkas(line)) is not None)
        if count > most:
            best, most = found, count
    return best, most
