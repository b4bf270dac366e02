"""The requests that kustos answers itself, from its own metadata."""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from kustos.acl import AclBinding, AclBindingFilter
from kustos.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    KafkaApiError,
)
from kustos.gateway.apis.shared import SharedApis, changed, refused
from kustos.gateway.apis.tokens import TOKEN_APIS, TokenApis
from kustos.gateway.store.writer import MetadataWriter
from kustos.metadata.control import ApiError
from kustos.metadata.store import AlterScram, CreateAcls, DeleteAcls
from kustos.protocol import Opened, RefusedFrameError, admin
from kustos.wire import ApiKey, Message


@dataclass(frozen=True, slots=True)
class WriterMutator:
    """An `AclMutator` that changes the metadata log of this node."""

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
        """Return one result for each filter, once the ACLs it matched are durably removed."""
        results = await changed(self.writer, DeleteAcls(tuple(filters)))
        return [
            AclDeleteResult.of(result.deleted, result.change_offset)
            if result.error is None
            else AclDeleteResult(exception=_kafka_error(result.error))
            for result in results
        ]


def _kafka_error(error: ApiError | None) -> KafkaApiError | None:
    return None if error is None else KafkaApiError(error.code, error.message)


@dataclass(frozen=True, slots=True)
class MetadataApis:
    """Serves what every node does, and changes of SCRAM users and tokens; the guard has authorized them."""

    writer: MetadataWriter
    shared: SharedApis

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer, or a coroutine that returns it; raise `RefusedFrameError` for a bug of ours."""
        if (answer := self.shared.serve(opened)) is not None:
            return answer
        match opened.row.api_key:
            case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
                return self._alter_scram(opened)
            case api_key if api_key in TOKEN_APIS:
                return TokenApis(self.writer).serve(opened)
        raise RefusedFrameError(f"API {opened.row.api_key} is not served here")

    async def _alter_scram(self, opened: Opened) -> Message:
        deletions, upsertions = admin.alterations_of(opened.exchange.request)
        try:
            results = await changed(self.writer, AlterScram(deletions, upsertions))
        except KafkaApiError as error:
            return refused(opened, error)
        return admin.altered_scram(opened.exchange.response_codec.root, results)
