"""Moments of a log, an offset or a time; times as text: UTC unless a zone is named, to the millisecond."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Self

from kustos.wire import RecordBatch

TEXTS_MAX: Final = 1024
"""Texts cached: the records of a batch, and of consecutive batches, share one time."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


@lru_cache(maxsize=TEXTS_MAX)
def moment_text(time_ms: int) -> str:
    """Return a time as `2026-11-03T09:30:00.250Z`; one outside the calendar as its number and ` ms`."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def moment_ms(text: str) -> int:
    """Return the milliseconds since the epoch of an ISO 8601 date or time; without a zone it is UTC.

    A date alone means its beginning. Digits below a millisecond are truncated. Raises `ValueError`.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MS


@dataclass(frozen=True, slots=True)
class Moment:
    """A requested point of the line: exactly one of offset and time."""

    text: str
    offset: int | None = None
    time_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the moment in a text: digits are an offset, else ISO 8601; raise `ValueError`."""
        if text.isascii() and text.isdigit():
            return cls(text, offset=int(text))
        try:
            return cls(text, time_ms=moment_ms(text))
        except (ValueError, OverflowError):
            raise ValueError(
                f"`{text}` is neither an offset nor a time: write `1234`, `2026-11-03`, "
                "`2026-11-03T09:30` (UTC) or `2026-11-03T09:30+01:00`"
            ) from None

    def includes(self, batch: RecordBatch) -> bool:
        """Return whether a batch existed at this moment."""
        if self.offset is not None:
            return batch.last_offset <= self.offset
        return self.time_ms is not None and batch.max_timestamp_ms <= self.time_ms
