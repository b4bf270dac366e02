"""The requests that kustos answers in cluster mode: read from the image, changed by the controllers.

The guard has authorized them. Changes of StandardAuthorizer's ACLs go through its `AclMutator`; other changes
are forwarded unchanged, in the client's version. Both are made in the client's name.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from kustos.acl import AclBinding, AclBindingFilter
from kustos.authorizer import (
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    KafkaApiError,
)
from kustos.client.admin import creation_fields, filter_fields, matching_binding
from kustos.client.quorum import (
    ControllerForwarder,
    Forwarded,
    ForwardingRefusedError,
    QuorumUnavailableError,
)
from kustos.gateway.apis.shared import SharedApis, refused
from kustos.metadata.control import TokenRules, describe_tokens
from kustos.protocol import Opened, RefusedFrameError, token_messages
from kustos.wire import ApiKey, Message, request_codec

ACL_VERSION: Final = 3
"""The version of CreateAcls and DeleteAcls; every controller that can be followed speaks it."""

FORWARDED: Final = frozenset(
    {
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)

R = TypeVar("R", AclCreateResult, AclDeleteResult)


def unavailable(error: QuorumUnavailableError | ForwardingRefusedError) -> KafkaApiError:
    """Return the error that clients get for a failed change."""
    code = (
        ErrorCode.request_timed_out
        if isinstance(error, QuorumUnavailableError)
        else ErrorCode.cluster_authorization_failed
    )
    return KafkaApiError(code, str(error))


@dataclass(frozen=True, slots=True)
class QuorumMutator:
    """An `AclMutator` whose changes the active controller makes."""

    forwarder: ControllerForwarder

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> list[AclCreateResult]:
        """Return one result for each ACL, once the valid ones are in force here."""
        codec = request_codec(ApiKey.CREATE_ACLS, ACL_VERSION)
        creation = codec.struct("AclCreation")
        items = [creation(**creation_fields(binding)) for binding in bindings]
        message = codec.new(creations=items)
        answer = await self._changed(ApiKey.CREATE_ACLS, message, context)
        return _each(answer.results, bindings, lambda item: AclCreateResult(_error(item)))

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> list[AclDeleteResult]:
        """Return one result for each filter, once the ACLs it matched are no longer in force here."""
        codec = request_codec(ApiKey.DELETE_ACLS, ACL_VERSION)
        deletion = codec.struct("DeleteAclsFilter")
        items = [deletion(**filter_fields(each)) for each in filters]
        answer = await self._changed(ApiKey.DELETE_ACLS, codec.new(filters=items), context)
        return _each(answer.filter_results, filters, _deletion)

    async def _changed(self, api_key: int, message: Message, context: AuthorizableRequestContext) -> Message:
        try:
            return await self.forwarder.forward(Forwarded(api_key, ACL_VERSION, message, context))
        except (QuorumUnavailableError, ForwardingRefusedError) as error:
            raise unavailable(error) from error


def _each(items: Sequence[Message], requested: Sequence[object], read: Callable[[Message], R]) -> list[R]:
    if len(items) != len(requested):
        raise KafkaApiError(ErrorCode.unknown_server_error)
    return [read(item) for item in items]


def _error(item: Message) -> KafkaApiError | None:
    if not item.error_code:
        return None
    try:
        code = ErrorCode(item.error_code)
    except ValueError:
        code = ErrorCode.unknown_server_error
    return KafkaApiError(code, item.error_message)


def _deletion(result: Message) -> AclDeleteResult:
    error = _error(result)
    if error is not None:
        return AclDeleteResult(exception=error)
    return AclDeleteResult(
        tuple(AclBindingDeleteResult(matching_binding(each), _error(each)) for each in result.matching_acls)
    )


@dataclass(frozen=True, slots=True)
class QuorumApis:
    """Serves what every node does, and the SCRAM and token APIs from a followed quorum."""

    token_rules: TokenRules
    forwarder: ControllerForwarder
    shared: SharedApis

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer, or a coroutine that returns it; raise `RefusedFrameError` for a bug of ours."""
        if (answer := self.shared.serve(opened)) is not None:
            return answer
        match opened.row.api_key:
            case ApiKey.DESCRIBE_DELEGATION_TOKEN:
                return self._described_tokens(opened.exchange.request)
            case api_key if api_key in FORWARDED:
                return self._forwarded(opened)
        raise RefusedFrameError(f"API {opened.row.api_key} is not served here")

    def _described_tokens(self, request: Message) -> Message:
        secret = self.token_rules.secret
        if secret is None:
            return token_messages.undescribed_tokens(ErrorCode.delegation_token_auth_disabled.value)
        found = describe_tokens(self.shared.image(), secret, token_messages.owners_of(request))
        return token_messages.described_tokens(found)

    async def _forwarded(self, opened: Opened) -> Message:
        exchange = opened.exchange
        header = exchange.header
        forwarded = Forwarded(header.api_key, header.api_version, exchange.request, exchange.context)
        try:
            return await self.forwarder.forward(forwarded)
        except (QuorumUnavailableError, ForwardingRefusedError) as error:
            return refused(opened, unavailable(error))
