"""Envelopes: what container runtimes, log tools and JSON layouts put around each line of a broker's log.

| envelope | a line |
|---|---|
| `cri` | `TIME stdout F LINE`, files of containerd and CRI-O |
| `kubectl` | `[pod/POD/CONTAINER] TIME LINE`, of `kubectl logs` with `--prefix`, `--timestamps` or both; also of `docker logs -t` |
| `compose` | `CONTAINER  | TIME LINE`, of `docker compose logs`, the time with `--timestamps` |
| `stern` | `NAMESPACE POD CONTAINER TIME LINE`, namespace and time only if stern is told to show them |
| `json` | an object with the line as `message`, `log` or `msg`: ECS, Logstash, Filebeat, Docker, log4j's JSON layouts |

The envelope brings a time, and JSON also a level and a logger. They count only if the line has none.
`layouts` reads the line within, in any layout, or within another envelope.

A CRI runtime cuts long lines into parts: `P` for each part but the last one. `joined_parts` puts them together.
Sources: `ContainerLogOptions` and `k8s.io/cri-client/pkg/logs` of Kubernetes, stern's default template, the
Elastic Common Schema, Logstash's JSON event layout, Docker's json-file driver.
"""  # noqa: E501 (a table)

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from kustos.pipeline.lines.json_values import Integer, JsonObject, MalformedError, Number, read_object, text

KUSTOS_KEYS: Final = frozenset(("schema_version", "event_id", "specversion"))
"""What JSON of kustos and CloudEvents have, also those that are not events: such a line is no envelope."""

JOINED_BYTES_MAX: Final = 1 << 20
"""Parts beyond it are left out: the joined line is quarantined for its length whatever they say."""

_TIME: Final = r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"
_POD: Final = r"\[pod/[^\] ]{1,400}\]"
_NAME: Final = r"[a-z0-9][a-z0-9.\-]{0,252}"
_PREFIXES: Final = {
    name: tuple(re.compile(rf"{prefix}(?P<text>.*)\Z", re.ASCII | re.DOTALL) for prefix in prefixes)
    for name, prefixes in {
        "cri": (rf"{_TIME} (?:stdout|stderr) F(?::[^ ]{{1,100}})? ",),
        "kubectl": (rf"(?:{_POD} )?{_TIME} ", f"{_POD} "),
        "compose": (rf"[\w.\-]{{1,200}} +\| (?:{_TIME} )?",),
        # the line begins as a broker's line does, else a word of it could be taken for a container
        "stern": (rf"(?:{_NAME} )?{_NAME} {_NAME} (?:{_TIME} )?(?=\[|\d{{4}}-|\{{|[A-Z])",),
    }.items()
}
JSON: Final = "json"
CRI: Final = "cri"
ENVELOPES: Final = (*_PREFIXES, JSON)

_MESSAGES: Final = ("message", "log", "msg")
_TIMES: Final = ("@timestamp", "time", "timestamp", "timeMillis", "instant")
_LEVELS: Final = ("log.level", "level", "severity")
_LOGGERS: Final = ("log.logger", "logger", "logger_name", "loggerName")
_WRITTEN_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH_DIGITS: Final = {10: 1, 13: 1_000}
"""Seconds and milliseconds since the epoch, by their digits."""

_LEVEL: Final = re.compile(r"[A-Z]{1,10}", re.ASCII)
_AUDIT: Final = "Principal = "
_PART: Final = re.compile(rb"([0-9T:.+Z\-]{20,40} (stdout|stderr) )([PF])(?::[^ ]{1,100})? (.*)", re.DOTALL)


class Content(NamedTuple):
    """The line in an envelope, and what the envelope says of it; `time` is written as Kafka's layout does."""

    text: str
    time: str | None = None
    level: str | None = None
    logger: str | None = None

    def opened(self, name: str) -> "Content | None":
        """Return the content of the envelope that the text is; None if it is no envelope of this name."""
        inner = _of_json(self.text) if name == JSON else _of_prefix(name, self.text)
        if inner is None:
            return None
        return Content(
            inner.text, inner.time or self.time, inner.level or self.level, inner.logger or self.logger
        )

    def as_kafkas(self) -> str | None:
        """Return the line in Kafka's layout, or as it is if it has a time or is JSON.

        With a logger the text is a message, not a line: a message of another logger may begin as a line of
        the authorizer does, or as JSON of kustos. Returns None for a message without a time.
        """
        if self.logger is None and not self.text.startswith(_AUDIT):
            return self.text
        if self.time is None:
            return None
        end = "" if self.logger is None else f" ({self.logger})"
        return f"[{self.time}] {self.level or 'INFO'} {self.text}{end}"


def _of_prefix(name: str, line: str) -> Content | None:
    for prefix in _PREFIXES[name]:
        found = prefix.match(line)
        if found is not None:
            time = found.groupdict().get("time")
            return Content(found["text"], None if time is None else _kafkas_time(time))
    return None


def _of_json(line: str) -> Content | None:
    if not line.startswith("{"):
        return None
    try:
        values = read_object(line)
        message = _first_text(values, _MESSAGES)
        level, logger = _first_text(values, _LEVELS), _first_text(values, _LOGGERS)
    except MalformedError:
        return None
    if message is None or not KUSTOS_KEYS.isdisjoint(values):
        return None
    level = None if level is None or not _LEVEL.fullmatch(level.upper()) else level.upper()
    times = (_kafkas_time(value) for name in _TIMES if (value := _value(values, name)) is not None)
    time = next((each for each in times if each is not None), None)
    return Content(message.removesuffix("\n").removesuffix("\r"), time, level, logger)


def _first_text(values: JsonObject, names: Iterable[str]) -> str | None:
    """Return the first of these values that is a text; raise `MalformedError` for half a surrogate pair."""
    found = (_value(values, name) for name in names)
    texts = (each for each in found if isinstance(each, str) and not isinstance(each, Number))
    return text(next(texts, None))


def _value(values: JsonObject, name: str) -> Any:
    """Return the value of a name with dots, written as one name or nested."""
    head, _, rest = name.partition(".")
    if name in values or not rest:
        return values.get(name)
    inner = values.get(head)
    return inner.get(rest) if isinstance(inner, dict) else None


def _kafkas_time(value: Any) -> str | None:
    """Return a time as Kafka's layout writes it, cut to milliseconds; None for what is not a time."""
    if isinstance(value, dict):  # log4j's `instant`
        whole, nanoseconds = (str(value.get(name, "")) for name in ("epochSecond", "nanoOfSecond"))
        value = Integer(whole + nanoseconds.zfill(9)[:3])
    if isinstance(value, Integer):
        unit = _EPOCH_DIGITS.get(len(value))
        if unit is None or not value.isdecimal():
            return None
        seconds, rest = divmod(int(value), unit)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S},{rest * 1_000 // unit:03d}Z"
    found = _WRITTEN_TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    date, clock, fraction, zone = found.groups(default="")
    return f"{date} {clock},{fraction[:3].ljust(3, '0')}{zone}"


def is_part(line: bytes) -> bool:
    """Return whether a line of a CRI file is a part that another one continues."""
    found = _PART.match(line)
    return found is not None and found[3] == b"P"


def joined_parts(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a CRI file with their parts joined, each at the position of its first part.

    A joined line has the time of its first part and no tag but `F`. The parts of one stream may lie among
    lines of the other one. A line that lacks its last part is yielded as `P`, at the end.
    """
    held: dict[bytes, tuple[int, bytes, bytes]] = {}
    for position, line in lines:
        found = _PART.match(line)
        if found is None:
            yield position, line
            continue
        head, stream, tag, content = found.groups()
        former = held.pop(stream, None)
        if former is None and tag == b"F":
            yield position, line
            continue
        first, head, before = former or (position, head, b"")
        whole = before + content if len(before) < JOINED_BYTES_MAX else before
        if tag == b"P":
            held[stream] = first, head, whole
        else:
            yield first, head + b"F " + whole
    for first, head, whole in held.values():
        yield first, head + b"P " + whole
