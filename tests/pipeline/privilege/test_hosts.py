"""Addresses become the host terms that were chosen; every address stays served."""

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclOperation, ResourceType, host_matches
from kustos.pipeline.privilege import Denial, HostChoice, PrivilegeOptions, Problem, Use, least_privilege
from kustos.pipeline.privilege.type_plan import host_terms

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
RANGES = PrivilegeOptions(hosts=HostChoice.RANGES)
EXACT = PrivilegeOptions(hosts=HostChoice.EXACT, hosts_max=3)

ADDRESSES = st.one_of(
    st.integers(0, 600).map(lambda number: f"10.0.{number >> 8}.{number & 255}"),
    st.integers(0, 40).map(lambda number: f"2001:db8:0:0:0:0:0:{number:x}"),
    st.sampled_from(["0.0.0.0", "client.example", "", "::1", "300.1.1.1"]),
)


def test_few_addresses_are_named_and_many_are_not() -> None:
    few = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert host_terms(few, EXACT) == {host: host for host in few}
    assert set(host_terms([*few, "10.0.0.4"], EXACT).values()) == {"*"}
    assert set(host_terms(few, PrivilegeOptions()).values()) == {"*"}


def test_neighbours_become_the_smallest_range() -> None:
    hosts = ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.1.0.1", "2001:db8:0:0:0:0:0:8", "not-an-address"]
    assert host_terms(hosts, RANGES) == {
        "10.0.0.4": "10.0.0.4/30",
        "10.0.0.5": "10.0.0.4/30",
        "10.0.0.6": "10.0.0.4/30",
        "10.1.0.1": "10.1.0.1",
        "2001:db8:0:0:0:0:0:8": "2001:db8:0:0:0:0:0:8",
        "not-an-address": "not-an-address",
    }
    six = [f"2001:db8:0:0:0:0:0:{number}" for number in (1, 2, 3)]
    assert set(host_terms(six, RANGES).values()) == {"2001:db8::/126"}


def test_the_address_that_is_in_no_range_keeps_its_own_term() -> None:
    terms = host_terms(["0.0.0.0", "0.0.0.1", "0.0.0.2", "0.0.0.3"], RANGES)
    assert terms["0.0.0.0"] == "0.0.0.0"
    assert terms["0.0.0.1"] == "0.0.0.0/30"


@given(hosts=st.lists(ADDRESSES, unique=True, max_size=30), choice=st.sampled_from([EXACT, RANGES]))
def test_every_address_is_matched_by_its_term(hosts: list[str], choice: PrivilegeOptions) -> None:
    terms = host_terms(hosts, choice)
    assert terms.keys() == set(hosts)
    assert all(host_matches(term, host) for host, term in terms.items())
    assert len(set(terms.values())) <= choice.hosts_max


def test_a_denial_within_a_range_leaves_the_addresses_that_used_it() -> None:
    uses = tuple(Use(f"10.0.0.{number}", READ, TOPIC, "t") for number in (4, 5, 7))
    problem = Problem("User:app", uses, (Denial("10.0.0.6", READ, TOPIC, "t"),))
    hosts = {acl.binding.entry.host for acl in least_privilege(problem, RANGES).acls}
    assert hosts == {"10.0.0.4", "10.0.0.5", "10.0.0.7"}
    elsewhere = Problem("User:app", uses, (Denial("10.9.9.9", READ, TOPIC, "t"),))
    assert [acl.binding.entry.host for acl in least_privilege(elsewhere, RANGES).acls] == ["10.0.0.4/30"]
