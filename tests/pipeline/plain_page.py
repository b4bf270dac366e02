"""What the report's page should say, counted from the raw lines by SQL and from rows of answers by hand."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb

from tests.pipeline.plain_entitlements import ACL_NAMES

SHOWN = 15
"""Rows of a list on the page."""
AGES = ((1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "365 days"))
Span = tuple[datetime, datetime]


def milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def bars_of(chart: Any) -> list[tuple[int, int, int]]:
    return [(milliseconds(bar.start) or 0, bar.allowed, bar.denied) for bar in chart.bars]


def _rule(rule: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the kind of a rule, and the ACL that it is, as one text; both are empty where none is named."""
    if rule is None:
        return "", ""
    is_acl = rule["kind"] == "MatchingAcl"
    return rule["kind"] or "", "|".join(str(rule[name]) for name in ACL_NAMES) if is_acl else ""


class PlainPage:
    """The lines of a cluster in DuckDB; `span` leaves out what was not between two moments."""

    def __init__(self, raw: duckdb.DuckDBPyConnection, cluster: str, span: Span | None = None) -> None:
        self._raw = raw
        first, end = (0, 1 << 62) if span is None else (milliseconds(time) or 0 for time in span)
        self._asked = {"cluster": cluster, "first": first, "end": end}

    def asked(self, query: str, **more: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in which `{of}` is the condition on the cluster and the span."""
        of = "cluster = $cluster AND time_ms >= $first AND time_ms < $end"
        return self._raw.execute(query.replace("{of}", of), self._asked | more).fetchall()

    def check_rollup(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Check that the roll-up has each event once, by day, question, decision and rule."""
        keys = ("principal", "host", "operation", "resource_name", "decision", "access")
        found = [
            (row["day"], *(row[key] or "" for key in keys), *_rule(row["rule"]), row["event_count"],
             row["reference_count"], milliseconds(row["first_time"]), milliseconds(row["last_time"]),
             row["hours"])
            for row in rows
        ]  # fmt: skip
        texts = ", ".join(f"coalesce({key}, '')" for key in (*keys, "rule", "rule_acl"))
        query = f"""
            SELECT epoch_ms(time_ms)::DATE, {texts}, count(*), coalesce(sum(reference_count), 0)::BIGINT,
                   min(time_ms), max(time_ms), bit_or(1::INT << hour(epoch_ms(time_ms))::INT)
            FROM decisions WHERE {{of}} GROUP BY ALL"""
        assert sorted(found) == sorted(self.asked(query))

    def check_totals(self, totals: Any) -> None:
        """Check the sums at the head of the page."""
        query = """
            SELECT count_if(decision = 'ALLOWED'), count_if(decision <> 'ALLOWED' AND access <> 'PROBE'),
                   count_if(access = 'PROBE'), count_if(decision <> 'ALLOWED' AND access = 'LISTING'),
                   count_if(decision = 'ERROR'), count(DISTINCT principal),
                   count(DISTINCT coalesce(resource_name, '')), min(time_ms), max(time_ms)
            FROM decisions WHERE {of}"""
        found = (
            totals.allowed, totals.denied, totals.probes, totals.denied_listing, totals.error,
            totals.principals, totals.resources, milliseconds(totals.first_time),
            milliseconds(totals.last_time),
        )  # fmt: skip
        assert [found] == self.asked(query)

    def check_rows(self, page: Any) -> None:
        """Check each row of denials and of what a principal did, and that the largest denials are shown."""
        query = """
            SELECT principal, operation, resource_name, decision, count_if(access <> 'PROBE'),
                   count_if(access = 'ACCESS'), min(time_ms), max(time_ms)
            FROM decisions WHERE {of} GROUP BY principal, operation, resource_name, decision"""
        groups = {row[:4]: row[4:] for row in self.asked(query)}
        for row in (*page.denials, *(row for _, rows in page.drill_down for row in rows)):
            key = (row.principal, row.operation, row.resource_name, row.decision)
            times = (milliseconds(row.first_time), milliseconds(row.last_time))
            assert (row.event_count, row.attempts, *times) == groups[key], key
        attempts = sorted((found[1] for key, found in groups.items() if key[3] != "ALLOWED"), reverse=True)
        assert [row.attempts for row in page.denials] == [count for count in attempts if count][:SHOWN]

    def check_matrix(self, page: Any) -> None:
        """Check each cell of the matrix, and that no event is outside of it."""
        query = """
            SELECT principal, resource_name, count_if(decision = 'ALLOWED'), count_if(decision <> 'ALLOWED')
            FROM decisions WHERE {of} AND access <> 'PROBE' GROUP BY ALL"""
        cells = {row[:2]: row[2:] for row in self.asked(query)}
        named = {
            (who, label[1]): cell
            for (who, label), cell in page.matrix.cells.items()
            if label is not None and who is not None
        }
        assert named == {key: cells[key] for key in named}
        everything = [sum(cell[at] for cell in page.matrix.cells.values()) for at in (0, 1)]
        assert everything == [page.totals.allowed, page.totals.denied]

    def activity(self, width_ms: int) -> list[tuple[int, int, int]]:
        """Return start, allowed and denied of each bar from the first to the last with an event."""
        return self._filled(
            """
            SELECT time_ms // $width * $width, count_if(decision = 'ALLOWED'), count_if(decision <> 'ALLOWED')
            FROM decisions WHERE {of} AND access <> 'PROBE' GROUP BY 1""",
            width_ms,
        )

    def check_bars(self, page: Any, width_ms: int, width: str) -> None:
        """Check every bar of what was allowed and denied, and of what was denied alone."""
        expected = self.activity(width_ms)
        assert bars_of(page.activity) == expected
        assert bars_of(page.denied_activity) == [(start, 0, denied) for start, _, denied in expected]
        assert page.activity.width == page.denied_activity.width == width
        assert page.activity.top >= max(allowed + denied for _, allowed, denied in expected)

    def login_activity(self, width_ms: int) -> list[tuple[int, int, int]]:
        """Return the same of logins: succeeded and failed."""
        return self._filled(
            """
            SELECT time_ms // $width * $width,
                   coalesce(sum(attempt_count) FILTER (result = 'SUCCESS'), 0)::BIGINT,
                   coalesce(sum(attempt_count) FILTER (result = 'FAILURE'), 0)::BIGINT
            FROM logins WHERE {of} GROUP BY 1""",
            width_ms,
        )

    def _filled(self, query: str, width_ms: int) -> list[tuple[int, int, int]]:
        found = {row[0]: row[1:] for row in self.asked(query, width=width_ms)}
        starts = range(min(found), max(found) + 1, width_ms) if found else ()
        return [(start, *found.get(start, (0, 0))) for start in starts]

    def login_sources(self) -> set[tuple[Any, ...]]:
        """Return name, host, failed, succeeded, first and last failure, and reasons of each source."""
        found = self.asked("""
            SELECT claimed_name, host, sum(attempt_count) FILTER (result = 'FAILURE')::BIGINT AS failed,
                   coalesce(sum(attempt_count) FILTER (result = 'SUCCESS'), 0)::BIGINT,
                   min(first_time_ms) FILTER (result = 'FAILURE'), max(time_ms) FILTER (result = 'FAILURE'),
                   list_sort(list(DISTINCT failure) FILTER (result = 'FAILURE'))
            FROM logins WHERE {of} GROUP BY 1, 2 HAVING failed > 0""")
        return {(*row[:-1], tuple(row[-1])) for row in found}

    def check_review(self, rows: Sequence[Any], super_users: Iterable[str], end_ms: int) -> None:
        """Check the uses of each row of `access_review` that has any, up to a moment."""
        query = """
            SELECT principal, operation, coalesce(resource_name, ''), count_if(decision = 'ALLOWED') AS used,
                   count_if(decision <> 'ALLOWED'), max(time_ms) FILTER (decision = 'ALLOWED')
            FROM decisions WHERE {of} AND access = 'ACCESS' AND time_ms <= $until
            GROUP BY 1, 2, 3 HAVING used > 0"""
        found = [
            (row["principal"], row["operation"], row["resource_name"] or "", row["use_count"],
             row["denied_count"], milliseconds(row["last_used"]))
            for row in rows if row["use_count"] and row["resource_type"] != "ANY"
        ]  # fmt: skip
        assert sorted(found) == sorted(self.asked(query, until=end_ms))
        of_super_users = {
            row["principal"]: (row["use_count"], row["denied_count"], milliseconds(row["last_used"]))
            for row in rows if row["resource_type"] == "ANY"
        }  # fmt: skip
        query = """
            SELECT count(*) FILTER (decision = 'ALLOWED'), count(*) FILTER (decision <> 'ALLOWED'),
                   max(time_ms) FILTER (decision = 'ALLOWED')
            FROM decisions WHERE {of} AND access = 'ACCESS' AND time_ms <= $until
            AND principal = $principal"""
        assert of_super_users == {
            who: self.asked(query, until=end_ms, principal=who)[0] for who in super_users
        }
        assert [row["principal"] for row in rows if not row["use_count"]].count("User:nobody") == 1

    def news(self, since_ms: int) -> list[tuple[Any, ...]]:
        """Return one row: new accesses allowed and denied, principals new and silent since, and days."""
        return self.asked(
            """
            WITH accesses AS (
                SELECT principal, decision, min(time_ms) > $since AS is_new, max(time_ms) > $since AS is_seen,
                       count_if(access = 'ACCESS') > 0 AS is_access
                FROM decisions WHERE {of} GROUP BY principal, operation, resource_name, decision),
            principals AS (
                SELECT count_if(is_new AND is_access AND decision = 'ALLOWED') AS allowed,
                       count_if(is_new AND is_access AND decision <> 'ALLOWED') AS denied,
                       bool_and(is_new) AS is_new, bool_or(is_seen) AS is_seen
                FROM accesses GROUP BY principal)
            SELECT sum(allowed)::BIGINT, sum(denied)::BIGINT, count_if(is_new), count_if(NOT is_seen),
                   (SELECT count(DISTINCT time_ms // 86400000) FROM decisions WHERE {of} AND time_ms > $since)
            FROM principals""",
            since=since_ms,
        )

    def new_counts(self, since_ms: int) -> list[tuple[Any, ...]]:
        """Return whether it was allowed and the count of each new access, in the order of the page."""
        return self.asked(
            """
            SELECT decision = 'ALLOWED' AS is_allowed, count_if(access <> 'PROBE') AS events
            FROM decisions WHERE {of} GROUP BY principal, operation, resource_name, decision
            HAVING min(time_ms) > $since AND events > 0 ORDER BY 1, 2 DESC""",
            since=since_ms,
        )[:SHOWN]

    def by_team(self, teams: Mapping[str, str]) -> set[tuple[Any, ...]]:
        """Return team, principals, allowed and denied; `teams` has a name or a beginning with `*`."""

        def of(who: str) -> str | None:
            fitting = (one for one in teams if who == one or (one[-1] == "*" and who.startswith(one[:-1])))
            return next((teams[one] for one in fitting), None)

        found: dict[str | None, list[int]] = {}
        for who, allowed, denied in self.asked("""
            SELECT principal, count_if(decision = 'ALLOWED'), count_if(decision <> 'ALLOWED')
            FROM decisions WHERE {of} AND access <> 'PROBE' GROUP BY 1"""):
            sums = found.setdefault(of(who), [0, 0, 0])
            for place, count in enumerate((1, allowed, denied)):
                sums[place] += count
        return {(team, *sums) for team, sums in found.items()}


Decide = Callable[[str, str, str, str | None], bool]
"""Whether a client, host and operation is allowed on a topic, or on any."""


def flips_by(rows: Iterable[Mapping[str, Any]], allows: Decide) -> tuple[dict[str, int], dict[Any, Any]]:
    """Return sums of recorded decisions that other ACLs decide differently, and each kind of them.

    A kind is (allowed then, principal, operation, topic); it has requests, hosts, first and last time.
    """
    sums = Counter[str](lost=0, gained=0, rule_changed=0, listing=0)
    kinds: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        is_allowed = allows(row["principal"], row["host"], row["operation"], row["resource_name"])
        if (row["decision"] == "ALLOWED") == is_allowed:
            continue
        if row["access"] == "LISTING":
            sums["listing"] += 1
        elif is_allowed or row["access"] == "ACCESS":
            sums["gained" if is_allowed else "lost"] += 1
            key = (is_allowed, row["principal"], row["operation"], row["resource_name"])
            kinds.setdefault(key, []).append(row)
    found = {
        key: (
            len(some),
            len({row["host"] for row in some}),
            min(row["time_ms"] for row in some),
            max(row["time_ms"] for row in some),
        )
        for key, some in kinds.items()
    }
    return dict(sums) | {"principals": len({key[1] for key in found})}, found


def check_replayed(shown: Any, rows: Iterable[Mapping[str, Any]], allows: Decide) -> None:
    """Check the page's replay against every recorded decision."""
    sums, kinds = flips_by(rows, allows)
    assert {name: getattr(shown, name) for name in sums} == sums
    for flip in shown.flips:
        key = (flip.allowed, flip.principal, flip.operation, flip.resource_name)
        times = (milliseconds(flip.first_time), milliseconds(flip.last_time))
        assert (flip.requests, flip.hosts, *times) == kinds[key], key
    for direction in (False, True):
        largest = sorted((found[0] for key, found in kinds.items() if key[0] is direction), reverse=True)
        assert [flip.requests for flip in shown.flips if flip.allowed is direction] == largest[:SHOWN]


def check_grants(shown: Any, review: Sequence[Any]) -> None:
    """Check the page's grants against the rows of `access_review`."""
    granted = [row for row in review if row["granted_by"]]

    def age(row: Any) -> str:
        if row["last_used"] is None:
            return "no use recorded"
        return next((label for days, label in AGES if row["dormant_days"] <= days), "longer ago")

    ages = Counter(map(age, granted))
    assert {label: count for label, count in shown.ages if count} == ages
    dormant = [row["dormant_days"] for row in review if row["is_dormant"]]
    unknown = sum(days is None for days in dormant)
    assert (shown.grants, shown.dormant, shown.unknown) == (len(granted), len(dormant), unknown)
    assert shown.too_early == sum(row["is_dormant"] is None for row in review)
    covers = {(row["recorded_days"], row["covered_since"]) for row in review}
    assert covers <= {(shown.recorded_days, shown.covered_since)}
    longest = sorted(dormant, key=lambda days: (days is not None, -(days or 0)))
    assert [row.dormant_days for row in shown.most_dormant] == longest[: len(shown.most_dormant)]
    assert len(shown.most_dormant) == min(25, len(dormant))


def check_findings(shown: Any, findings: Sequence[Any], states: Sequence[Any]) -> None:
    """Check the page's findings against the rows of `findings` and `anomaly_states`."""
    everything = [*findings, *({**row, "finding_id": row["anomaly_id"]} for row in states)]
    assert shown.count == len(everything)
    found = {group.kind: (group.count, group.high) for group in shown.kinds}
    kinds = Counter(row["kind"] for row in everything)
    high = Counter(row["kind"] for row in everything if row["severity"] == "HIGH")
    assert found == {kind: (count, high[kind]) for kind, count in kinds.items()}
    in_state = Counter(row["state"].lower() for row in states)
    names = ("open", "acknowledged", "suppressed", "resolved")
    assert {name: getattr(shown, name) for name in names} == {name: in_state[name] for name in names}
    by_id = {row["finding_id"]: row for row in everything}
    for group in shown.kinds:
        assert len(group.shown) == min(12, group.count)
        for one in group.shown:
            row = by_id[one.finding_id]
            assert (one.kind, one.severity, one.principal, one.score) == (
                group.kind, row["severity"], row["principal"], row["score"],
            )  # fmt: skip
        order = ["HIGH", "MEDIUM", "LOW"]
        gravest = sorted(
            (row for row in everything if row["kind"] == group.kind),
            # what is settled comes last
            key=lambda row: (
                row.get("state", "OPEN") != "OPEN", order.index(row["severity"]), -row["score"],
                row["finding_id"],
            ),
        )  # fmt: skip
        assert [one.finding_id for one in group.shown] == [row["finding_id"] for row in gravest[:12]]
