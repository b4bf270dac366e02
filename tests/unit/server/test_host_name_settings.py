"""Host names of brokers in the settings."""

import pytest

from kustos.client import NodeAddress
from kustos.client.errors import SettingsError
from kustos.server.settings.node_settings import settings_from
from tests.unit.server.test_settings import TLS

NAMES = {
    "listeners": "CLIENTS://0.0.0.0:9092,MACHINES://127.0.0.1:9093",
    "advertised.listeners": "CLIENTS://Kafka.Example.com.:443",
    "listener.name.clients.kustos.broker.host.pattern": "Broker-$(nodeId).Kafka.example.com",
}


def test_brokers_have_names_at_one_port_or_ports() -> None:
    settings = settings_from(TLS | NAMES | {"kustos.gateway.broker.port.count": "4"}, {})
    clients, machines = settings.listeners
    assert str(clients.broker_hosts) == "broker-$(nodeId).kafka.example.com"
    # clients compare names without regard to case, and no name ends in a dot
    assert clients.advertised == NodeAddress("kafka.example.com", 443)
    assert [*map(len, clients.ports)] == [1, 0]
    # which would overlap with the ports of a listener without names
    assert [*map(len, machines.ports)] == [1, 4]
    assert machines.broker_hosts is None


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"listener.name.clients.kustos.broker.port.start": "9400"},
            "`listener.name.clients.kustos.broker.port.start` contradict each other",
        ),
        ({"advertised.listeners": "CLIENTS://kafka:443"}, "needs an address there, or a name of two labels"),
        (
            {"advertised.listeners": "CLIENTS://kafka_1.x:443"},
            "needs an address there, or a name of two labels",
        ),
        ({"advertised.listeners": "CLIENTS://broker-7.kafka.example.com:443"}, "that is not a broker's"),
        ({"listener.name.clients.kustos.broker.host.pattern": "broker-$(nodeId)"}, "use a host name with"),
        ({"controller.listener.names": "CLIENTS"}, "an admin listener has no brokers"),
    ],
)
def test_names_that_clients_could_not_use_keep_a_node_from_starting(keys: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(TLS | NAMES | keys, {})
    assert words in str(caught.value)


def test_the_bootstrap_address_may_be_an_address() -> None:
    settings = settings_from(TLS | NAMES | {"advertised.listeners": "CLIENTS://[::1]:443"}, {})
    assert settings.listeners[0].advertised == NodeAddress("::1", 443)
