"""The detectors once more, in plain Python: slow, short and obvious."""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import pairwise
from statistics import median

from kustos.pipeline.anomalies import AnomalyParameters
from tests.pipeline.anomalies.rows import Use

Finding = tuple[str, str, int, float]
"""kind, principal, day, surprise"""


def rarity(seen: float, looks: float) -> float:
    return -math.log((seen + 0.5) / (looks + 1))


def negative_binomial(count: float, mean: float, variance: float) -> float:
    if count <= mean:
        return 0.0
    poisson = count * math.log(count / mean) - count + mean
    if variance - mean <= 1e-6:
        return poisson
    size = mean * mean / (variance - mean)
    return count * math.log(count / mean) - (count + size) * math.log((count + size) / (mean + size))


def proper_prefixes(name: str) -> list[tuple[str, ...]]:
    parts = re.split(r"[._\-/:]+", name)
    return [tuple(parts[:depth]) for depth in range(1, min(len(parts) - 1, 4) + 1)]


class Plain:
    """What is known of these uses; days count from START, `first` is the window's first day."""

    def __init__(self, uses: Sequence[Use], first: int, parameters: AnomalyParameters) -> None:
        self.uses = [use for use in uses if use.access == "ACCESS"]
        self.first, self.parameters = first, parameters
        self.began = min(use.day for use in self.uses)
        self.days: dict[str, list[int]] = {}
        for name in {use.principal for use in self.uses}:
            self.days[name] = sorted({use.day for use in self.uses if use.principal == name})

    def active_days(self, principal: str) -> int:
        return sum(day < self.first for day in self.days[principal])

    def looks(self, principal: str) -> int:
        return max(
            sum(day < self.first and self.is_grown_up(principal, day) for day in self.days[principal]), 1
        )

    def is_grown_up(self, principal: str, day: int) -> bool:
        return day - self.days[principal][0] >= self.parameters.learning_days

    def dormant(self) -> Iterator[Finding]:
        p = self.parameters
        recorded = {day for days in self.days.values() for day in days}
        for name, days in self.days.items():
            gaps = [after - before - 1 for before, after in pairwise(days)]
            for place, gap in enumerate(gaps):
                rate = (place + 1) / (days[place] - self.began + 1)
                is_new = max(gaps[:place], default=0) < gap * p.periodic_share
                is_leave = rate < p.daily_share and gap < p.leave_days and self.is_back(name, days[place + 1])
                evident = sum(days[place] < day < days[place + 1] for day in recorded)
                is_new &= evident >= p.dormant_days * 0.6
                if days[place + 1] >= self.first and gap >= p.dormant_days and is_new and not is_leave:
                    yield "DORMANT_WAKING", name, days[place + 1], rate * evident

    def is_back(self, principal: str, day: int) -> bool:
        wide = [(use.day, use.host.rsplit(".", 2)[0]) for use in self.uses if use.principal == principal]
        return {net for on, net in wide if on == day} <= {net for on, net in wide if on < day}

    def super_users(self) -> Iterator[Finding]:
        p = self.parameters
        mine: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        for use in self.uses:
            if use.is_super:
                mine[use.principal, use.operation, use.resource_type].add(use.day)
        before: dict[str, set[int]] = defaultdict(set)
        for (name, *_), days in mine.items():
            before[name] |= {day for day in days if day < self.first}
        for (name, *_), days in mine.items():
            if min(days) >= self.first and len(days) < p.habit_days:
                for day in days:
                    if day - self.began >= p.learning_days:
                        looks = len(before[name]) or day - self.began
                        yield "SUPER_USER_USE", name, day, rarity(0, looks)

    def hosts(self) -> Iterator[Finding]:
        p = self.parameters
        seen: dict[tuple[str, str], set[int]] = defaultdict(set)
        for use in self.uses:
            seen[use.principal, use.host.rpartition(".")[0]].add(use.day)
        wide: dict[tuple[str, str], int] = {}
        for (name, network), days in seen.items():
            key = name, network.rpartition(".")[0]
            wide[key] = min(wide.get(key, 10**6), min(days))
        came = {key: min(days) for key, days in seen.items() if self.is_grown_up(key[0], min(days))}
        for (name, network), day in came.items():
            if day < self.first or len(seen[name, network]) >= p.habit_days:
                continue
            is_known = wide[name, network.rpartition(".")[0]] < day
            novel = {
                d
                for (other, net), d in came.items()
                if other == name and d < self.first and (is_known or wide[other, net.rpartition(".")[0]] == d)
            }
            residents = {n for (n, net), d in seen.items() if net == network and min(d) < self.first}
            company = sum(
                net == network and other != name and abs(d - day) <= p.company_days
                for (other, net), d in came.items()
            )
            surprise = rarity(len(novel), self.looks(name))
            surprise -= company * p.company_surprise
            is_shared = len(residents) / len(self.days) >= p.shared_network_share
            yield "NEW_HOST", name, day, surprise - (is_known + is_shared) * p.known_range_surprise

    def hours(self) -> Iterator[Finding]:
        p = self.parameters
        masks: dict[tuple[str, int], set[int]] = defaultdict(set)
        judged: dict[tuple[str, int], set[int]] = defaultdict(set)
        for use in self.uses:
            masks[use.principal, use.day] |= set(use.hours)
            if use.decision == "ALLOWED":
                judged[use.principal, use.day] |= set(use.hours)
        alone: dict[tuple[str, int, int], float] = {}
        for (name, day), hours in judged.items():
            if day < self.first or not self.is_grown_up(name, day) or not self.active_days(name):
                continue
            weeks = max((self.first - self.days[name][0]) // 7, 1)
            for hour in hours:
                near = [0] * 7
                for (other, before), those in masks.items():
                    apart = [min((hour - h) % 24, (h - hour) % 24) for h in those]
                    if other == name and before < self.first and min(apart) <= p.hours_apart:
                        near[before % 7] += 1
                surprise = rarity(sum(near), self.active_days(name))
                regular = sum(count > 0 and count >= weeks * p.regular_share for count in near)
                if regular >= p.regular_weekdays and not near[day % 7]:
                    known = range(self.days[name][0], self.first)
                    times = [sum(d % 7 == weekday for d in known) for weekday in range(7)]
                    against = sum(min(n, max(of - n, 0)) for n, of in zip(near, times, strict=True))
                    surprise = max(surprise, rarity(against, len(known)))
                if surprise >= p.hours_surprise:
                    alone[name, day, hour] = surprise
        rare: dict[tuple[str, int], list[tuple[float, int]]] = defaultdict(list)
        for (name, day, hour), surprise in alone.items():
            together = sum((d, h) == (day, hour) for _, d, h in alone)
            if sum((n, h) == (name, hour) for n, _, h in alone) < p.habit_days:
                rare[name, day].append((surprise, together))
        for (name, day), found in rare.items():
            yield "UNUSUAL_HOURS", name, day, max(s for s, _ in found) / max(n for _, n in found)

    def sweeps(self) -> Iterator[Finding]:
        p = self.parameters
        tried: dict[tuple[str, str, str], dict[int, list[Use]]] = defaultdict(lambda: defaultdict(list))
        for use in self.uses:
            if use.operation == "ALTER" and not use.is_super:
                tried[use.principal, use.operation, str(use.resource_name)][use.day].append(use)
        names: dict[str, dict[int, dict[str, bool]]] = defaultdict(lambda: defaultdict(dict))
        for (principal, _, name), days in tried.items():
            for day, uses in days.items():
                is_denied = any(use.decision != "ALLOWED" for use in uses)
                is_few = sum(use.count for use in uses) <= p.attempts_per_name
                if is_few and (is_denied or day == min(days)):
                    names[principal][day][name] = is_denied
        for principal, by_day in names.items():
            counts: dict[int, tuple[int, int]] = {}
            for day in by_day:
                near = [by_day[other] for other in by_day if 0 <= day - other < p.sweep_days]
                denied = {name for each in near for name, is_denied in each.items() if is_denied}
                counts[day] = len({name for each in near for name in each}), len(denied)
            before = [count for day, (count, _) in counts.items() if day < self.first]
            looks = max(self.active_days(principal), 1)
            mean = (sum(before) + 0.5) / looks
            variance = (sum(count * count for count in before) + 0.5) / looks + mean
            for day, (count, denied_count) in counts.items():
                is_many = count >= p.swept_names and denied_count >= p.swept_names_denied
                if day >= self.first and is_many:
                    yield "SWEEP", principal, day, negative_binomial(count, mean, variance)

    def pairs(self) -> "Pairs":
        return Pairs(self)


class Pairs:
    """Who uses what since when, and whose a name is."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.used: dict[tuple[str, str], list[Use]] = defaultdict(list)
        self.known: dict[str, int] = {}
        for use in plain.uses:
            assert use.resource_name is not None
            name = use.resource_name
            self.known[name] = min(self.known.get(name, 10**6), use.day)
            if not use.is_super:
                self.used[use.principal, name].append(use)

    def allowed_since(self, principal: str, name: str) -> float:
        days = [use.day for use in self.used[principal, name] if use.decision == "ALLOWED"]
        return min(days, default=math.inf)

    def affinity(self, principal: str, name: str) -> float:
        first = min(use.day for use in self.used[principal, name])
        names = {other for _, other in self.used}
        best = 0.0
        for prefix in proper_prefixes(name):
            familiar = {
                other_prefix: self.familiar_since(principal, other_prefix)
                for who, other in list(self.used)
                for other_prefix in proper_prefixes(other)
                if who == principal and len(other_prefix) == len(prefix)
            }
            mine = {other for other, since in familiar.items() if since < math.inf}
            covered = sum(any(one in mine for one in proper_prefixes(other)) for other in names)
            if familiar[prefix] < first:
                best = max(best, math.log(len(names) / covered))
        return best

    @cache  # noqa: B019  it lives as long as a test
    def familiar_since(self, principal: str, prefix: tuple[str, ...]) -> float:
        return min(
            self.allowed_since(principal, other)
            for who, other in list(self.used)
            if who == principal and prefix in proper_prefixes(other)
        )

    def fresh(self) -> Iterator[tuple[str, int, list[Use], float, int]]:
        """Yield principal, first day, that day's uses, affinity and used days of unfamiliar pairs."""
        for (name, resource), uses in list(self.used.items()):
            first = min(use.day for use in uses)
            is_young = first - self.known[resource] < self.plain.parameters.settled_days
            is_denied = self.allowed_since(name, resource) == math.inf
            if is_denied or (self.plain.is_grown_up(name, first) and not is_young):
                today = [use for use in uses if use.day == first]
                yield name, first, today, self.affinity(name, resource), len({use.day for use in uses})

    def first_seen(self) -> Iterator[Finding]:
        p, first_day = self.plain.parameters, self.plain.first
        allowed = [one for one in self.fresh() if any(use.decision == "ALLOWED" for use in one[2])]
        found: dict[tuple[str, int], list[float]] = defaultdict(list)
        for name, day, _, affinity, used_days in allowed:
            novel = {d for n, d, *_ in allowed if n == name and d < first_day}
            surprise = rarity(len(novel), self.plain.looks(name)) - affinity * p.affinity_weight
            if day >= first_day and used_days < p.habit_days and surprise >= p.first_seen_surprise:
                found[name, day].append(surprise)
        for (name, day), many in found.items():
            yield "FIRST_SEEN_ACCESS", name, day, max(many) + math.log(len(many))

    def enumeration(self) -> Iterator[Finding]:
        p = self.plain.parameters
        tried: dict[tuple[str, int], int] = defaultdict(int)
        for name, day, today, _, used_days in self.fresh():
            if sum(use.count for use in today) <= p.attempts_per_name and used_days < p.habit_days:
                tried[name, day] += 1
        by_day = {
            (name, day): sum(tried.get((name, day - age), 0) for age in range(p.sweep_days))
            for name, day in tried
        }
        for (name, day), topics in by_day.items():
            counts = [many for (n, d), many in by_day.items() if n == name and d < self.plain.first]
            looks = max(self.plain.active_days(name), 1)
            mean = (sum(counts) + 0.5) / looks
            variance = (sum(count * count for count in counts) + 0.5) / looks + mean
            on_day, least = tried[name, day], p.enumerated_topics
            became_many = topics >= least and (on_day >= least or topics - on_day < least)
            if day >= self.plain.first and became_many:
                yield "TOPIC_ENUMERATION", name, day, negative_binomial(topics, mean, variance)


def spread(values: Sequence[float]) -> float:
    """Return the distance of the quartiles (linear between ranks) as a deviation."""
    ordered = sorted(values)

    def quantile(share: float) -> float:
        place = share * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return (quantile(0.75) - quantile(0.25)) / 1.349


def denials(plain: Plain, swept: Collection[tuple[str, int]]) -> Iterator[tuple[str, int, float]]:
    """Yield principal, day and deviations of each burst, whichever of the two kinds it is.

    `swept`: the principals and days with a sweep or an enumeration, whose few attempts count no more.
    """
    p = plain.parameters
    tried: dict[tuple[str, str, str], dict[int, dict[int, float]]] = defaultdict(dict)
    for use in plain.uses:
        if use.decision != "ALLOWED":
            at = tried[use.principal, use.operation, str(use.resource_name)].setdefault(use.day, {})
            for hour in use.hours:
                at[hour] = at.get(hour, 0.0) + use.count / len(use.hours)
    excess: dict[tuple[str, int], float] = defaultdict(float)
    hours: dict[tuple[str, int], set[int]] = defaultdict(set)
    resources: dict[tuple[str, int], set[str]] = defaultdict(set)
    brief: dict[tuple[str, int], set[str]] = defaultdict(set)
    for (name, _, resource), days in tried.items():
        before = [at for day, at in days.items() if day < plain.first]
        sums, worst = [sum(at.values()) for at in before], [max(at.values()) for at in before]
        for day, at in days.items():
            over = sum(at.values())
            if len(before) >= p.habit_days:
                pairs = ((over, sums), (max(at.values()), worst))
                swings = [
                    negative_binomial(count, median(usual), spread(usual) ** 2 + median(usual))
                    for count, usual in pairs
                ]
                if max(swings) < 10:
                    continue
            if (name, day) in swept and sum(at.values()) <= p.attempts_per_name:
                continue
            if len(before) >= p.habit_days:
                over = max(count - median(usual) for count, usual in pairs)
            excess[name, day] += over
            hours[name, day] |= set(at)
            resources[name, day].add(resource)
            if sum(at.values()) <= p.attempts_per_name and len(days) < p.habit_days:
                brief[name, day].add(resource)
    logs = [math.log(over) for (_, day), over in excess.items() if day < plain.first and over >= 1]
    is_known = len(logs) >= p.denials_days_min
    center = median(logs) if is_known else math.log(p.denials_median)
    width = max(spread(logs), p.denials_deviation) if is_known else p.denials_deviation
    for (name, day), over in excess.items():
        count = len(resources[name, day])
        is_tour = count >= p.enumerated_topics and over <= count * p.attempts_per_name
        tours = sum(
            who == name and before < plain.first and len(some) >= p.enumerated_topics
            for (who, before), some in brief.items()
        )
        is_new_tour = len(brief[name, day]) >= p.enumerated_topics and tours < p.habit_days
        if day < plain.first or over < p.denials_min or (is_tour and not is_new_tour):
            continue
        deviations = (math.log(over) - center) / width
        is_lasting = len(hours[name, day]) >= 2 and deviations >= p.denials_lasting_deviations
        if deviations >= p.denials_deviations or is_lasting:
            yield name, day, deviations
