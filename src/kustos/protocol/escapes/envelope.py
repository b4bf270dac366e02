"""Envelope: holders of CLUSTER_ACTION forward requests of others (KIP-590)."""

from kustos.acl import AclOperation
from kustos.protocol.codes import CLUSTER_AUTHORIZATION_FAILED
from kustos.protocol.effects import Handler, Unwrap
from kustos.protocol.envelopes import address_bytes_of, principal_of
from kustos.protocol.exchange import Exchange
from kustos.protocol.steps import RefuseRequestError, Row


def envelope(exchange: Exchange, _row: Row) -> Handler:
    """Open it for a holder of CLUSTER_ACTION; authorize its contents for the principal it names."""
    yield from ()
    if not exchange.allows_cluster(AclOperation.CLUSTER_ACTION):
        raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
    request = exchange.request
    principal = principal_of(request.request_principal)
    return Unwrap(principal, request.request_data, address_bytes_of(request.client_host_address))
