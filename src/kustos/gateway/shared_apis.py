"""What a node answers alike whether its metadata is a log of its own or that of a quorum."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from kustos.gateway.acl_apis import AclApis, untold
from kustos.gateway.cluster import UpstreamCluster
from kustos.metadata.control import describe_scram
from kustos.metadata.image import MetadataImage
from kustos.protocol import Opened, admin
from kustos.protocol.api_versions import api_versions_response
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class SharedApis:
    """Serves ApiVersions, the ACL APIs, and the reading of SCRAM users; the guard has authorized them."""

    image: Callable[[], MetadataImage]
    cluster: UpstreamCluster
    offered: Callable[[], Mapping[int, tuple[int, int]]]
    acls: AclApis

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message] | None:
        """Return the answer, or a coroutine that comes to it; None for any other API."""
        made = opened.exchange.response_codec.root
        request = opened.exchange.request
        match opened.row.api_key:
            case ApiKey.API_VERSIONS:
                version = opened.exchange.version
                return api_versions_response(version, self.offered(), self.cluster.features)
            case ApiKey.DESCRIBE_ACLS:
                return self.acls.describe(made, request)
            case ApiKey.CREATE_ACLS | ApiKey.DELETE_ACLS:
                change = self.acls.create if opened.row.api_key == ApiKey.CREATE_ACLS else self.acls.delete
                context, written_at = opened.exchange.known_context(), opened.exchange.written_at
                return change(made, request, context, written_at or untold)
            case ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
                users = [user.name for user in request.users or ()]
                return admin.described_scram(made, describe_scram(self.image(), users))
        return None
