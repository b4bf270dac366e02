"""Bytes, no IO: frames, headers, exact message codecs, primitives, record batches."""

from kustos.wire.codec import Decoded, MessageCodec, codec_versions, request_codec, response_codec
from kustos.wire.errors import (
    MalformedMessageError,
    UnencodableMessageError,
    UnsupportedMessageError,
    WireError,
)
from kustos.wire.frames import (
    FrameReader,
    RequestHeader,
    peek_api,
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
    response_header_is_flexible,
)
from kustos.wire.message import Message
from kustos.wire.primitives import ZERO_UUID

__all__ = [
    "ZERO_UUID",
    "Decoded",
    "FrameReader",
    "MalformedMessageError",
    "Message",
    "MessageCodec",
    "RequestHeader",
    "UnencodableMessageError",
    "UnsupportedMessageError",
    "WireError",
    "codec_versions",
    "peek_api",
    "read_request_header",
    "read_response_header",
    "request_codec",
    "request_frame",
    "response_codec",
    "response_frame",
    "response_header_is_flexible",
]
