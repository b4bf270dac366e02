"""Opens the connection to a broker for a client's connection.

It is opened for the first request other than ApiVersions, so a client that only logs in costs the broker
nothing. If the broker was lost recently, it is opened at once, and ApiVersions waits for it as well: clients
take that answer as a sign that the broker is up, and would reconnect without a pause.
"""

from typing import Final

import structlog

from kustos.acl import KafkaPrincipal
from kustos.client import ClientError
from kustos.gateway.listener.port import Port
from kustos.gateway.upstream.cluster import Versions, covers
from kustos.gateway.upstream.link import LinkOwner, UpstreamLink
from kustos.gateway.upstream.tokens import IdentityError

LOG: Final = structlog.get_logger("kustos.gateway")


class NoLinkError(Exception):
    """There is no connection to a broker; the text is the reason for the log."""


async def connected_link(
    port: Port, owner: LinkOwner, principal: KafkaPrincipal, offered: Versions
) -> UpstreamLink:
    """Return a new link to the broker behind a port, for a client that was offered these versions.

    Raise `NoLinkError`; the client is disconnected then.
    """
    try:
        connection = await port.route.connect(principal)
        transport = connection.release()
    except ClientError as error:
        port.parts.metrics.upstream_failed()
        is_unnamed = isinstance(error, IdentityError)
        raise NoLinkError(str(error) if is_unnamed else f"upstream is not reachable: {error}") from error
    except Exception as error:
        # a bug in kustos must end the client here rather than leave it waiting
        LOG.exception("a connection to upstream could not be made")
        raise NoLinkError("an internal error, see the log above") from error
    if not covers(port.offered(), offered):
        # the broker would misread the client's requests, or close the connection without an answer
        transport.abort()
        raise NoLinkError("the broker speaks other versions than the client was offered")
    broker = connection.host, connection.port
    limit_bytes = port.settings.max_answer_bytes
    return UpstreamLink(transport, owner, limit_bytes, port.services.in_flight, broker, connection.session)
