"""An opened request: its state, and the frames built for upstream and for the client."""

from dataclasses import dataclass

from kustos.protocol.effects import OWN_REQUEST, Ask, Handler
from kustos.protocol.exchange import Exchange
from kustos.protocol.steps import Row
from kustos.wire import (
    INT32_BYTES,
    Message,
    MessageCodec,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_frame,
    response_header_is_flexible,
    with_length,
)


@dataclass(slots=True)
class Opened:
    """A request in flight: its exchange, its handler and its frame."""

    exchange: Exchange
    handler: Handler
    row: Row
    frame: bytes
    is_exact: bool = True
    """Whether the frame holds only the request, without extra bytes."""

    def upstream_frame(
        self, message: Message | None, api_version: int | None = None, api_key: int | None = None
    ) -> bytes:
        """Return the whole frame to send upstream, length prefix included.

        `message` None: the client's own bytes, re-encoded if the frame held more than the request.
        """
        header = self.exchange.header
        codec = self.exchange.codec
        if message is None:
            if self.is_exact:
                return with_length(self.frame)
            message = self.exchange.request
        key = header.api_key if api_key is None else api_key
        if api_version is not None and (key, api_version) != (header.api_key, header.api_version):
            codec = request_codec(key, api_version)
        body = codec.encode(message)
        return request_frame(codec, key, header.correlation_id, header.client_id, body)

    def answer_codec(self, api_version: int | None = None, api_key: int | None = None) -> MessageCodec:
        """Return the codec of upstream's answer to a request of this API and version."""
        header = self.exchange.header
        return response_codec(
            header.api_key if api_key is None else api_key,
            header.api_version if api_version is None else api_version,
        )

    def throttle_time_ms(self, answer: bytes, ask: Ask = OWN_REQUEST) -> int | None:
        """Return the time in milliseconds for which upstream mutes this connection, read from its answer.

        None if this version has no such field. The field is the first one of every answer that has it
        (KIP-219).
        """
        return throttle_time_in(self.row.api_key, self.answer_codec(ask.api_version, ask.api_key), answer)

    def client_frame(self, content: Message | bytes) -> bytes:
        """Return the whole frame to send to the client."""
        codec = self.exchange.response_codec
        body = content if isinstance(content, bytes) else codec.encode(content)
        header = self.exchange.header
        return response_frame(header.api_key, codec, header.correlation_id, body)


def throttle_time_in(api_key: int, codec: MessageCodec, answer: bytes) -> int | None:
    """Return the throttle time of an answer in milliseconds, None if this version has no such field."""
    if codec.root.FIELDS[0] != "throttle_time":
        return None
    _, body_at = read_response_header(answer, response_header_is_flexible(api_key, codec))
    return max(0, int.from_bytes(answer[body_at : body_at + INT32_BYTES], "big", signed=True))
