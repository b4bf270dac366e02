"""Connections to the brokers: a link for each client connection, requests in flight, and addresses."""

from kustos.gateway.upstream.addresses import AddressRanges, BrokerPorts, NoPortForBrokerError
from kustos.gateway.upstream.cluster import UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.upstream.host_names import BrokerHostPattern, BrokerHosts, is_address, is_host_name
from kustos.gateway.upstream.identities import ClientIdentities
from kustos.gateway.upstream.in_flight import InFlight, RevocationSettings
from kustos.gateway.upstream.life_cycles import LINK_LIFE, REQUEST_LIFE
from kustos.gateway.upstream.tokens import IdentityError, UpstreamTokens
from kustos.gateway.upstream.topic_ids import TopicIds

__all__ = [
    "LINK_LIFE",
    "REQUEST_LIFE",
    "AddressRanges",
    "BrokerHostPattern",
    "BrokerHosts",
    "BrokerPorts",
    "ClientIdentities",
    "IdentityError",
    "InFlight",
    "NoPortForBrokerError",
    "RevocationSettings",
    "TopicIds",
    "UpstreamCluster",
    "UpstreamTokens",
    "UpstreamUnavailableError",
    "is_address",
    "is_host_name",
]
