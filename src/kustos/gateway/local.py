"""The requests that kustos answers itself, from its own metadata."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from kustos.acl import AclBinding
from kustos.authorizer import AuthorizerError, StandardAuthorizer
from kustos.gateway.cluster import UpstreamCluster
from kustos.gateway.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata.control import describe_acls, describe_scram
from kustos.metadata.errors import MetadataError
from kustos.metadata.image import AclAdded, AclRemoved, MetadataDelta, MetadataImage
from kustos.metadata.store import AlterScram, CreateAcls, DeleteAcls, StoreRequest
from kustos.protocol import Opened, RefusedFrameError, admin
from kustos.protocol.api_versions import api_versions_response
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey

LOG: Final = structlog.get_logger("kustos.gateway")


class AuthorizerPublisher:
    """Keeps the authorizer in step with the log.

    It is called on the writer's thread and hands each delta to the event loop whole, where the
    authorizer lives: no decision sees a part of it. The answer to the request that made the change is
    handed to the loop after it, so what was acknowledged is in force.
    """

    def __init__(self, authorizer: StandardAuthorizer, loop: asyncio.AbstractEventLoop) -> None:
        self._authorizer: Final = authorizer
        self._loop: Final = loop
        self.offset = -1

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Replace every ACL."""
        self._authorizer.load_snapshot(image.acls.items())
        self.offset = image.offset
        self._authorizer.complete_initial_load()

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Apply the changes, in order, on the event loop."""
        self._loop.call_soon_threadsafe(self._apply, delta)

    def _apply(self, delta: MetadataDelta) -> None:
        try:
            for change in delta.changes:
                match change:
                    case AclAdded(acl_id, binding):
                        self._authorizer.add_acl(acl_id, binding)
                    case AclRemoved(acl_id, _):
                        self._authorizer.remove_acl(acl_id)
        except Exception as error:
            # the boundary where any fault must deny: what it would decide by is no longer what the log
            # says, so it decides nothing any more
            self._authorizer.is_ready = False
            self._authorizer.version += 1
            known = isinstance(error, AuthorizerError)
            LOG.critical(
                "the authorizer lost step with the metadata log and denies everything, restart this node",
                reason=str(error),
                offset=delta.last_offset,
                exc_info=None if known else error,
            )
            return
        self.offset = delta.last_offset


@dataclass(frozen=True, slots=True)
class MetadataApis:
    """Serves ApiVersions, the ACL and the SCRAM APIs; the guard has authorized them."""

    writer: MetadataWriter
    cluster: UpstreamCluster
    offered: Callable[[], Mapping[int, tuple[int, int]]]

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message]:
        """Return the answer, or a coroutine that comes to it; raise `RefusedFrameError` for a bug of ours."""
        made = opened.exchange.response_codec.root
        request = opened.exchange.request
        image = self.writer.store.image
        match opened.row.api_key:
            case ApiKey.API_VERSIONS:
                version = opened.exchange.version
                return api_versions_response(version, self.offered(), self.cluster.features)
            case ApiKey.DESCRIBE_ACLS:
                return admin.described_acls(made, describe_acls(image, admin.filter_of(request)))
            case ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
                users = [user.name for user in request.users or ()]
                return admin.described_scram(made, describe_scram(image, users))
            case ApiKey.CREATE_ACLS:
                return self._create_acls(made, request)
            case ApiKey.DELETE_ACLS:
                return self._delete_acls(made, request)
            case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
                return self._alter_scram(made, request)
        raise RefusedFrameError(f"API {opened.row.api_key} is not served here")

    async def _changed(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a change; raise `RefusedFrameError` where nothing may be acknowledged."""
        try:
            return await self.writer.submit(request)
        except (MetadataError, WriterBusyError, WriterClosedError) as error:
            raise RefusedFrameError(f"the metadata was not changed: {error}") from error

    async def _create_acls(self, made: type[Message], request: Message) -> Message:
        if admin.has_filter_codes(request):
            return admin.failed_creations(made, request)
        asked = [admin.creation_of(item) for item in request.creations]
        bindings = tuple(item for item in asked if isinstance(item, AclBinding))
        return admin.created_acls(made, asked, await self._changed(CreateAcls(bindings)))

    async def _delete_acls(self, made: type[Message], request: Message) -> Message:
        filters = tuple(admin.filter_of(item) for item in request.filters)
        return admin.deleted_acls(made, await self._changed(DeleteAcls(filters)))

    async def _alter_scram(self, made: type[Message], request: Message) -> Message:
        deletions, upsertions = admin.alterations_of(request)
        return admin.altered_scram(made, await self._changed(AlterScram(deletions, upsertions)))
