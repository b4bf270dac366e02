"""The anomalies about failed logins that must be there, by the words of `docs/reference/anomalies.md`."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.pipeline.plain_uses import DAY_MS, Expected, Habits, by, first_names, network

Login = Mapping[str, Any]
"""A recorded login, by the names of its fields."""


@dataclass(frozen=True)
class LoginDay:
    """The logins of a name from an address in a day, some of which failed."""

    name: str
    host: str
    day: int
    logins: list[Login]
    is_home: bool

    @property
    def failures(self) -> list[Login]:
        return [one for one in self.logins if one["result"] == "FAILURE"]

    @property
    def failed(self) -> int:
        return attempts(self.failures)

    @property
    def succeeded(self) -> int:
        return attempts(self.logins) - self.failed

    @property
    def failed_before(self) -> int:
        """How many failed before the last success of the day."""
        last = max((one["time_ms"] for one in self.logins if one["result"] == "SUCCESS"), default=-1)
        return attempts(one for one in self.failures if one["first_time_ms"] <= last)


def attempts(logins: Iterable[Login]) -> int:
    return sum(one["attempt_count"] for one in logins)


def span_of_days(days: Iterable[LoginDay]) -> tuple[int, int]:
    """Return the first failure and the last login."""
    days = list(days)
    first = min(one["first_time_ms"] for day in days for one in day.failures)
    return first, max(one["time_ms"] for day in days for one in day.logins)


class PlainLogins:
    """The logins of a cluster; thresholds and days are those of the habits."""

    def __init__(self, habits: Habits, logins: Iterable[Login]) -> None:
        self.habits, self.limits = habits, habits.limits
        self.least = habits.limits["failed_logins_min"]
        first = habits.start - self.limits["history_days"]
        seen = [one for one in logins if first <= one["time_ms"] // DAY_MS < habits.end]
        got_in = [one for one in seen if one["result"] == "SUCCESS"]
        names_at = {host: {one["claimed_name"] for one in some} for host, some in by(got_in, _host).items()}
        since = {key: min(map(_day, some)) for key, some in by(got_in, lambda one: _source(one)).items()}
        self.days = []
        for (source, day), some in by(seen, lambda one: (_source(one), _day(one))).items():
            is_alone = len(names_at.get(source[1], ())) < self.limits["sprayed_names_min"]
            is_home = since.get(source, day) < day and is_alone
            if any(one["result"] == "FAILURE" for one in some):
                self.days.append(LoginDay(*source, day, some, is_home))

    def all(self) -> list[Expected]:
        guessed = list(self.guessed())
        known = {(one.who, one.day) for one in guessed}
        slowly = [one for one in self.guessed_slowly() if (one.who, one.day) not in known]
        return [*guessed, *slowly, *self.sprayed()]

    def guessed(self) -> Iterator[Expected]:
        many = [one for one in self.days if one.failed >= self.least and not one.is_home]
        before = [one for one in many if one.day < self.habits.start]
        for one in many:
            mine = [other for other in before if other.name == one.name]
            here = {other.day for other in mine if other.host == one.host}
            around = {other.day for other in mine if network(other.host, 2) == network(one.host, 2)}
            is_in = one.failed_before >= self.least
            is_habit = len(here) >= self.limits["habit_days"]
            is_habit |= len(around) >= self.limits["habit_days"] and not is_in
            if one.day >= self.habits.start and not is_habit:
                evidence = {
                    "host": one.host, "failed": one.failed, "succeeded": one.succeeded,
                    "failed_before": one.failed_before, "addresses": 1,
                }  # fmt: skip
                yield self._guess(one.name, one.day, evidence, span_of_days([one]))

    def guessed_slowly(self) -> Iterator[Expected]:
        few = [one for one in self.days if one.failed < self.least and not one.is_home]
        for name, mine in by(few, lambda one: one.name).items():
            by_day = by(mine, lambda one: one.day)
            many = {}
            for day in by_day:
                lately = self.habits.lately(by_day, day)
                failed, hosts = sum(one.failed for one in lately), {one.host for one in lately}
                if failed >= self.least and len(hosts) > 1:
                    many[day] = failed, len(hosts)
            if sum(day < self.habits.start for day in many) >= self.limits["habit_days"]:
                continue
            for day, (failed, addresses) in many.items():
                if day >= self.habits.start:
                    today = by_day[day]
                    evidence = {
                        "failed": failed, "succeeded": sum(one.succeeded for one in today),
                        "failed_before": failed if any(one.failed_before for one in today) else 0,
                        "addresses": addresses,
                    }  # fmt: skip
                    yield self._guess(name, day, evidence, span_of_days(today))

    def _guess(self, name: str, day: int, evidence: dict[str, Any], span: tuple[int, int]) -> Expected:
        failed, host = evidence["failed"], evidence.get("host")
        is_in = evidence["failed_before"] >= self.least
        return Expected(
            "LOGIN_AFTER_FAILURES" if is_in else "PASSWORD_GUESSING", f"User:{name}", day,
            math.log(failed / self.least) + 1, 1.0, {failed}, span, evidence, [failed], host=host,
        )  # fmt: skip

    def sprayed(self) -> Iterator[Expected]:
        least = self.limits["sprayed_names_min"]
        failing = [one for one in self.days if one.day >= self.habits.start and not one.succeeded]
        for (host, day), some in by(failing, lambda one: (one.host, one.day)).items():
            names, failed = {one.name for one in some}, sum(one.failed for one in some)
            if len(names) >= least:
                evidence = {
                    "host": host, "failed": failed, "name_count": len(names), "names": first_names(names),
                }  # fmt: skip
                yield Expected(
                    "PASSWORD_SPRAYING", None, day, math.log(len(names) / least) + 1, 1.0, {failed},
                    span_of_days(some), evidence, [failed, len(names)], host=host,
                )  # fmt: skip


def _host(login: Login) -> str:
    return str(login["host"])


def _source(login: Login) -> tuple[str, str]:
    return str(login["claimed_name"]), str(login["host"])


def _day(login: Login) -> int:
    return int(login["time_ms"]) // DAY_MS
