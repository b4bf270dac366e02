"""Hosts of entries; which addresses a range holds is held against Kafka in the differential tests."""

import pytest

from kustos.acl import AclValueError, HostRange, host_holds, host_matches, hosts_meet
from kustos.acl.hosts import java_int


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("*", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.10", False),
        ("10.0.0.0/8", "10.255.255.255", True),
        ("10.9.9.9/8", "10.0.0.0", True),
        ("10.0.0.0/8", "11.0.0.0", False),
        ("0.0.0.0/0", "0.0.0.0", False),
        ("::1", "0:0:0:0:0:0:0:1", False),
        ("::1/128", "0:0:0:0:0:0:0:1", True),
        ("::/0", "10.0.0.1", False),
        ("::ffff:10.0.0.0/104", "10.0.0.1", False),
        ("10.0.0.0/33", "10.0.0.1", False),
        ("nonsense", "nonsense", True),
        ("no/range", "10.0.0.1", False),
        ("10.0.0.0/8", "nonsense", False),
    ],
)
def test_host_matches(pattern: str, host: str, expected: bool) -> None:
    assert host_matches(pattern, host) is expected


@pytest.mark.behaviour("B053")
@pytest.mark.parametrize(
    "text", ["10.0.0.0/33", "10.0.0/8", "/8", "::/129", "::ffff:1.2.3.4/96", "a/b", "1.2.3.4/", "::1%/8"]
)
def test_what_is_no_range_is_refused_by_name(text: str) -> None:
    with pytest.raises(AclValueError, match=f"`{text}`"):
        HostRange.parse(text)


def test_range_knows_its_ends() -> None:
    assert HostRange.parse("10.1.2.3/30") == HostRange(32, 0x0A010200, 0x0A010203)
    assert (32, 0x0A010203) in HostRange.parse("10.1.2.3/32")
    assert (128, 0x0A010203) not in HostRange.parse("10.1.2.3/32")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("8", 8), ("+8", 8), ("-8", -8), ("-0", 0), ("000000000000128", 128), ("\u0661\u0662", 12)],
        *[("2147483647", 2**31 - 1), ("-2147483648", -(2**31)), ("2147483648", None), ("-2147483649", None)],
        *[
            ("", None),
            ("+", None),
            ("+-8", None),
            ("8_0", None),
            (" 8", None),
            ("0x8", None),
            ("\u00b2", None),
        ],
        *[("\U0001d7d8", None), ("9" * 10_000, None), ("0" * 10_000 + "9", 9)],
    ],
)
def test_integers_are_those_that_java_reads(text: str, expected: int | None) -> None:
    assert java_int(text) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        *[("fe80::1%1/64", True), ("fe80::1%eth0/64", True), ("[fe80::1%1]/64", True)],
        *[("fe80::1%/64", False), ("fe80::1%1:1/64", False), ("fe80::1%2147483648/64", False)],
        *[("fe80::1%\u0663/64", False), ("fe80::1%interface-name-x/64", False), ("fe80::000.0.0.5/64", True)],
        *[("fe80::000.000.00.005/64", True), ("fe80::000.000.000.0005/64", False), ("[fe80::1/64", False)],
    ],
)
def test_addresses_are_those_that_java_reads(pattern: str, expected: bool) -> None:
    assert host_matches(pattern, "fe80:0:0:0:0:0:0:2") is expected


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        *[("*", "10.0.0.0/8", True), ("10.0.0.0/8", "*", False), ("*", "nonsense", True)],
        *[("10.0.0.0/8", "10.1.0.0/16", True), ("10.1.0.0/16", "10.0.0.0/8", False)],
        *[("10.0.0.0/8", "10.1.2.3", True), ("10.0.0.0/8", "2001:db8::/32", False)],
        *[("2001:db8::/32", "2001:db8:1::/48", True), ("10.0.0.0/33", "10.0.0.0/33", True)],
        *[("10.0.0.0/33", "10.0.0.0/8", False), ("0.0.0.0/0", "0.0.0.0", False)],
    ],
)
def test_host_holds(outer: str, inner: str, expected: bool) -> None:
    assert host_holds(outer, inner) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *[("10.0.0.1", "*", True), ("10.0.0.1", "10.0.0.2", False), ("10.0.0.1", "10.0.0.0/8", True)],
        *[("10.1.0.0/16", "10.0.0.0/8", True), ("10.0.0.0/16", "10.1.0.0/16", False)],
        *[("10.0.0.0/8", "::/0", False), ("::1/128", "::/64", True), ("0.0.0.0/0", "0.0.0.0", False)],
    ],
)
def test_hosts_meet_in_either_order(one: str, other: str, expected: bool) -> None:
    assert hosts_meet(one, other) is hosts_meet(other, one) is expected
