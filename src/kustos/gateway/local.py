"""The requests that kustos answers itself, from its own metadata."""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog

from kustos.acl import AclBinding, AclBindingFilter
from kustos.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    KafkaApiError,
)
from kustos.gateway.shared_apis import SharedApis
from kustos.gateway.token_apis import TOKEN_APIS, TokenApis
from kustos.gateway.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata.control import ApiError
from kustos.metadata.errors import MetadataError
from kustos.metadata.store import AlterScram, CreateAcls, DeleteAcls, StoreRequest
from kustos.protocol import Opened, RefusedFrameError, admin
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey

LOG: Final = structlog.get_logger("kustos.gateway")


@dataclass(frozen=True, slots=True)
class WriterMutator:
    """An `AclMutator` that changes the metadata log of this node."""

    writer: MetadataWriter

    async def create_acls(
        self, _context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Return one result for each ACL when those that are fine are durable and in force."""
        results = await self._changed(CreateAcls(tuple(bindings)))
        return [AclCreateResult(_told(result.error), result.change_offset) for result in results]

    async def delete_acls(
        self, _context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Return one result for each filter when what it matched is durably out of force."""
        results = await self._changed(DeleteAcls(tuple(filters)))
        return [
            AclDeleteResult.of(result.deleted, result.change_offset)
            if result.error is None
            else AclDeleteResult(exception=_told(result.error))
            for result in results
        ]

    async def _changed(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a change; clients are told what kept it from being durable, by its code."""
        try:
            return await self.writer.submit(request)
        except (MetadataError, WriterBusyError, WriterClosedError) as error:
            LOG.error("the metadata was not changed", reason=str(error))
            raise


def _told(error: ApiError | None) -> KafkaApiError | None:
    return None if error is None else KafkaApiError(error.code, error.message)


@dataclass(frozen=True, slots=True)
class MetadataApis:
    """Serves what every node does, and changes of SCRAM users and tokens; the guard has authorized them."""

    writer: MetadataWriter
    shared: SharedApis

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message]:
        """Return the answer, or a coroutine that comes to it; raise `RefusedFrameError` for a bug of ours."""
        if (answer := self.shared.serve(opened)) is not None:
            return answer
        match opened.row.api_key:
            case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
                return self._alter_scram(opened.exchange.response_codec.root, opened.exchange.request)
            case api_key if api_key in TOKEN_APIS:
                return TokenApis(self.writer).serve(opened)
        raise RefusedFrameError(f"API {opened.row.api_key} is not served here")

    async def _alter_scram(self, made: type[Message], request: Message) -> Message:
        deletions, upsertions = admin.alterations_of(request)
        try:
            results = await self.writer.submit(AlterScram(deletions, upsertions))
        except (MetadataError, WriterBusyError, WriterClosedError) as error:
            raise RefusedFrameError(f"the metadata was not changed: {error}") from error
        return admin.altered_scram(made, results)
