"""What `docs/reference/anomalies.md` says before its first kind: thresholds, uses, networks, surprise, score.

Plain Python that shares no code with the detectors; the thresholds are those of the page.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.pipeline.plain_page import milliseconds

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "anomalies.md"
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
NAMES_MAX: Final = 20
GOVERNING: Final = {
    "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "CLUSTER_ACTION", "CREATE_TOKENS",
}  # fmt: skip
ALWAYS_HIGH: Final = {
    "BRUTE_FORCE", "SWEEP", "PRIVILEGE_PROBING", "TOPIC_ENUMERATION", "PASSWORD_SPRAYING",
    "LOGIN_AFTER_FAILURES",
}  # fmt: skip
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def documented() -> dict[str, float]:
    """Return the thresholds by name, as the page's table has them."""
    return {
        name: float(value)
        for name, value in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE.read_text(), re.MULTILINE)
    }


def rarity(seen: float, looks: float) -> float:
    return -math.log((seen + 0.5) / (looks + 1))


def tail(count: float, mean: float, variance: float) -> float:
    """Return the surprise of so many or more."""
    if count <= mean:
        return 0.0
    if variance - mean <= 1e-6:
        return count * math.log(count / mean) - count + mean
    size = mean * mean / (variance - mean)
    return count * math.log(count / mean) - (count + size) * math.log((count + size) / (mean + size))


def network(host: str, parts: int = 3) -> str:
    """Return the network of an IPv4 address; `parts` 2: the wide one."""
    return ".".join(host.split(".")[:parts])


def first_names(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name is not None})[:NAMES_MAX]


@dataclass(frozen=True, slots=True)
class Use:
    """One recorded decision of access; `day` counts from 1970, and `rule` with its ACL is one text."""

    who: str
    host: str
    operation: str
    name: str | None
    day: int
    hour: int
    time_ms: int
    decision: str
    rule: str
    is_super: bool

    @property
    def is_allowed(self) -> bool:
        return self.decision == "ALLOWED"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a finding must say; `numbers` are those of its reason, in order."""

    kind: str
    who: str | None
    day: int
    surprise: float
    threshold: float
    counts: Collection[int]
    """What `event_count` may be."""
    span_ms: tuple[int, int]
    evidence: Mapping[str, Any]
    numbers: Sequence[float] = ()
    resource: tuple[str | None, str | None] = (None, None)
    host: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return self.kind, self.who, self.day, self.host

    @property
    def score(self) -> float:
        return self.surprise / (self.surprise + self.threshold)

    @property
    def severity(self) -> str:
        if self.kind in ALWAYS_HIGH or self.evidence.get("foreign_uses", 0) or self.score >= 0.75:
            return "MEDIUM" if self.kind == "MISSING_RIGHT" else "HIGH"
        return "MEDIUM" if self.score >= 0.6 else "LOW"


def span_of(uses: Iterable[Use]) -> tuple[int, int]:
    times = [use.time_ms for use in uses]
    return min(times), max(times)


def by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return dict(found)


@dataclass
class Habits:
    """The uses of a cluster until the end of a window, and what is known of each principal."""

    rows: Iterable[Mapping[str, Any]]
    start: int
    end: int
    super_users: Collection[str]
    limits: Mapping[str, float] = field(default_factory=documented)

    def __post_init__(self) -> None:
        self.uses = [
            self._use(row)
            for row in self.rows
            if row["access"] == "ACCESS"
            and self.start - self.limits["history_days"] <= row["time_ms"] // DAY_MS < self.end
        ]
        self.of = by(self.uses, lambda use: use.who)
        self.days = {who: sorted({use.day for use in uses}) for who, uses in self.of.items()}
        self.began = min(use.day for use in self.uses)

    def _use(self, row: Mapping[str, Any]) -> Use:
        is_super = row["rule"] == "SuperUser" or (
            row["rule"] is None and row["principal"] in self.super_users
        )
        return Use(
            row["principal"], row["host"], row["operation"], row["resource_name"],
            row["time_ms"] // DAY_MS, row["time_ms"] % DAY_MS // HOUR_MS, row["time_ms"], row["decision"],
            f"{row['rule']} {row['rule_acl']}", row["decision"] == "ALLOWED" and is_super,
        )  # fmt: skip

    def is_grown_up(self, who: str, day: int) -> bool:
        return day - self.days[who][0] >= self.limits["learning_days"]

    def active_days(self, who: str) -> int:
        return sum(day < self.start for day in self.days[who])

    def looks(self, who: str) -> int:
        return max(1, sum(day < self.start and self.is_grown_up(who, day) for day in self.days[who]))

    def crowd(self, who: str, counts: Mapping[int, int]) -> tuple[float, float]:
        """Return mean and variance of what a principal tried on days of the history."""
        before = [count for day, count in counts.items() if day < self.start]
        looks = max(self.active_days(who), 1)
        mean = (sum(before) + 0.5) / looks
        return mean, (sum(count * count for count in before) + 0.5) / looks + mean

    def lately(self, by_day: Mapping[int, list[T]], day: int) -> list[T]:
        """Return what was on a day and on those before it that count with it."""
        return [
            one
            for other, some in by_day.items()
            if 0 <= day - other < self.limits["sweep_days"]
            for one in some
        ]


def day_of(day: date) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000) // DAY_MS


def check_anomalies(rows: Sequence[Mapping[str, Any]], expected: Iterable[Expected]) -> None:
    """Check every value of each row of `anomalies`, and that none is missing."""
    found = {}
    for row in rows:
        evidence = json.loads(row["evidence"])
        # a search of an address is one of several of a day; other evidence has `hosts`
        found[row["kind"], row["principal"], day_of(row["day"]), evidence.get("host")] = row, evidence
    wanted = {one.key: one for one in expected}
    assert len(found) == len(rows)
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    for key, (row, evidence) in found.items():
        one = wanted[key]
        assert row["score"] == pytest.approx(one.score, rel=1e-6), key
        assert (row["severity"], row["resource_type"], row["resource_name"]) == (
            one.severity,
            *one.resource,
        ), key
        assert row["event_count"] in one.counts, key
        assert (milliseconds(row["first_time"]), milliseconds(row["last_time"])) == one.span_ms, key
        assert evidence.pop("surprise") == pytest.approx(one.surprise, abs=0.001), key
        known = {name: value for name, value in one.evidence.items() if value is not None}
        assert evidence == {
            name: pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
            for name, value in known.items()
        }, key
        assert numbers_in(row["reason"], one.host) == pytest.approx(one.numbers, abs=0.051), key


def numbers_in(reason: str, host: str | None) -> Sequence[float]:
    """Return the numbers of a sentence, without names and an address in it."""
    text = re.sub(r"`[^`]*`", "", reason).replace(host or "\0", "")
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def check_states(
    states: Sequence[Mapping[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    said: Mapping[str, Any],
    last: date,
) -> None:
    """Check `anomaly_states`, of which no earlier run knew any, and what the search until a day says."""
    rows_by_id = by(rows, lambda row: row["anomaly_id"])
    assert sorted(row["anomaly_id"] for row in states) == sorted(rows_by_id)
    for state in states:
        mine = rows_by_id[state["anomaly_id"]]
        newest = max(mine, key=lambda row: row["day"])
        sums = (min(row["first_time"] for row in mine), max(row["last_time"] for row in mine))
        days = [row["day"] for row in mine]
        assert (state["first_time"], state["last_time"]) == sums
        assert (state["first_day"], state["last_day"], state["day_count"]) == (
            min(days),
            max(days),
            len(days),
        )
        assert state["event_count"] == sum(row["event_count"] for row in mine)
        names = ("kind", "principal", "severity", "score", "reason", "evidence", "resource_name")
        assert [state[name] for name in names] == [newest[name] for name in names]
        is_over = state["severity"] != "HIGH" and (last - state["last_day"]).days >= 7
        assert state["state"] == ("RESOLVED" if is_over else "OPEN")
    assert said["kinds"] == Counter(state["kind"] for state in states)
    assert said["states"] == Counter(state["state"] for state in states)
    assert said["new"] == len(states)
    order = ["HIGH", "MEDIUM", "LOW"]
    grave = sorted(
        states, key=lambda one: (one["state"] != "OPEN", order.index(one["severity"]), -one["score"])
    )
    assert [row["score"] for row in said["anomalies"]] == [
        row["score"] for row in grave[: len(said["anomalies"])]
    ]
