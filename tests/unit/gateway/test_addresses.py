"""Every broker is advertised at a port of the gateway, or not at all."""

import pytest

from kustos.gateway.upstream.addresses import BrokerPorts, NoPortForBrokerError

PORTS = BrokerPorts("gateway.example", 9100, 19100, 4)


def test_each_broker_is_bound_and_advertised_at_its_own_port() -> None:
    assert [PORTS.port_of(node_id) for node_id in range(4)] == [9100, 9101, 9102, 9103]
    assert PORTS.advertised(3, "inside", 9092) == ("gateway.example", 19103)


@pytest.mark.parametrize("node_id", [-1, 4, 2**31 - 1])
def test_an_upstream_address_never_replaces_a_missing_port(node_id: int) -> None:
    with pytest.raises(NoPortForBrokerError, match=r"raise `kustos.gateway.broker.port.count`"):
        PORTS.port_of(node_id)
    with pytest.raises(NoPortForBrokerError, match=f"broker `{node_id}`") as refused:
        PORTS.advertised(node_id, "inside-address", 9092)
    assert "inside-address" not in str(refused.value)
