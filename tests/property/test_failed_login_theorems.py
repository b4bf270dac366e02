"""Theorem: exactly one event counts each failed login, and memory is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from kustos.authorizer import SecurityEvent
from kustos.gateway.audit import repeated_logins as failed_logins
from kustos.gateway.audit.repeated_logins import FailedLogins
from testkit.gateway.audit import failure

STEPS = st.lists(
    st.one_of(
        st.builds(
            failure,
            st.sampled_from([None, "", "alice", "bob", "carol", "dave", "erin"]),
            st.sampled_from([f"10.0.0.{n}" for n in range(6)]),
            st.integers(0, 1000),
            st.sampled_from(["wrong", "unknown"]),
        ),
        st.sampled_from(["end", "full", "free"]),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 8), st.integers(1, 4))
def test_each_failure_is_in_exactly_one_events_number(
    steps: list[SecurityEvent | str], kinds_max: int, per_host_max: int
) -> None:
    failures, told, may_report, count = FailedLogins(), list[SecurityEvent](), True, 0
    former = failed_logins.KINDS_MAX, failed_logins.KINDS_PER_HOST_MAX
    failed_logins.KINDS_MAX, failed_logins.KINDS_PER_HOST_MAX = kinds_max, per_host_max  # type: ignore[misc]
    try:
        for step in steps:
            if isinstance(step, SecurityEvent):
                count += 1
                at_once = failures.add(step, may_report=may_report)
                assert may_report or at_once is None
                told += [] if at_once is None else [at_once]
                assert len(failures) <= kinds_max + 1, "one more, of those without an address"
            elif step == "end":
                told += failures.end_window()
            else:
                may_report = step == "free"
        told += failures.end_window()
    finally:
        failed_logins.KINDS_MAX, failed_logins.KINDS_PER_HOST_MAX = former  # type: ignore[misc]
    assert sum(each.attempt_count for each in told) == count
    by_host = {each.host for each in steps if isinstance(each, SecurityEvent)}
    assert {each.host for each in told} <= by_host | {None}
