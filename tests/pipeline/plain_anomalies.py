"""The anomalies about access that must be there, by the words of `docs/reference/anomalies.md` alone."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

from tests.pipeline.plain_denials import bursts
from tests.pipeline.plain_uses import (
    DAY_MS,
    GOVERNING,
    HOUR_MS,
    Expected,
    Habits,
    Use,
    by,
    first_names,
    network,
    rarity,
    span_of,
    tail,
)


def prefixes(name: str) -> list[tuple[str, ...]]:
    parts = re.split(r"[._\-/:]+", name)
    return [tuple(parts[:depth]) for depth in range(1, min(len(parts) - 1, 4) + 1)]


@dataclass(frozen=True)
class Fresh:
    """A pair of principal and name on its first day, with that day's uses."""

    who: str
    name: str
    day: int
    uses: list[Use]
    used_days: int

    @property
    def is_allowed(self) -> bool:
        return any(use.is_allowed for use in self.uses)


class PlainAnomalies:
    """Computes each kind once."""

    def __init__(self, habits: Habits) -> None:
        self.habits, self.limits = habits, habits.limits
        named = [use for use in habits.uses if use.name is not None]
        self.pairs = by((use for use in named if not use.is_super), lambda use: (use.who, str(use.name)))
        self.known_since = {
            name: min(use.day for use in uses) for name, uses in by(named, lambda use: str(use.name)).items()
        }

    def all(self) -> list[Expected]:
        tours = list(self.enumerations())
        met = [one for one in self.first_seen() if (one.who, one.day) not in {(o.who, o.day) for o in tours}]
        swept = [*self.sweeps(), *self.probed()]
        marked = {(str(one.who), one.day) for one in (*tours, *swept)}
        denials = bursts(self.habits, marked, self.allowed_since, self.affinity)
        others = (*self.hosts(), *self.hours(), *self.super_users(), *self.waking())
        return [*tours, *met, *swept, *denials, *others]

    def is_judged(self, day: int) -> bool:
        return self.habits.start <= day < self.habits.end

    def allowed_since(self, who: str, name: str) -> float:
        uses = self.pairs.get((who, name), ())
        return min((use.day for use in uses if use.is_allowed), default=math.inf)

    @cached_property
    def _sharing(self) -> Counter[tuple[str, ...]]:
        names = {name for _, name in self.pairs}
        return Counter(prefix for name in names for prefix in prefixes(name))

    @cached_property
    def _familiar(self) -> dict[str, dict[tuple[str, ...], float]]:
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for who, name in self.pairs:
            since = self.allowed_since(who, name)
            for prefix in prefixes(name) if since < math.inf else ():
                mine = found.setdefault(who, {})
                mine[prefix] = min(mine.get(prefix, math.inf), since)
        return found

    def affinity(self, who: str, name: str) -> float:
        """Return how familiar a name is that the principal used."""
        if (who, name) not in self.pairs:
            return 0.0
        first = min(use.day for use in self.pairs[who, name])
        mine, names = self._familiar.get(who, {}), {name for _, name in self.pairs}
        best = 0.0
        for prefix in prefixes(name):
            if mine.get(prefix, math.inf) < first:
                covered = sum(self._sharing[other] for other in mine if len(other) == len(prefix))
                best = max(best, math.log(len(names) / covered))
        return best

    @cached_property
    def fresh(self) -> list[Fresh]:
        found = []
        for (who, name), uses in self.pairs.items():
            day = min(use.day for use in uses)
            is_settled = day - self.known_since[name] >= self.limits["settled_days"]
            is_news = self.habits.is_grown_up(who, day) and is_settled
            if is_news or self.allowed_since(who, name) == math.inf:
                today = [use for use in uses if use.day == day]
                found.append(Fresh(who, name, day, today, len({use.day for use in uses})))
        return found

    def first_seen(self) -> Iterator[Expected]:
        allowed = by((one for one in self.fresh if one.is_allowed), lambda one: one.who)
        for who, mine in allowed.items():
            novel, looks = (
                len({one.day for one in mine if one.day < self.habits.start}),
                self.habits.looks(who),
            )
            weight, least = self.limits["affinity_weight"], self.limits["first_seen_surprise"]
            for day, some in by(mine, lambda one: one.day).items():
                surprises = {
                    one.name: rarity(novel, looks) - weight * self.affinity(who, one.name)
                    for one in some
                    if self.is_judged(day) and one.used_days < self.limits["habit_days"]
                }
                names = [name for name, surprise in surprises.items() if surprise >= least]
                if not names:
                    continue
                uses = [use for one in some if one.name in names for use in one.uses]
                evidence = {
                    "new_resources": len(names), "names": first_names(names), "novel_days": novel,
                    "looks": looks,
                }  # fmt: skip
                surprise = max(surprises[name] for name in names) + math.log(len(names))
                counted = [len(names)] if len(names) > 1 else []
                yield Expected(
                    "FIRST_SEEN_ACCESS", who, day, surprise, least, {len(uses)}, span_of(uses), evidence,
                    [*counted, novel, looks], ("TOPIC", names[0] if len(names) == 1 else None),
                )  # fmt: skip

    def enumerations(self) -> Iterator[Expected]:
        few, habit = self.limits["attempts_per_name"], self.limits["habit_days"]
        least, threshold = self.limits["enumerated_topics"], self.limits["enumeration_surprise"]
        tried = by(
            (one for one in self.fresh if len(one.uses) <= few and one.used_days < habit), lambda one: one.who
        )
        for who, mine in tried.items():
            by_day = by(mine, lambda one: one.day)
            mean, variance = self.habits.crowd(
                who, {day: len(self.habits.lately(by_day, day)) for day in by_day}
            )
            for day, today in by_day.items():
                lately = self.habits.lately(by_day, day)
                became = len(today) >= least or len(lately) - len(today) < least
                surprise = tail(len(lately), mean, variance)
                if not (self.is_judged(day) and len(lately) >= least and became and surprise >= threshold):
                    continue
                uses = [use for one in today for use in one.uses]
                evidence: dict[str, Any] = {
                    "topics": len(lately), "tried_days": len({one.day for one in lately}),
                    "denied_topics": sum(not one.is_allowed for one in lately), "mean": mean,
                    "names": first_names(one.name for one in lately),
                    "active_days": self.habits.active_days(who),
                }  # fmt: skip
                numbers = [evidence[name] for name in ("topics", "tried_days", "denied_topics")]
                each = sum(len(one.uses) for one in lately) / len(lately)
                yield Expected(
                    "TOPIC_ENUMERATION", who, day, surprise, threshold, {len(uses)}, span_of(uses), evidence,
                    [*numbers, each, mean], ("TOPIC", None),
                )  # fmt: skip

    def sweeps(self) -> Iterator[Expected]:
        limits = self.limits
        for who, uses in self.habits.of.items():
            governing = [use for use in uses if use.operation in GOVERNING and use.name and not use.is_super]
            by_day: dict[int, list[list[Use]]] = {}
            for some in by(governing, lambda use: (use.operation, use.name)).values():
                first = min(use.day for use in some)
                for day, today in by(some, lambda use: use.day).items():
                    is_odd = day == first or not all(use.is_allowed for use in today)
                    if is_odd and len(today) <= limits["attempts_per_name"]:
                        by_day.setdefault(day, []).append(today)
            lately = {day: self.habits.lately(by_day, day) for day in by_day}
            tried = {day: {use.name for some in found for use in some} for day, found in lately.items()}
            mean, variance = self.habits.crowd(who, {day: len(names) for day, names in tried.items()})
            for day, names in tried.items():
                found = [use for some in lately[day] for use in some]
                denied = {use.name for use in found if not use.is_allowed}
                surprise = tail(len(names), mean, variance)
                is_many = len(names) >= limits["swept_names"] and len(denied) >= limits["swept_names_denied"]
                if not (self.is_judged(day) and is_many and surprise >= limits["enumeration_surprise"]):
                    continue
                today = [use for some in by_day[day] for use in some]
                evidence: dict[str, Any] = {
                    "operations": sorted({use.operation for use in found}), "tried": len(names),
                    "denied_names": len(denied), "tried_days": len({use.day for use in found}), "mean": mean,
                    "names": first_names(names),
                }  # fmt: skip
                numbers = [len(names), evidence["tried_days"], len(denied), mean]
                yield Expected(
                    "SWEEP", who, day, surprise, limits["enumeration_surprise"], {len(today)}, span_of(today),
                    evidence, numbers, ("TOPIC", None),
                )  # fmt: skip

    def probed(self) -> Iterator[Expected]:
        least = self.limits["probed_operations"]
        for who, uses in self.habits.of.items():
            by_day: dict[int, list[list[Use]]] = {}
            for some in by((use for use in uses if not use.is_super), lambda use: use.operation).values():
                first = min(use.day for use in some)
                for (_, day), today in by(some, lambda use: (use.name, use.day)).items():
                    is_denied = not any(use.is_allowed for use in today)
                    is_new = day - first < self.limits["sweep_days"]
                    if is_denied and is_new and len(today) <= self.limits["attempts_per_name"]:
                        by_day.setdefault(day, []).append(today)
            for day, here in by_day.items():
                found = [use for some in self.habits.lately(by_day, day) for use in some]
                operations = {use.operation for use in found}
                weight = len(operations) + len(operations & GOVERNING)
                if not self.is_judged(day) or weight < least:
                    continue
                today = [use for some in here for use in some]
                names = [f"TOPIC {use.name}" if use.name else "TOPIC" for use in found]
                evidence = {
                    "operations": sorted(operations), "weight": weight, "names": first_names(names),
                }  # fmt: skip
                yield Expected(
                    "PRIVILEGE_PROBING", who, day, math.log(weight / least) + 1, 1.0, {len(today)},
                    span_of(today), evidence,
                )  # fmt: skip

    def hosts(self) -> Iterator[Expected]:
        limits, habits = self.limits, self.habits
        seen = by(habits.uses, lambda use: (use.who, network(use.host)))
        first = {key: min(use.day for use in uses) for key, uses in seen.items()}
        wide: dict[tuple[str, str], int] = {}
        for (who, net), day in first.items():
            wide[who, network(net, 2)] = min(wide.get((who, network(net, 2)), day), day)
        is_known = {(who, net): wide[who, network(net, 2)] < day for (who, net), day in first.items()}
        settled = {network(net, 2) for (_, net), day in first.items() if day < habits.start}
        came = {key: day for key, day in first.items() if habits.is_grown_up(key[0], day)}
        found: dict[tuple[str, int], list[tuple[float, int, str]]] = {}
        for (who, net), day in came.items():
            used_days = len({use.day for use in seen[who, net]})
            if not self.is_judged(day) or used_days >= limits["habit_days"]:
                continue
            novel = {
                other
                for (name, near), other in came.items()
                if name == who and other < habits.start and (is_known[who, net] or not is_known[name, near])
            }
            company = sum(
                name != who and near == net and abs(other - day) <= limits["company_days"]
                for (name, near), other in came.items()
            )
            residents = sum(near == net and other < habits.start for (_, near), other in first.items())
            is_shared = residents / len(habits.of) >= limits["shared_network_share"]
            surprise = (
                rarity(len(novel), habits.looks(who))
                - company * limits["company_surprise"]
                - (is_known[who, net] + is_shared) * limits["known_range_surprise"]
            )
            if surprise >= limits["new_host_surprise"]:
                found.setdefault((who, day), []).append((surprise, len(novel), net))
        for (who, day), some in found.items():
            uses = [use for *_, net in some for use in seen[who, net] if use.day == day]
            novel_days, looks = max(count for _, count, _ in some), habits.looks(who)
            evidence = {
                "hosts": first_names(use.host for use in uses),
                "denied": sum(not use.is_allowed for use in uses),
                "foreign_uses": sum(use.is_allowed and network(use.host, 2) not in settled for use in uses),
                "novel_days": novel_days, "looks": looks,
            }  # fmt: skip
            yield Expected(
                "NEW_HOST", who, day, max(one for one, *_ in some), limits["new_host_surprise"], {len(uses)},
                span_of(uses), evidence, [novel_days, looks],
            )  # fmt: skip

    def hours(self) -> Iterator[Expected]:
        limits, habits = self.limits, self.habits
        apart = range(-int(limits["hours_apart"]), int(limits["hours_apart"]) + 1)
        alone: dict[tuple[str, int, int], tuple[float, int]] = {}
        for who, uses in habits.of.items():
            near: Counter[tuple[int, int]] = Counter()
            for day, some in by((use for use in uses if use.day < habits.start), lambda use: use.day).items():
                hours = {(use.hour + by_hours) % 24 for use in some for by_hours in apart}
                near.update((day % 7, hour) for hour in hours)
            if habits.active_days(who):
                known = range(habits.days[who][0], habits.start)
                for use in uses:
                    if use.is_allowed and self.is_judged(use.day) and habits.is_grown_up(who, use.day):
                        alone[who, use.day, use.hour] = self._hour(use, near, known)
        odd = {key: found for key, found in alone.items() if found[0] >= limits["hours_surprise"]}
        together = Counter((day, hour) for _, day, hour in odd)
        times = Counter((who, hour) for who, _, hour in odd)
        rare = [key for key in odd if times[key[0], key[2]] < limits["habit_days"]]
        for (who, day), keys in by(rare, lambda key: key[:2]).items():
            surprise = max(odd[key][0] for key in keys) / max(together[key[1:]] for key in keys)
            if surprise < limits["hours_surprise"]:
                continue
            unusual = sorted(key[2] for key in keys)
            today = [use for use in habits.of[who] if use.day == day and use.is_allowed]
            count = math.ceil(len(today) * len(unusual) / len({use.hour for use in today}))
            near_days, active = max(odd[key][1] for key in keys), habits.active_days(who)
            evidence = {"hours": unusual, "near_days": near_days, "active_days": active}
            span = (day * DAY_MS + unusual[0] * HOUR_MS, day * DAY_MS + unusual[-1] * HOUR_MS + 3_599_000)
            yield Expected(
                "UNUSUAL_HOURS", who, day, surprise, limits["hours_surprise"], {count}, span, evidence,
                [*unusual, near_days, active],
            )  # fmt: skip

    def _hour(self, use: Use, near: Mapping[tuple[int, int], int], known: range) -> tuple[float, int]:
        """Return the surprise of an hour of a day, and on how many days the principal was active near it."""
        limits = self.limits
        at = {weekday: near[weekday, use.hour] for weekday in range(7) if (weekday, use.hour) in near}
        surprise = rarity(sum(at.values()), self.habits.active_days(use.who))
        weeks = max(len(known) // 7, 1)
        regular = sum(count >= weeks * limits["regular_share"] for count in at.values())
        if regular >= limits["regular_weekdays"] and use.day % 7 not in at:
            occurred = Counter(day % 7 for day in known)
            exceptions = sum(min(count, max(occurred[day] - count, 0)) for day, count in at.items())
            surprise = max(surprise, rarity(exceptions, len(known)))
        return surprise, sum(at.values())

    def super_users(self) -> Iterator[Expected]:
        limits, habits = self.limits, self.habits
        for who, uses in habits.of.items():
            mine = [use for use in uses if use.is_super]
            before = len({use.day for use in mine if use.day < habits.start})
            fresh = [
                some
                for some in by(mine, lambda use: use.operation).values()
                if min(use.day for use in some) >= habits.start
                and len({use.day for use in some}) < limits["habit_days"]
            ]
            for day, some in by((use for each in fresh for use in each), lambda use: use.day).items():
                surprise = rarity(0, before or day - habits.began)
                is_early = day - habits.began < limits["learning_days"]
                if is_early or surprise < limits["super_user_surprise"]:
                    continue
                names = first_names(use.name for use in some)
                evidence = {
                    "uses": sorted({f"{use.operation} TOPIC" for use in some}), "names": names,
                    "hosts": first_names(use.host for use in some), "super_days": before,
                }  # fmt: skip
                yield Expected(
                    "SUPER_USER_USE", who, day, surprise, limits["super_user_surprise"], {len(some)},
                    span_of(some), evidence, (), ("TOPIC", names[0] if len(names) == 1 else None),
                )  # fmt: skip

    def waking(self) -> Iterator[Expected]:
        limits, habits = self.limits, self.habits
        recorded = {day for some in habits.days.values() for day in some}
        for who, days in habits.days.items():
            silences = [after - before - 1 for before, after in pairwise(days)]
            for place, silent in enumerate(silences):
                last, day, longest = days[place], days[place + 1], max(silences[:place], default=0)
                rate = (place + 1) / (last - habits.began + 1)
                uses = [use for use in habits.of[who] if use.day == day]
                before = {network(use.host, 2) for use in habits.of[who] if use.day < day}
                is_leave = rate < limits["daily_share"] and silent < limits["leave_days"]
                is_leave &= {network(use.host, 2) for use in uses} <= before
                is_long = silent >= limits["dormant_days"] and longest < silent * limits["periodic_share"]
                evident = sum(last < one < day for one in recorded)
                is_long &= evident >= limits["dormant_days"] * 0.6
                surprise = rate * evident
                if (
                    not self.is_judged(day)
                    or not is_long
                    or is_leave
                    or surprise < limits["dormant_surprise"]
                ):
                    continue
                since = datetime.fromtimestamp(last * 86_400, UTC).date()
                evidence = {
                    "silent_days": silent, "recorded_days": evident, "last_day": since.isoformat(),
                    "days_before": place + 1, "longest_before": longest,
                    "hosts": first_names(use.host for use in uses),
                }  # fmt: skip
                numbers = [silent, since.year, since.month, since.day, evident, longest]
                yield Expected(
                    "DORMANT_WAKING", who, day, surprise, limits["dormant_surprise"], {len(uses)},
                    span_of(uses), evidence, numbers,
                )  # fmt: skip
