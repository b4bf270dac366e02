"""Times as text: UTC unless a zone is named, to the millisecond."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

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
