"""Failed logins are counted together, within limits, and each of them once."""

from kustos.gateway.audit.budget import AuditBudget
from kustos.gateway.audit.repeated_logins import (
    KINDS_MAX,
    KINDS_PER_HOST_MAX,
    TOO_MANY,
    TOO_MANY_OF_HOST,
    RepeatedLogins,
)
from testkit.gateway.audit import failure


def test_the_first_failure_is_reported_immediately_and_repeats_as_one_event_with_a_count() -> None:
    failures = RepeatedLogins(AuditBudget(0, lambda: 0))
    assert failures.add(failure(at_ms=1)) == failure(at_ms=1)
    assert [failures.add(failure(at_ms=at)) for at in (2, 3, 4)] == [None] * 3
    assert failures.add(failure("bob", at_ms=5)) == failure("bob", at_ms=5)
    (reported,) = failures.end_window()
    assert (reported.claimed_name, reported.attempt_count, reported.first_time_ms, reported.time_ms) == (
        "alice",
        3,
        2,
        4,
    )
    assert failures.end_window() == []
    assert failures.add(failure(at_ms=9)) == failure(at_ms=9), "a new window begins"


def test_names_of_one_address_are_counted_separately_up_to_a_limit() -> None:
    failures = RepeatedLogins(AuditBudget(0, lambda: 0))
    reported = [failures.add(failure(f"user-{number}")) for number in range(KINDS_PER_HOST_MAX + 100)]
    assert sum(each is not None for each in reported) == KINDS_PER_HOST_MAX
    (rest,) = failures.end_window()
    assert (rest.host, rest.claimed_name, rest.failure, rest.attempt_count) == (
        "10.0.0.1",
        None,
        TOO_MANY_OF_HOST,
        100,
    )


def test_a_flood_from_many_addresses_uses_bounded_memory() -> None:
    failures = RepeatedLogins(AuditBudget(0, lambda: 0))
    reported = [failures.add(failure(host=f"10.0.{n // 256}.{n % 256}")) for n in range(KINDS_MAX + 500)]
    assert sum(each is not None for each in reported) == KINDS_MAX
    assert len(failures) == KINDS_MAX + 1
    (rest,) = failures.end_window()
    assert (rest.host, rest.claimed_name, rest.failure, rest.attempt_count) == (None, None, TOO_MANY, 500)


def test_failures_that_a_full_log_rejects_are_counted() -> None:
    failures = RepeatedLogins(AuditBudget(0, lambda: 0))
    assert failures.add(failure(at_ms=7), may_report=False) is None
    assert failures.add(failure(at_ms=8)) is None
    (reported,) = failures.end_window()
    assert (reported.attempt_count, reported.first_time_ms, reported.time_ms) == (2, 7, 8)
