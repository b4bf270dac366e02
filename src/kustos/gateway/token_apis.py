"""The delegation token APIs, answered from the metadata of this node; the guard has authorized them."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kustos.gateway.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata.control import TokenExpiry, TokenRenewal, describe_tokens
from kustos.metadata.errors import MetadataError
from kustos.metadata.store import StoreRequest
from kustos.protocol import Opened, RefusedFrameError, token_messages
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey

TOKEN_APIS: Final = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)


@dataclass(frozen=True, slots=True)
class TokenApis:
    """Makes, renews, ends and describes tokens. A description has every token; the guard strikes some."""

    writer: MetadataWriter

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message]:
        """Return the answer to one of `TOKEN_APIS`, or a coroutine that comes to it."""
        if opened.row.api_key == ApiKey.DESCRIBE_DELEGATION_TOKEN:
            return self._described(opened.exchange.request)
        return self._changed(opened)

    def _described(self, request: Message) -> Message:
        store = self.writer.store
        secret = store.token_rules.secret
        if secret is None:
            return token_messages.undescribed_tokens(ErrorCode.delegation_token_auth_disabled.value)
        found = describe_tokens(store.image, secret, token_messages.owners_of(request))
        return token_messages.described_tokens(found)

    async def _changed(self, opened: Opened) -> Message:
        made, request = opened.exchange.response_codec.root, opened.exchange.request
        caller = opened.exchange.known_context().principal
        match opened.row.api_key:
            case ApiKey.CREATE_DELEGATION_TOKEN:
                creation = token_messages.creation_of(request, caller)
                return token_messages.created_token(made, await self._result(creation))
            case ApiKey.RENEW_DELEGATION_TOKEN:
                renewal = TokenRenewal(caller, request.hmac, request.renew_period)
                return token_messages.changed_token(made, await self._result(renewal))
            case _:
                expiry = TokenExpiry(caller, request.hmac, request.expiry_time_period)
                return token_messages.changed_token(made, await self._result(expiry))

    async def _result(self, change: StoreRequest) -> Any:
        """Return the one result of a change when it is durable; end the client where that cannot be."""
        try:
            (result,) = await self.writer.submit(change)
        except (MetadataError, WriterBusyError, WriterClosedError) as error:
            raise RefusedFrameError(f"the metadata was not changed: {error}") from error
        return result
