"""The findings of a plain z-score on daily counts: each principal against its own mean and deviation.

There is one daily count for each kind, as on a chart; a count more than three standard deviations above the
mean of the history is a finding. The baseline cannot distinguish the two kinds of denial bursts, so it is
credited with the right one.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterator

from testkit.months.score_values import Found
from testkit.months.values import Access, Kind, Month

DEVIATIONS = 3.0
NIGHT = frozenset(range(6))

Counts = dict[tuple[str, str], dict[int, float]]


def daily_counts(month: Month) -> Counts:
    """Return the count of each day by series and principal."""
    counts: Counts = defaultdict(lambda: defaultdict(float))
    seen: set[tuple[str, str, str]] = set()
    distinct: set[tuple[str, int, str]] = set()
    for key in sorted(month.trail.counts, key=lambda key: key.day):
        if key.access != "ACCESS":
            continue
        hours = month.trail.counts[key]
        total = sum(hours.values())
        _add(counts, "all", key, total)
        _add(counts, "denied", key, total if key.decision != "ALLOWED" else 0)
        _add(counts, "super", key, total if key.rule_kind == "SuperUser" else 0)
        _add(counts, "night", key, sum(count for hour, count in hours.items() if hour in NIGHT))
        for series, value in (("host", key.host), ("resource", key.resource_name)):
            is_new = (series, key.principal, value) not in seen
            seen.add((series, key.principal, value))
            _add(counts, f"new {series}", key, int(is_new))
        if (key.principal, key.day, key.resource_name) not in distinct:
            distinct.add((key.principal, key.day, key.resource_name))
            _add(counts, "resources", key, 1)
    return counts


def _add(counts: Counts, series: str, key: Access, amount: float) -> None:
    counts[series, key.principal][key.day] += amount


SERIES: dict[str, tuple[Kind, ...]] = {
    "new resource": ("FIRST_SEEN_ACCESS",),
    "new host": ("NEW_HOST",),
    "denied": ("BRUTE_FORCE", "MISSING_RIGHT"),
    "night": ("UNUSUAL_HOURS",),
    "resources": ("TOPIC_ENUMERATION",),
    "super": ("SUPER_USER_USE",),
    "all": ("DORMANT_WAKING",),
}


def findings(month: Month) -> Iterator[Found]:
    """Yield the baseline's findings."""
    truth = {(label.kind, label.principal) for label in month.labels}
    for (series, principal), days in daily_counts(month).items():
        history = [days.get(day, 0.0) for day in range(month.history_days)]
        mean, deviation = statistics.fmean(history), statistics.pstdev(history)
        kinds = SERIES[series]
        kind = next((kind for kind in kinds if (kind, principal) in truth), kinds[0])
        for day in range(month.history_days, month.history_days + month.window_days):
            if days.get(day, 0.0) > mean + DEVIATIONS * deviation:
                yield Found(kind, principal, day)
