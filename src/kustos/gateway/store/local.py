"""The log of this process as a source of metadata."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import AclBinding, AclBindingFilter
from kustos.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    KafkaApiError,
)
from kustos.client.quorum import Forwarded
from kustos.gateway.store.large_work import LargeWork
from kustos.gateway.store.source import Submitted
from kustos.gateway.store.writer import MetadataWriter, changed
from kustos.metadata.control import ApiError, TokenExpiry, TokenRenewal
from kustos.metadata.store import AlterScram, CreateAcls, DeleteAcls
from kustos.protocol import admin, token_messages
from kustos.wire import ApiKey, ErrorCode, response_codec


@dataclass(frozen=True, slots=True)
class WriterMutator:
    """An `AclMutator` that changes the metadata log of this process."""

    writer: MetadataWriter

    async def create_acls(
        self, _context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Return one result for each ACL, once the valid ones are durable and in force."""
        results = await changed(self.writer, CreateAcls(tuple(bindings)))
        return [AclCreateResult(_kafka_error(result.error), result.change_offset) for result in results]

    async def delete_acls(
        self, _context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Return one result for each filter, once the matched ACLs are durably removed."""
        results = await changed(self.writer, DeleteAcls(tuple(filters)))
        return [
            AclDeleteResult.of(result.deleted, result.change_offset)
            if result.error is None
            else AclDeleteResult(exception=_kafka_error(result.error))
            for result in results
        ]


def _kafka_error(error: ApiError | None) -> KafkaApiError | None:
    return None if error is None else KafkaApiError(error.code, error.message)


class LocalLog:
    """A `MetadataSource`: a log that only this process writes."""

    def __init__(self, writer: MetadataWriter) -> None:
        self.writer: Final = writer
        self.store: Final = writer.store
        self.mutator: Final = WriterMutator(writer)
        self._large: Final = LargeWork()

    async def submit(self, request: Forwarded) -> Submitted:
        """Return the answer to an authorized change that is durable and in force; raise `KafkaApiError`."""
        root, message = response_codec(request.api_key, request.api_version).root, request.message
        caller = request.context.principal
        match request.api_key:
            case ApiKey.CREATE_ACLS:
                return await self._create_acls(request)
            case ApiKey.DELETE_ACLS:
                return await self._delete_acls(request)
            case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
                results = await changed(self.writer, AlterScram(*admin.alterations_of(message)))
                return Submitted(admin.altered_scram(root, results))
            case ApiKey.CREATE_DELEGATION_TOKEN:
                (result,) = await changed(self.writer, token_messages.creation_of(message, caller))
                return Submitted(token_messages.created_token(root, result))
            case ApiKey.RENEW_DELEGATION_TOKEN:
                change: Any = TokenRenewal(caller, message.hmac, message.renew_period)
            case ApiKey.EXPIRE_DELEGATION_TOKEN:
                change = TokenExpiry(caller, message.hmac, message.expiry_time_period)
            case _:
                raise KafkaApiError(ErrorCode.invalid_request)
        (result,) = await changed(self.writer, change)
        return Submitted(token_messages.changed_token(root, result), changed=result.token_id or None)

    async def _create_acls(self, request: Forwarded) -> Submitted:
        root, message = response_codec(request.api_key, request.api_version).root, request.message
        items = await self._large.run(lambda _: admin.creations_of(message), len(message.creations))
        if items is None:
            raise KafkaApiError(ErrorCode.unknown_server_error)
        bindings = [item for item in items if isinstance(item, AclBinding)]
        results = await self.mutator.create_acls(request.context, bindings)
        answer = await self._large.run(lambda _: admin.created_acls(root, items, results), len(items))
        return Submitted(answer, _first_offset(results))

    async def _delete_acls(self, request: Forwarded) -> Submitted:
        root, items = response_codec(request.api_key, request.api_version).root, request.message.filters
        filters = await self._large.run(lambda _: [admin.filter_of(item) for item in items], len(items))
        results = await self.mutator.delete_acls(request.context, filters)
        deleted = sum(len(each.acl_binding_delete_results) for each in results)
        answer = await self._large.run(lambda _: admin.deleted_acls(root, results), len(results) + deleted)
        return Submitted(answer, _first_offset(results))

    async def close(self) -> None:
        """Finish waiting changes, and close the log."""
        await self.writer.close()


def _first_offset(results: Sequence[AclCreateResult] | Sequence[AclDeleteResult]) -> int | None:
    """Return the first offset of a change; all results of one request share it."""
    return next((each.change_offset for each in results if each.change_offset is not None), None)
