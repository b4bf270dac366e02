"""The guard of one connection: takes a request frame, says what is to be done with it.

What passes as bytes was fully understood: the client's own frame goes upstream only if header and body
were read to the last byte in their canonical form. Unknown tagged fields, and bytes that follow the
body, are left out by writing the request anew: Kafka ignores both, and librdkafka 2.16 sends three
bytes too many with a Metadata request for all topics. Anything else closes the connection, as does
whatever goes wrong in here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.protocol.api_versions import (
    invalid_request_response,
    unsupported_version_response,
)
from kustos.protocol.codes import INVALID_REQUEST, UNSUPPORTED_VERSION
from kustos.protocol.effects import Handler, Reply
from kustos.protocol.envelopes import FORWARDABLE
from kustos.protocol.exchange import Addresses, Asker, Decider, Exchange
from kustos.protocol.fetch_sessions import FetchSessions
from kustos.protocol.interpreter import handle
from kustos.protocol.steps import RefuseRequestError, Row
from kustos.protocol.table import TABLE
from kustos.wire import (
    MalformedMessageError,
    Message,
    MessageCodec,
    UnsupportedMessageError,
    codec_versions,
    peek_api,
    read_request_header,
    request_codec,
    request_frame,
    response_codec,
    response_frame,
)
from kustos.wire.api_keys import ApiKey, api_name

SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What ApiVersions may call a client and its version (KIP-511)."""

ITEMS_PER_REQUEST_MAX: Final = 100_000
"""List elements that one request may hold, at all depths. An element takes one byte at the least but
several microseconds to decide and answer, with all other clients waiting: more than any real client
needs at once would be a way to stop the gateway with a single frame."""

FRAME_WITHOUT_RECORDS_BYTES_MAX: Final = 16 * 2**20
"""What any request but Produce may measure; the items are only counted when they were read."""


class RefusedFrameError(Exception):
    """A frame that closes the connection without an answer; the text is for our log only."""


@dataclass(slots=True)
class Opened:
    """A request under way: its exchange, its handler, and how to send it on."""

    exchange: Exchange
    handler: Handler
    row: Row
    frame: bytes
    is_exact: bool = True
    """Whether the frame holds the request and nothing else."""

    def upstream_frame(self, message: Message | None, api_version: int | None = None) -> bytes:
        """Return the whole frame to send upstream, with its length before it.

        `message` None: the client's own bytes, unless they held more than the request.
        """
        header = self.exchange.header
        codec = self.exchange.codec
        if message is None:
            if self.is_exact:
                return len(self.frame).to_bytes(4, "big") + self.frame
            message = self.exchange.request
        elif api_version is not None and api_version != header.api_version:
            codec = request_codec(header.api_key, api_version)
        body = codec.encode(message)
        return request_frame(codec, header.api_key, header.correlation_id, header.client_id, body)

    def answer_codec(self, api_version: int | None) -> MessageCodec:
        """Return the codec of what upstream answers to a request of this version."""
        header = self.exchange.header
        return response_codec(header.api_key, header.api_version if api_version is None else api_version)

    def client_frame(self, content: Message | bytes) -> bytes:
        """Return the whole frame to send to the client."""
        codec = self.exchange.response_codec
        body = content if isinstance(content, bytes) else codec.encode(content)
        header = self.exchange.header
        return response_frame(header.api_key, codec, header.correlation_id, body)


@dataclass(slots=True)
class Guard:
    """Opens the requests of one connection. `offered` is what ApiVersions told or would tell it.

    With an `asker` an opened request needs its `exchange.context` before its handler runs.
    """

    decider: Decider
    addresses: Addresses
    offered: Mapping[int, tuple[int, int]]
    auto_creates_topics: bool = True
    fetch_sessions: FetchSessions = field(default_factory=FetchSessions)
    asker: Asker | None = None
    table: Mapping[int, Row] = field(default_factory=lambda: TABLE)

    def open(self, frame: bytes) -> Opened | bytes:
        """Return the request that a frame holds, or the frame that answers it at once.

        Raise `RefusedFrameError` for what is no request that may be made here.
        """
        try:
            api_key, api_version, _ = peek_api(frame)
            row = self.table.get(api_key)
            versions = self.offered.get(api_key)
            if row is None or versions is None:
                raise RefusedFrameError(f"the API {api_name(api_key)} is not offered here")
            if not versions[0] <= api_version <= versions[1]:
                if api_key == ApiKey.API_VERSIONS:
                    return self._unsupported_api_versions(frame)
                raise RefusedFrameError(f"{api_name(api_key)} v{api_version} is not offered here")
            return self._opened(frame, row)
        except (MalformedMessageError, UnsupportedMessageError) as error:
            raise RefusedFrameError(str(error)) from None

    def open_forwarded(self, frame: bytes) -> Opened:
        """Return the request that an Envelope held; raise `RefuseRequestError` with the Envelope's code.

        What cannot be read at all is UNSUPPORTED_VERSION, as in Kafka, which keeps INVALID_REQUEST for what
        may not be forwarded. An Envelope in an Envelope is among that.
        """
        try:
            api_key, api_version, _ = peek_api(frame)
            # the header comes first: whether it can be read depends on the API, known or not
            read_request_header(frame, request_codec(api_key, _nearest(api_key, api_version)).flexible)
            row = self.table.get(api_key)
            if row is None or api_key not in FORWARDABLE:
                raise RefuseRequestError(INVALID_REQUEST)
            lowest, highest = self.offered.get(api_key, (0, -1))
            if not lowest <= api_version <= highest:
                raise RefuseRequestError(UNSUPPORTED_VERSION)
            opened = self._opened(frame, row)
        except (MalformedMessageError, UnsupportedMessageError, RefusedFrameError):
            raise RefuseRequestError(UNSUPPORTED_VERSION) from None
        opened.exchange.is_forwarded = True
        return opened

    def _opened(self, frame: bytes, row: Row) -> Opened:
        api_key, api_version, _ = peek_api(frame)
        codec = request_codec(api_key, api_version)
        header = read_request_header(frame, codec.flexible)
        if api_key != ApiKey.PRODUCE and len(frame) > FRAME_WITHOUT_RECORDS_BYTES_MAX:
            raise RefusedFrameError(f"{api_name(api_key)} of {len(frame)} bytes is too large")
        request, end, had_unknown_tags = codec.read(frame, header.body_offset, ITEMS_PER_REQUEST_MAX)
        if row.unparsable(request):
            raise RefusedFrameError(f"{api_name(api_key)} has elements of type UNKNOWN")
        exchange = Exchange(
            header,
            codec,
            request,
            self.decider,
            self.addresses,
            self.auto_creates_topics,
            self.fetch_sessions,
            asker=self.asker,
        )
        handler = self._checked_api_versions(exchange) or handle(exchange, row)
        is_exact = end == len(frame) and not had_unknown_tags and not header.had_unknown_tags
        return Opened(exchange, handler, row, frame, is_exact)

    def _unsupported_api_versions(self, frame: bytes) -> bytes:
        _, _, correlation_id = peek_api(frame)
        codec = response_codec(ApiKey.API_VERSIONS, 0)
        body = codec.encode(unsupported_version_response())
        return response_frame(ApiKey.API_VERSIONS, codec, correlation_id, body)

    def _checked_api_versions(self, exchange: Exchange) -> Handler | None:
        """Return the handler that refuses an ApiVersions whose client has no proper name."""
        request = exchange.request
        if exchange.header.api_key != ApiKey.API_VERSIONS or "client_software_name" not in request.FIELDS:
            return None
        names = (request.client_software_name, request.client_software_version)
        if all(SOFTWARE_NAME.fullmatch(name) for name in names):
            return None
        return _reply_at_once(Reply(invalid_request_response(exchange.version)))


def _reply_at_once(reply: Reply) -> Handler:
    yield from ()
    return reply


def _nearest(api_key: int, api_version: int) -> int:
    lowest, highest = codec_versions(api_key) or (0, -1)
    return max(lowest, min(highest, api_version))
