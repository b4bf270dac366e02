"""Hosts of entries; which addresses a range holds is held against Kafka in the differential tests."""

import pytest

from kustos.acl import AclValueError, HostRange, host_matches


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
