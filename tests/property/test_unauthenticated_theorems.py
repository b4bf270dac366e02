"""Theorems about unauthenticated connections: their number is limited, and the right one is closed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.listener.unauthenticated import UnauthenticatedConnections

HOSTS = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8:0:1:0:0:0:1", "2001:db8:0:1:0:0:0:2"])
STEPS = st.lists(st.one_of(HOSTS, st.integers(0, 30)), max_size=120)
NETWORKS = {"2001:db8:0:1:0:0:0:1": "six", "2001:db8:0:1:0:0:0:2": "six"}


@given(STEPS, st.integers(1, 8), st.integers(1, 5))
def test_a_new_connection_replaces_the_oldest_of_the_most_crowded_network(
    steps: list[str | int], maximum: int, maximum_per_ip: int
) -> None:
    found: UnauthenticatedConnections[int] = UnauthenticatedConnections(maximum, maximum_per_ip)
    present: dict[int, str] = {}
    for number, step in enumerate(steps):
        if isinstance(step, int):
            found.remove(step)
            present.pop(step, None)
        else:
            network = NETWORKS.get(step, step)
            counts = Counter(present.values())
            ended = found.add(number, step)
            if counts[network] >= maximum_per_ip:
                assert ended == next(each for each, of in present.items() if of == network)
            elif len(present) >= maximum:
                assert ended is not None
                assert counts[present[ended]] == max(counts.values())
                assert ended == next(each for each, of in present.items() if of == present[ended])
            else:
                assert ended is None
            present.pop(-1 if ended is None else ended, None)
            present[number] = network
        assert len(found) == len(present) <= maximum
        assert all(each in found for each in present)
        assert max(Counter(present.values()).values(), default=0) <= maximum_per_ip
        assert (found.first_to_end() is None) == (not present)


@given(st.lists(HOSTS, min_size=1, max_size=200))
def test_a_flood_from_one_address_closes_only_its_own_connections(flood: list[str]) -> None:
    found: UnauthenticatedConnections[int] = UnauthenticatedConnections(8, 8)
    honest = -1
    for number in range(4):
        found.add(number, "10.9.9.9")
    found.add(honest, "10.0.0.7")
    for number, _ in enumerate(flood, start=100):
        assert found.add(number, "10.9.9.9") != honest
    assert honest in found
