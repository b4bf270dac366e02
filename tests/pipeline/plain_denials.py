"""The anomalies about bursts of denials that must be there, by the words of `docs/reference/anomalies.md`."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tests.pipeline.plain_uses import GOVERNING, NAMES_MAX, Expected, Habits, Use, by, span_of, tail

QUARTILES_APART = 1.349
HABIT_SURPRISE = 10.0
FAMILIAR_AFFINITY = 0.5


@dataclass(frozen=True)
class Attempt:
    """The denials of an operation on a name in a day; of these `excess` are above what is usual."""

    operation: str
    name: str | None
    day: int
    uses: list[Use]
    worst_hour: float
    denied_days: int
    excess: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.operation} TOPIC {self.name}" if self.name else f"{self.operation} TOPIC"


def spread(values: Iterable[float]) -> float:
    """Return the distance of the quartiles (linear between ranks) as a standard deviation."""
    ordered = sorted(values)

    def quantile(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = math.floor(place)
        above = ordered[min(low + 1, len(ordered) - 1)]
        return ordered[low] + (above - ordered[low]) * (place - low)

    return (quantile(0.75) - quantile(0.25)) / QUARTILES_APART


def worst_hour(uses: Iterable[Use]) -> float:
    """Return the denials of the worst hour: those of a row of the roll-up are spread over its hours."""
    found: dict[int, float] = defaultdict(float)
    for row in by(uses, lambda use: (use.host, use.decision, use.rule)).values():
        hours = {use.hour for use in row}
        for hour in hours:
            found[hour] += len(row) / len(hours)
    return max(found.values())


def attempts_of(habits: Habits, uses: Iterable[Use]) -> Iterator[Attempt]:
    """Yield what a principal was denied beyond its habits, by day."""
    denied = by((use for use in uses if not use.is_allowed), lambda use: (use.operation, use.name))
    for (operation, name), of_thing in denied.items():
        by_day = by(of_thing, lambda use: use.day)
        counts = {day: (float(len(some)), worst_hour(some)) for day, some in by_day.items()}
        before = [found for day, found in counts.items() if day < habits.start]
        is_habit = len(before) >= habits.limits["habit_days"]
        sides = list(zip(*before, strict=True)) if is_habit else [(0.0,), (0.0,)]
        usual = [median(side) for side in sides]
        for day, found in counts.items():
            swing = [
                tail(count, mean, spread(side) ** 2 + mean)
                for count, mean, side in zip(found, usual, sides, strict=True)
                if is_habit
            ]
            if not is_habit or max(swing) >= HABIT_SURPRISE:
                excess = max(count - mean for count, mean in zip(found, usual, strict=True))
                yield Attempt(operation, name, day, by_day[day], found[1], len(by_day), excess)


@dataclass(frozen=True)
class DeniedDay:
    """What a principal was denied on a day beyond its habits."""

    who: str
    day: int
    attempts: Sequence[Attempt]

    @property
    def excess(self) -> float:
        return sum(one.excess for one in self.attempts)

    @property
    def uses(self) -> list[Use]:
        return [use for one in self.attempts for use in one.uses]

    @property
    def hours(self) -> int:
        return len({use.hour for use in self.uses})

    @property
    def names(self) -> set[str | None]:
        return {one.name for one in self.attempts}


def denied_days(habits: Habits, swept: Collection[tuple[str, int]]) -> Iterator[DeniedDay]:
    """Yield the days with denials beyond the habits, without what is in an anomaly of `swept` already."""
    for who, uses in habits.of.items():
        for day, some in by(attempts_of(habits, uses), lambda one: one.day).items():
            is_few = [len(one.uses) <= habits.limits["attempts_per_name"] for one in some]
            left = [
                one
                for one, few in zip(some, is_few, strict=True)
                if one.excess > 0 and not ((who, day) in swept and few)
            ]
            found = DeniedDay(who, day, left)
            if found.excess >= 1:
                yield found


def brief_names(habits: Habits, found: DeniedDay) -> set[str | None]:
    """Return the names that were tried a few times and on few days."""
    few, habit = habits.limits["attempts_per_name"], habits.limits["habit_days"]
    return {one.name for one in found.attempts if len(one.uses) <= few and one.denied_days < habit}


def is_new_tour(habits: Habits, found: DeniedDay, days: Iterable[DeniedDay]) -> bool:
    """Return whether a day has many names that were tried briefly, as few days of the history have."""
    least = habits.limits["enumerated_topics"]
    before = [one for one in days if one.who == found.who and one.day < habits.start]
    tours = sum(len(brief_names(habits, one)) >= least for one in before)
    return len(brief_names(habits, found)) >= least and tours < habits.limits["habit_days"]


Known = Callable[[str, str], float]


def bursts(
    habits: Habits, swept: Collection[tuple[str, int]], allowed_since: Known, affinity: Known
) -> Iterator[Expected]:
    """Yield what must be found; `swept` are the principals and days of enumerations, sweeps and probing."""
    limits = habits.limits
    days = list(denied_days(habits, swept))
    logs = [math.log(one.excess) for one in days if one.day < habits.start]
    center, width = math.log(limits["denials_median"]), limits["denials_deviation"]
    if len(logs) >= limits["denials_days_min"]:
        center, width = median(logs), max(spread(logs), width)
    for found in days:
        count, least = len(found.names), limits["denials_min"]
        is_tour = count >= limits["enumerated_topics"] and found.excess <= count * limits["attempts_per_name"]
        deviations = (math.log(found.excess) - center) / width
        is_lasting = found.hours >= 2 and deviations >= limits["denials_lasting_deviations"]
        is_burst = is_lasting or deviations >= limits["denials_deviations"]
        is_old_tour = is_tour and not is_new_tour(habits, found, days)
        if found.day >= habits.start and found.excess >= least and not is_old_tour and is_burst:
            yield _burst(habits, found, deviations, allowed_since, affinity)


def _burst(
    habits: Habits, found: DeniedDay, deviations: float, allowed_since: Known, affinity: Known
) -> Expected:
    who, limits, tried = found.who, habits.limits, found.attempts
    own = [
        one.name is not None
        and (allowed_since(who, one.name) < found.day or affinity(who, one.name) >= FAMILIAR_AFFINITY)
        for one in tried
    ]
    governing = [one.operation for one in tried if one.operation in GOVERNING]
    operations = len({one.operation for one in tried})
    own_share, governing_share = sum(own) / len(tried), len(governing) / len(tried)
    foreign = {one.name for one, is_own in zip(tried, own, strict=True) if not is_own}
    suspicion = (
        (operations - 2) * 0.7 + (len(foreign) - 3) * 0.3 + governing_share * 2 + (1 - own_share * 2) * 3
    )
    is_few = len(tried) <= limits["retried_things"] and len(set(governing)) <= 1
    kind = "BRUTE_FORCE" if suspicion > 0 and not is_few else "MISSING_RIGHT"
    names = sorted(one.label for one in tried)
    evidence = {
        "excess": found.excess, "hours": found.hours, "things": len(tried), "operations": operations,
        "resources": len(found.names), "own_share": own_share, "governing_share": governing_share,
        "suspicion": suspicion, "names": names[:NAMES_MAX],
    }  # fmt: skip
    # what is spread over hours may add up to a little less or more than a half
    counts = {math.floor(found.excess + 0.5 + by) for by in (-1e-9, 1e-9)}
    numbers: list[float] = [max(counts), found.hours]
    if kind == "BRUTE_FORCE":
        numbers += [operations, len(found.names), math.floor(own_share * 100 + 0.5)]
    else:
        retried = sorted(one.label for one in tried if one.excess > limits["attempts_per_name"])
        evidence["missing"] = (retried or names)[:NAMES_MAX]
    only = min(found.names, key=str) or "" if len(found.names) == 1 else None
    return Expected(
        kind, who, found.day, deviations**2 / 2, limits["denials_lasting_deviations"] ** 2 / 2, counts,
        span_of(found.uses), evidence, numbers, ("TOPIC", only),
    )  # fmt: skip
