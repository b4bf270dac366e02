"""The delegation token APIs, answered from the metadata of this node; the guard has authorized them."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog
from kio.schema.errors import ErrorCode

from kustos.authorizer import KafkaApiError
from kustos.client import supervised
from kustos.gateway.apis.shared import changed, refused
from kustos.gateway.store.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata import MetadataError
from kustos.metadata.control import TokenExpiry, TokenRenewal, describe_tokens
from kustos.metadata.store import StoreRequest, SweepTokens
from kustos.protocol import Opened, token_messages
from kustos.wire import ApiKey, Message

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
    """Creates, renews, expires and describes tokens. The guard filters descriptions."""

    writer: MetadataWriter

    def serve(self, opened: Opened) -> Message | Coroutine[Any, Any, Message]:
        """Return the answer to one of `TOKEN_APIS`, or a coroutine that returns it."""
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
        try:
            return await self._answer(opened)
        except KafkaApiError as error:
            return refused(opened, error)

    async def _answer(self, opened: Opened) -> Message:
        response_type, request = opened.exchange.response_codec.root, opened.exchange.request
        caller = opened.exchange.context.principal
        match opened.row.api_key:
            case ApiKey.CREATE_DELEGATION_TOKEN:
                creation = token_messages.creation_of(request, caller)
                return token_messages.created_token(response_type, await self._result(creation))
            case ApiKey.RENEW_DELEGATION_TOKEN:
                change: StoreRequest = TokenRenewal(caller, request.hmac, request.renew_period)
            case _:
                change = TokenExpiry(caller, request.hmac, request.expiry_time_period)
        result = await self._result(change)
        opened.exchange.changed = result.token_id or None
        return token_messages.changed_token(response_type, result)

    async def _result(self, change: StoreRequest) -> Any:
        """Return the single result of a change once it is durable; raise `KafkaApiError`."""
        (result,) = await changed(self.writer, change)
        return result


LOG: Final = structlog.get_logger("kustos.gateway")


class TokenSweeper:
    """Sweeps every `interval_ms`, in passes of a bounded size, until it is stopped.

    No decision depends on it: an expired token is refused whether it was removed or not.
    """

    def __init__(self, writer: MetadataWriter, interval_ms: int) -> None:
        self._writer: Final = writer
        self._interval_ms: Final = interval_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with the first sweep after one interval."""
        self._task = supervised("token-sweeper", self._run)

    async def stop(self) -> None:
        """End the sweeping; the writer finishes a pass that has begun."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> None:
        """Remove expired tokens; raise what the writer raises."""
        while (await self._writer.submit(SweepTokens()))[0]:
            continue

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            try:
                await self.sweep()
            except WriterClosedError:
                return
            except (MetadataError, WriterBusyError) as error:
                LOG.error("expired delegation tokens were not removed", reason=str(error))
