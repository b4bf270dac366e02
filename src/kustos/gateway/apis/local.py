"""The requests that kustos answers itself from its metadata, regardless of the metadata's source."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from kustos.authorizer import KafkaApiError
from kustos.client.quorum import Forwarded
from kustos.gateway.apis.shared import SharedApis, refused
from kustos.gateway.store.source import MetadataSource
from kustos.metadata.control import describe_tokens
from kustos.protocol import Opened, RefusedFrameError, token_messages
from kustos.wire import ApiKey, ErrorCode, Message

CHANGES: Final = frozenset(
    {
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
"""The changes that are passed unmodified to the metadata source."""


@dataclass(frozen=True, slots=True)
class MetadataApis:
    """Serves the APIs of every node, and changes of SCRAM users and tokens; the guard has authorized them."""

    source: MetadataSource
    shared: SharedApis

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer, or a coroutine that returns it; raise `RefusedFrameError` on a bug in kustos."""
        if (answer := self.shared.serve(opened)) is not None:
            return answer
        match opened.row.api_key:
            case ApiKey.DESCRIBE_DELEGATION_TOKEN:
                return self._described_tokens(opened.exchange.request)
            case api_key if api_key in CHANGES:
                return self._changed(opened)
        raise RefusedFrameError(f"API {opened.row.api_key} is not served here")

    def _described_tokens(self, request: Message) -> Message:
        secret = self.source.store.token_rules.secret
        if secret is None:
            return token_messages.undescribed_tokens(ErrorCode.delegation_token_auth_disabled.value)
        found = describe_tokens(self.shared.image(), secret, token_messages.owners_of(request))
        return token_messages.described_tokens(found)

    async def _changed(self, opened: Opened) -> Message:
        exchange = opened.exchange
        header = exchange.header
        request = Forwarded(header.api_key, header.api_version, exchange.request, exchange.context)
        try:
            done = await self.source.submit(request)
        except KafkaApiError as error:
            return refused(opened, error)
        exchange.changed = done.changed
        return done.answer
