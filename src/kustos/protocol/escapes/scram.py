"""AlterUserScramCredentials and the SASL requests: refusals that do not mirror the request."""

from kustos.acl import AclOperation
from kustos.authorizer import AuthorizerError
from kustos.protocol.codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    ILLEGAL_SASL_STATE,
    MESSAGES,
    UNKNOWN_SERVER_ERROR,
)
from kustos.protocol.effects import Handler, Reply, Serve
from kustos.protocol.exchange import Exchange
from kustos.protocol.steps import RefuseRequestError, Row
from kustos.protocol.turns import each


def refuse_sasl(_exchange: Exchange, _row: Row) -> Handler:
    """Refuse an authentication request after the login."""
    yield from ()
    raise RefuseRequestError(ILLEGAL_SASL_STATE)


def alter_scram(exchange: Exchange, _row: Row) -> Handler:
    """Serve clients that may ALTER the cluster; a refusal names each user once, sorted, as in Kafka."""
    code = CLUSTER_AUTHORIZATION_FAILED
    try:
        if exchange.allows_cluster(AclOperation.ALTER):
            return Reply((yield Serve(exchange.request)))
    except AuthorizerError:
        code = UNKNOWN_SERVER_ERROR
    root = exchange.response_codec.root
    result = root.ELEMENTS["results"]
    users = {item.name for item in (*exchange.request.deletions, *exchange.request.upsertions)}
    results = yield from each(
        exchange,
        sorted(users),
        lambda user: result(user=user, error_code=code, error_message=MESSAGES[code]),
    )
    return Reply(root(results=results))
