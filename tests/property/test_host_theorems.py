"""Theorems about how hosts of entries overlap, against Python's own networks and each address."""

from ipaddress import IPv4Network, IPv6Network, ip_network

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import host_holds, host_matches, hosts_meet

Network = IPv4Network | IPv6Network

# few bits differ, so that drawn networks often contain each other
ipv4_networks = st.builds(
    lambda number, prefix: IPv4Network((0x0A000000 + number, prefix), strict=False),
    st.integers(0, 15),
    st.sampled_from((8, 24, 29, 30, 31, 32)),
)
ipv6_networks = st.builds(
    lambda number, prefix: IPv6Network(((0x20010DB8 << 96) + number, prefix), strict=False),
    st.integers(0, 15),
    st.sampled_from((32, 64, 125, 126, 127, 128)),
)
networks = st.one_of(ipv4_networks, ipv6_networks)
wide = st.one_of(ipv4_networks, ipv6_networks, st.sampled_from((ip_network("0.0.0.0/0"), ip_network("::/0"))))
hosts = st.one_of(networks.map(str), networks.map(lambda network: java_text(network)), st.just("*"))


def java_text(network: Network) -> str:
    """Write a network's first address as Java prints it."""
    first = network.network_address
    if first.version == 4:
        return str(first)
    return ":".join(f"{int(group, 16):x}" for group in first.exploded.split(":"))


def is_within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


@given(wide, wide)
def test_a_range_contains_another_exactly_if_it_is_its_supernet(outer: Network, inner: Network) -> None:
    assert host_holds(str(outer), str(inner)) is is_within(inner, outer)


@given(wide, wide)
def test_ranges_overlap_exactly_if_one_contains_the_other(one: Network, other: Network) -> None:
    assert hosts_meet(str(one), str(other)) is (is_within(one, other) or is_within(other, one))


@settings(max_examples=1_000)  # few draws have something to say
@given(hosts, hosts, networks)
def test_a_containing_range_matches_all_addresses_of_the_other(
    outer: str, inner: str, address: Network
) -> None:
    if host_holds(outer, inner) and host_matches(inner, java_text(address)):
        assert host_matches(outer, java_text(address))


@settings(max_examples=1_000)  # few draws have something to say
@given(hosts, hosts, networks)
def test_hosts_that_match_one_address_overlap(one: str, other: str, address: Network) -> None:
    if host_matches(one, java_text(address)) and host_matches(other, java_text(address)):
        assert hosts_meet(one, other)


@given(hosts, hosts)
def test_a_containing_range_overlaps_the_other(outer: str, inner: str) -> None:
    assert not host_holds(outer, inner) or hosts_meet(outer, inner)
