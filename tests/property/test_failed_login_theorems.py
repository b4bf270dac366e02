"""Theorem: exactly one event counts each login, failed or not, and memory is bounded."""

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import KafkaPrincipal
from kustos.authorizer import SecurityEvent, SecurityResult
from kustos.gateway.audit import repeated_logins
from kustos.gateway.audit.budget import AuditBudget
from kustos.gateway.audit.repeated_logins import RepeatedLogins
from testkit.gateway.audit import failure


def success(name: str, host: str, at_ms: int) -> SecurityEvent:
    principal = KafkaPrincipal("User", name)
    event = failure(name, host, at_ms)
    return replace(event, failure=None, result=SecurityResult.SUCCESS, principal=principal)


HOSTS = st.sampled_from([f"10.0.0.{n}" for n in range(6)])
NAMES = st.sampled_from(["", "alice", "bob", "carol", "dave", "erin"])
TIMES = st.integers(0, 1000)
STEPS = st.lists(
    st.one_of(
        st.builds(failure, st.none() | NAMES, HOSTS, TIMES, st.sampled_from(["wrong", "unknown"])),
        st.builds(success, NAMES, HOSTS, TIMES),
        st.sampled_from(["end", "full", "free"]),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 8), st.integers(1, 4))
def test_each_login_is_counted_in_exactly_one_event(
    steps: list[SecurityEvent | str], kinds_max: int, per_host_max: int
) -> None:
    logins, reported, may_report = RepeatedLogins(AuditBudget(0, lambda: 0)), list[SecurityEvent](), True
    with patch.multiple(repeated_logins, KINDS_MAX=kinds_max, KINDS_PER_HOST_MAX=per_host_max):
        for step in steps:
            if isinstance(step, SecurityEvent):
                at_once = logins.add(step, may_report=may_report)
                assert may_report or at_once is None
                reported += [] if at_once is None else [at_once]
                assert len(logins) <= 2 * (kinds_max + 1), "failures and logins, each with a coarsest kind"
            elif step == "end":
                reported += logins.end_window()
            else:
                may_report = step == "free"
        reported += logins.end_window()
    for has_failed in (True, False):
        mine = [each for each in reported if (each.failure is not None) is has_failed]
        came = [
            each
            for each in steps
            if isinstance(each, SecurityEvent) and (each.failure is not None) is has_failed
        ]
        assert sum(each.attempt_count for each in mine) == len(came)
        assert {each.host for each in mine} <= {each.host for each in came} | {None}
