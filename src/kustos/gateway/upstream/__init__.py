"""The way to the brokers: a link for each client connection, requests in flight, and addresses."""

from kustos.gateway.upstream.addresses import AddressRanges, BrokerPorts, NoPortForBrokerError
from kustos.gateway.upstream.cluster import UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.upstream.in_flight import InFlight, RevocationSettings

__all__ = [
    "AddressRanges",
    "BrokerPorts",
    "InFlight",
    "NoPortForBrokerError",
    "RevocationSettings",
    "UpstreamCluster",
    "UpstreamUnavailableError",
]
