"""The node's own log: one line per event on standard error, as text on a terminal, else as JSON.

Logging never raises and never waits: `LogLines` queues each line, and an event that cannot be rendered
becomes a line that reports this.

Every logger of kustos has a name and may have its own level; else it inherits the level of its parent
(`kustos.metadata` for `kustos.metadata.log`), and finally of `root`. Levels have Kafka's names.
"""

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from kustos.server.log_lines import LOG_LINES, STANDARD_ERROR, encoded

TRACEBACKS: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)
"""Tracebacks as data, without the values of local variables, which may contain bytes of clients and
tokens."""

ROOT: Final = "root"

LOGGERS: Final = (
    "kustos",
    "kustos.audit",
    "kustos.client",
    "kustos.gateway",
    "kustos.metadata",
    "kustos.metadata.log",
    "kustos.server",
)
"""All loggers and their parents."""

LEVELS: Final[dict[str, int]] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Kafka's names of levels, with their numbers. kustos does not log at TRACE."""

EVENT_LEVELS: Final[dict[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}


class LogLevels:
    """The levels of this process; an implementation of the `Loggers` of the admin listener."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {ROOT: "INFO"}

    @property
    def own(self) -> Mapping[str, str]:
        """The loggers that have levels of their own, and these levels."""
        return dict(self._own)

    def take_over(self, own: Mapping[str, str]) -> None:
        """Apply the levels of another process of this node."""
        self._own = {ROOT: "INFO", **{name: level for name, level in own.items() if level in LEVELS}}

    def levels(self) -> Mapping[str, str]:
        """Return every logger with its own or inherited level."""
        return {name: self.level_of(name) for name in (ROOT, *LOGGERS)}

    def level_of(self, name: str) -> str:
        """Return the level in force for a logger; an unknown logger has the level of `root`."""
        while name not in self._own:
            name = name.rpartition(".")[0] or ROOT
        return self._own[name]

    def set_level(self, name: str, level: str) -> None:
        """Set the level of a logger; raise KeyError for a name that Kafka does not have."""
        if level not in LEVELS:
            raise KeyError(level)
        self._own[name] = level

    def unset_level(self, name: str) -> None:
        """Let a logger inherit its parent's level; `root` keeps its own."""
        if name != ROOT:
            self._own.pop(name, None)

    def passes(self, name: str, method: str) -> bool:
        """Return whether an event logged by this method is written."""
        return EVENT_LEVELS.get(method, logging.CRITICAL) >= LEVELS[self.level_of(name)]


LOG_LEVELS: Final = LogLevels()
"""The levels of this process."""


class _NamedLogger:
    """Queues the lines of one logger, and knows its name."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def msg(self, text: str) -> None:
        """Queue one line."""
        LOG_LINES.put(encoded(text + "\n"))

    debug = info = warning = error = critical = msg


def _drop_quiet(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    if not LOG_LEVELS.passes(getattr(logger, "name", ROOT), method):
        raise structlog.DropEvent
    return event


def _rendering(
    renderers: Sequence[structlog.typing.Processor],
) -> Callable[[Any, str, structlog.typing.EventDict], str]:
    """Return the processor that renders an event as a line, even if a value cannot be shown."""

    def render(logger: Any, method: str, event: structlog.typing.EventDict) -> str:
        what, level = event.get("event"), event.get("level")
        try:
            line: Any = event
            for each in renderers:
                line = each(logger, method, line)
            return str(line)
        except Exception as error:  # noqa: BLE001 - a value's own code may raise anything
            fields = {
                "event": what if isinstance(what, str) else type(what).__name__,
                "level": level,
                "unreadable": f"a value of this event cannot be shown ({type(error).__name__})",
            }
            return json.dumps(fields)

    return render


def configure_logs(level: int = logging.INFO, *, as_json: bool | None = None) -> None:
    """Set up the log of this process. `as_json` None: JSON unless standard error is a terminal.

    Kafka's appenders have the same fields: time, level, event, and values. `level` is the level of `root`.
    """
    machine = not os.isatty(STANDARD_ERROR) if as_json is None else as_json
    LOG_LEVELS.set_level(ROOT, next(name for name, number in LEVELS.items() if number >= level))
    renderers: list[structlog.typing.Processor] = (
        [TRACEBACKS, structlog.processors.JSONRenderer()]
        if machine
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    stamp, render = structlog.processors.TimeStamper(fmt="iso", utc=True), _rendering(renderers)

    def notice(lost: int) -> bytes:
        event: structlog.typing.EventDict = {"event": "lines of the log were lost", "lines": lost}
        for each in (structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, stamp):
            each(None, "warning", event)
        return encoded(render(None, "warning", event) + "\n")

    LOG_LINES.notice = notice
    structlog.configure(
        processors=[
            _drop_quiet,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            stamp,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *names: _NamedLogger(names[0] if names else ROOT),
        cache_logger_on_first_use=False,
    )
