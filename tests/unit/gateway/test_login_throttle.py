"""Failed logins are limited by address, without effect on other addresses."""

import ipaddress

import pytest

from kustos.gateway.listener.login_throttle import NETWORKS_MAX, FailedLoginLimits, LoginThrottle
from kustos.gateway.upstream.addresses import AddressRanges, network_of

LIMITS = FailedLoginLimits(burst=5, per_minute=60)


def fail(throttle: LoginThrottle, host: str, times: int, at_s: float = 0.0) -> None:
    for _ in range(times):
        throttle.failed(host, at_s)


def test_failures_are_limited_to_a_burst_and_then_to_a_rate() -> None:
    throttle = LoginThrottle(LIMITS)
    fail(throttle, "10.0.0.1", 4)
    assert not throttle.is_throttled("10.0.0.1", 0.0)
    fail(throttle, "10.0.0.1", 1)
    assert throttle.is_throttled("10.0.0.1", 0.9)
    assert not throttle.is_throttled("10.0.0.1", 1.1)
    fail(throttle, "10.0.0.1", 1, at_s=1.1)
    assert throttle.is_throttled("10.0.0.1", 1.9)
    assert not throttle.is_throttled("10.0.0.2", 0.0)


def test_failures_of_pending_logins_use_at_most_the_burst() -> None:
    throttle = LoginThrottle(LIMITS)
    fail(throttle, "10.0.0.1", 5_000)
    assert throttle.is_throttled("10.0.0.1", 0.9)
    assert not throttle.is_throttled("10.0.0.1", 1.1)


def test_addresses_of_one_ipv6_network_share_a_limit() -> None:
    throttle = LoginThrottle(LIMITS)
    for number in range(5):
        throttle.failed(f"2001:db8:0:7:{number}:0:0:1", 0.0)
    assert throttle.is_throttled("2001:db8:0:7:ffff:0:0:1", 0.0)
    assert not throttle.is_throttled("2001:db8:0:8:0:0:0:1", 0.0)
    assert len(throttle) == 1
    assert network_of("fe80:0:0:0:1:2:3:4%7") == "fe80:0:0:0"


@pytest.mark.parametrize(
    "limits",
    [
        FailedLoginLimits(burst=0),
        FailedLoginLimits(burst=1, unlimited=AddressRanges((ipaddress.ip_network("10.0.0.0/8"),))),
    ],
)
def test_limits_can_be_lifted_for_all_or_for_some(limits: FailedLoginLimits) -> None:
    throttle = LoginThrottle(limits)
    fail(throttle, "10.0.0.1", 1000)
    assert not throttle.is_throttled("10.0.0.1", 0.0)
    assert len(throttle) == 0


def test_a_full_table_locks_out_no_new_address_and_keeps_throttled_ones() -> None:
    throttle = LoginThrottle(LIMITS)
    fail(throttle, "10.0.0.1", 5)
    for number in range(4 * NETWORKS_MAX):
        throttle.failed(f"2001:db8:{number // 65536:x}:{number % 65536:x}:0:0:0:1", 0.0)
    assert len(throttle) <= NETWORKS_MAX
    assert throttle.is_throttled("10.0.0.1", 0.0)
    assert not throttle.is_throttled("192.0.2.1", 0.0)
    fail(throttle, "192.0.2.1", 4)
    assert not throttle.is_throttled("192.0.2.1", 0.0), "other addresses do not use up its limit"


def test_new_limits_keep_the_used_budget_of_a_network() -> None:
    throttle = LoginThrottle(FailedLoginLimits(burst=10, per_minute=60))
    fail(throttle, "10.0.0.1", 4)
    fail(throttle, "10.0.0.2", 1)
    throttle.change(FailedLoginLimits(burst=4, per_minute=6), 0.0)
    assert throttle.is_throttled("10.0.0.1", 0.0)
    assert throttle.is_throttled("10.0.0.1", 9.9)
    assert not throttle.is_throttled("10.0.0.1", 10.1)
    assert not throttle.is_throttled("10.0.0.2", 0.0)
    fail(throttle, "10.0.0.2", 3)
    assert throttle.is_throttled("10.0.0.2", 0.0)


def test_wider_limits_admit_a_network_immediately() -> None:
    throttle = LoginThrottle(LIMITS)
    fail(throttle, "10.0.0.1", 5)
    assert throttle.is_throttled("10.0.0.1", 0.0)
    throttle.change(FailedLoginLimits(burst=6, per_minute=60), 0.0)
    assert not throttle.is_throttled("10.0.0.1", 0.0)
    fail(throttle, "10.0.0.1", 1)
    assert throttle.is_throttled("10.0.0.1", 0.0)
    ranges = AddressRanges((ipaddress.ip_network("10.0.0.0/24"),))
    throttle.change(FailedLoginLimits(burst=6, per_minute=60, unlimited=ranges), 0.0)
    assert not throttle.is_throttled("10.0.0.1", 0.0)
    throttle.change(FailedLoginLimits(burst=0), 0.0)
    fail(throttle, "10.0.1.1", 100)
    assert not throttle.is_throttled("10.0.1.1", 0.0)
    throttle.change(LIMITS, 0.0)
    assert not throttle.is_throttled("10.0.1.1", 0.0)
    fail(throttle, "10.0.1.1", 5)
    assert throttle.is_throttled("10.0.1.1", 0.0)
