"""Entries by host: each client host finds exactly the entries that match it, after any changes."""

import random

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
    host_matches,
)
from kustos.authorizer.index.host_views import HOST_VIEWS_MAX, HostViews
from testkit.differential.host_texts import HostTexts

PATTERN = ResourcePattern(ResourceType.TOPIC, "orders")


def acl(host: str, operation: AclOperation = AclOperation.READ) -> AclBinding:
    return AclBinding(PATTERN, AccessControlEntry("User:a", host, operation, AclPermissionType.ALLOW))


def hosts_for(views: HostViews[str], client: str) -> set[str]:
    return {binding.entry.host for binding in views.matching(client)}


def test_a_client_finds_its_address_its_ranges_and_every_host() -> None:
    written = ["*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/31", "11.0.0.0/8", "2001:db8::/32", "::1/128"]
    views: HostViews[str] = HostViews(map(acl, [*written, "nonsense", "10.0.0.0/33"]))
    assert hosts_for(views, "10.0.0.1") == {"*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/31"}
    assert hosts_for(views, "10.0.0.2") == {"*", "10.0.0.0/8"}
    assert hosts_for(views, "2001:db8:0:0:0:0:0:5") == {"*", "2001:db8::/32"}
    assert hosts_for(views, "0:0:0:0:0:0:0:1") == {"*", "::1/128"}
    assert hosts_for(views, "192.168.0.1") == {"*"}
    assert hosts_for(views, "nonsense") == {"*", "nonsense"}


def test_two_ways_to_write_a_range_are_two_entries() -> None:
    views: HostViews[str] = HostViews([acl("10.0.0.0/8"), acl("10.1.2.3/8"), acl("10.0.0.0/08")])
    assert len(views.matching("10.9.9.9")) == 3
    views.remove(acl("10.1.2.3/8"))
    assert hosts_for(views, "10.9.9.9") == {"10.0.0.0/8", "10.0.0.0/08"}


def test_ranges_of_one_size_outlive_each_other() -> None:
    views: HostViews[str] = HostViews([acl("10.0.0.0/8"), acl("11.0.0.0/8"), acl("12.0.0.0/8")])
    views.remove(acl("11.0.0.0/8"))
    assert hosts_for(views, "10.0.0.1") == {"10.0.0.0/8"}
    assert hosts_for(views, "11.0.0.1") == set()
    views.remove(acl("10.0.0.0/8"))
    assert hosts_for(views, "12.0.0.1") == {"12.0.0.0/8"}


def test_entries_of_one_host_are_added_and_removed_separately() -> None:
    views: HostViews[str] = HostViews([])
    read, write = acl("10.0.0.0/8"), acl("10.0.0.0/8", AclOperation.WRITE)
    views.add(read)
    views.add(write)
    assert set(views.matching("10.0.0.1")) == {read, write}
    views.remove(read)
    assert views.matching("10.0.0.1") == [write]
    views.remove(write)
    assert views.matching("10.0.0.1") == []


def test_removed_entries_leave_nothing() -> None:
    texts = HostTexts(random.Random(7))
    bindings = [acl(host) for host in dict.fromkeys(texts.pattern() for _ in range(300))]
    views: HostViews[str] = HostViews(bindings)
    assert views._sizes
    for binding in bindings:
        views.remove(binding)
    assert [len(kept) for kept in (views._by_host, views._networks, views._sizes)] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_random_hosts_find_the_entries_that_match_one_by_one(seed: int) -> None:
    rng = random.Random(seed)
    texts = HostTexts(rng)
    hosts = [*dict.fromkeys(texts.pattern() for _ in range(60)), *{texts.client() for _ in range(5)}, "*"]
    views: HostViews[str] = HostViews(acl(host) for host in hosts)
    gone = rng.sample(hosts, len(hosts) // 3)
    for host in gone:
        views.remove(acl(host))
    left = [host for host in hosts if host not in gone]
    for client in (texts.client() for _ in range(40)):
        assert hosts_for(views, client) == {host for host in left if host_matches(host, client)}


def test_views_are_kept_up_to_a_limit() -> None:
    views: HostViews[str] = HostViews([])
    for number in range(HOST_VIEWS_MAX):
        assert views.keep(f"h{number}", f"v{number}") == f"v{number}"
    assert views.known.get("h0") == "v0"
    views.keep("more", "v")
    assert (views.known.get("h0"), views.known.get("more")) == (None, "v")
    views.forget()
    assert views.known.get("more") is None
