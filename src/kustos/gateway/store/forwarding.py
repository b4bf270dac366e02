"""Changes of ACLs as requests to the process that makes them: the writer, or the active controller."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kustos.acl import AclBinding, AclBindingFilter
from kustos.authorizer import (
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    KafkaApiError,
)
from kustos.client.admin import creation_fields, filter_fields, matching_binding
from kustos.client.quorum import Forwarded
from kustos.gateway.store.large_work import LargeWork
from kustos.gateway.store.source import Submitted
from kustos.wire import ApiKey, ErrorCode, Message, request_codec

ACL_VERSION: Final = 3
"""The version of CreateAcls and DeleteAcls; every controller that can be followed supports it."""

R = TypeVar("R", AclCreateResult, AclDeleteResult)


@dataclass(frozen=True, slots=True)
class ForwardingMutator:
    """An `AclMutator` whose changes another process makes; `submit` is the method of the source."""

    submit: Callable[[Forwarded], Awaitable[Submitted]]
    _large: LargeWork = field(default_factory=LargeWork)

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Return one result for each ACL, once the valid ones are in force in this process."""
        codec = request_codec(ApiKey.CREATE_ACLS, ACL_VERSION)
        creation = codec.struct("AclCreation")
        items = await self._large.run(
            lambda _: [creation(**creation_fields(binding)) for binding in bindings], len(bindings)
        )
        message = codec.new(creations=items)
        done = await self.submit(Forwarded(ApiKey.CREATE_ACLS, ACL_VERSION, message, context))
        answers = _each(done.answer.results, bindings)
        return [AclCreateResult(error := _error(each), None if error else done.offset) for each in answers]

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Return one result for each filter, once the matched ACLs are no longer in force in this process."""
        codec = request_codec(ApiKey.DELETE_ACLS, ACL_VERSION)
        deletion = codec.struct("DeleteAclsFilter")
        items = await self._large.run(
            lambda _: [deletion(**filter_fields(each)) for each in filters], len(filters)
        )
        message = codec.new(filters=items)
        done = await self.submit(Forwarded(ApiKey.DELETE_ACLS, ACL_VERSION, message, context))
        answers = _each(done.answer.filter_results, filters)
        matches = sum(len(each.matching_acls) for each in answers)
        return await self._large.run(
            lambda _: [_deletion(each, done.offset) for each in answers], len(answers) + matches
        )


def _each(items: Sequence[Message], requested: Sequence[object]) -> Sequence[Message]:
    if len(items) != len(requested):
        raise KafkaApiError(ErrorCode.unknown_server_error)
    return items


def _error(item: Message) -> KafkaApiError | None:
    if not item.error_code:
        return None
    try:
        code = ErrorCode(item.error_code)
    except ValueError:
        code = ErrorCode.unknown_server_error
    return KafkaApiError(code, item.error_message)


def _deletion(result: Message, offset: int | None) -> AclDeleteResult:
    error = _error(result)
    if error is not None:
        return AclDeleteResult(exception=error)
    return AclDeleteResult(
        tuple(AclBindingDeleteResult(matching_binding(each), _error(each)) for each in result.matching_acls),
        change_offset=offset,
    )
