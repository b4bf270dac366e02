"""What is new since the page that a report replaces: that page contains the time of its last event."""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from kustos.pipeline.queries import access
from kustos.pipeline.report.accesses import AccessRow, access_row

NEWS_SHOWN: Final = 15
"""Rows of new accesses, those denied first; `access_counts` has them all."""

HEAD_BYTES: Final = 4096
"""Where a page says up to when it was: in its first lines."""

LAST_EVENT: Final = re.compile(rb'<meta name="kustos-last-event" content="([0-9T:.+-]{1,40})">')
LAST_FINDING: Final = re.compile(rb'<meta name="kustos-last-finding" content="([0-9T:.+-]{1,40})">')


@dataclass(frozen=True, slots=True)
class News:
    """Accesses first seen after `since`, and principals: new ones, and those not seen any more.

    `recorded_days` after it have a record; without any of them nobody was seen or missed.
    """

    since: datetime
    allowed: int
    denied: int
    principals: int
    silent_principals: int
    recorded_days: int
    rows: tuple[AccessRow, ...]


def last_event_of(page: Path) -> datetime | None:
    """Return the time of the last event of an earlier page; None if there is no page that says it."""
    return _moment_in(page, LAST_EVENT)


def last_finding_of(page: Path) -> datetime | None:
    """Return when the newest finding of an earlier page was recorded; None if no page says it."""
    return _moment_in(page, LAST_FINDING)


def _moment_in(page: Path, name: re.Pattern[bytes]) -> datetime | None:
    try:
        with page.open("rb") as file:
            found = name.search(file.read(HEAD_BYTES))
        moment = None if found is None else datetime.fromisoformat(found[1].decode())
    except (OSError, ValueError):
        return None
    return moment if moment is None or moment.tzinfo is not None else None


def collect_news(counts: DataFrame, events: DataFrame, since: datetime) -> News:
    """Return what `access_counts` has that was first seen after a time with its zone."""
    sums = access.news_totals(counts, since).collect()[0].asDict()
    rows = access.new_accesses(counts, since, NEWS_SHOWN).collect()
    return News(
        since=since,
        recorded_days=access.days_after(events, since),
        rows=tuple(map(access_row, rows)),
        **{key: int(n) for key, n in sums.items()},
    )
