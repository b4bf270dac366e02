"""The APIs of controllers' listeners only: DescribeCluster about controllers, and Envelope (KIP-590).

DescribeCluster needs ALTER there. Principals with CLUSTER_ACTION forward other clients' requests in an
Envelope.
"""

from typing import Final

from kustos.acl import AclOperation
from kustos.protocol.codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST
from kustos.protocol.effects import Handler, Reply, Unwrap
from kustos.protocol.envelopes import address_bytes_of, principal_of
from kustos.protocol.exchange import Exchange
from kustos.protocol.perform import annotate_cluster, served
from kustos.protocol.steps import ClusterOperations, RefuseRequestError, Row
from kustos.wire import ErrorCode, Message

BROKERS: Final = 1
CONTROLLERS: Final = 2
ENDPOINT_TYPE_SINCE: Final = 1
"""The first version with the field and its errors (KIP-919)."""


def describe_controllers(exchange: Exchange, row: Row) -> Handler:
    """Describe the controllers to clients that may ALTER the cluster."""
    if not exchange.allows_cluster(AclOperation.ALTER):
        raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
    endpoint_type = exchange.request.get("endpoint_type", BROKERS)
    if endpoint_type not in {BROKERS, CONTROLLERS}:
        return Reply(
            _refused(
                exchange, ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {endpoint_type}"
            )
        )
    if endpoint_type != CONTROLLERS:
        text = (
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER"
        )
        return Reply(_refused(exchange, ErrorCode.mismatched_endpoint_type, text))
    answer = yield from served(exchange, exchange.request)
    for step in row.steps:
        if isinstance(step, ClusterOperations):
            annotate_cluster(exchange, step, answer)
    return Reply(answer)


def _refused(exchange: Exchange, error: ErrorCode, message: str) -> Message:
    code = error.value if exchange.version >= ENDPOINT_TYPE_SINCE else INVALID_REQUEST
    return exchange.response_codec.root(error_code=code, error_message=message)


def envelope(exchange: Exchange, _row: Row) -> Handler:
    """Open the Envelope of a client with CLUSTER_ACTION; authorize its request for the principal in it."""
    yield from ()
    if not exchange.allows_cluster(AclOperation.CLUSTER_ACTION):
        raise RefuseRequestError(CLUSTER_AUTHORIZATION_FAILED)
    request = exchange.request
    principal = principal_of(request.request_principal)
    return Unwrap(principal, request.request_data, address_bytes_of(request.client_host_address))
