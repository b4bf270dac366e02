"""The node's own log: one line an event on standard error, for people on a terminal, else JSON."""

import logging
import sys
from typing import Final

import structlog

TRACEBACKS: Final = structlog.processors.ExceptionRenderer(
    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
)
"""Tracebacks as data, without the values of local variables: these hold what clients sent, tokens too."""


def configure_logs(level: int = logging.INFO, *, as_json: bool | None = None) -> None:
    """Set the log up for this process. `as_json` None: JSON unless a person looks on.

    Kafka's appenders have the same fields: time, level, what happened, and the values beside it.
    """
    machine = not sys.stderr.isatty() if as_json is None else as_json
    renderers: list[structlog.typing.Processor] = (
        [TRACEBACKS, structlog.processors.JSONRenderer()]
        if machine
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
