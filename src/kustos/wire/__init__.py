"""Bytes, no IO: frames, headers, exact message codecs, primitives, record batches."""

from kustos.wire.alike import AlikeFrames
from kustos.wire.api_keys import ApiKey, api_constant, api_name, names_software
from kustos.wire.batch_headers import batch_headers, is_one_plain_batch
from kustos.wire.codec import (
    Decoded,
    MessageCodec,
    codec_versions,
    request_codec,
    response_codec,
)
from kustos.wire.errors import (
    MalformedMessageError,
    UnencodableMessageError,
    UnsupportedMessageError,
    WireError,
)
from kustos.wire.frames import (
    LENGTH_BYTES,
    FrameLengthError,
    FrameReader,
    RequestHeader,
    peek_api,
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
    response_header_is_flexible,
    with_length,
)
from kustos.wire.items import ItemReader
from kustos.wire.message import Message
from kustos.wire.parts import PartReader, PartWriter
from kustos.wire.primitives import ZERO_UUID, read_uvarint, uvarint
from kustos.wire.record_batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    MAGIC,
    CorruptBatchError,
    RawBatch,
    Record,
    RecordBatch,
    batch_end,
    batch_of,
    encoded_batch_of,
    read_batch,
    read_raw_batch,
    whole_records,
)
from kustos.wire.streamed import Shape, StreamedMessage

__all__ = [
    "COMPRESSION_MASK",
    "CONTROL_BIT",
    "HEADER",
    "HEADER_SIZE_BYTES",
    "LENGTH_BYTES",
    "LENGTH_END",
    "MAGIC",
    "ZERO_UUID",
    "AlikeFrames",
    "ApiKey",
    "CorruptBatchError",
    "Decoded",
    "FrameLengthError",
    "FrameReader",
    "ItemReader",
    "MalformedMessageError",
    "Message",
    "MessageCodec",
    "PartReader",
    "PartWriter",
    "RawBatch",
    "Record",
    "RecordBatch",
    "RequestHeader",
    "Shape",
    "StreamedMessage",
    "UnencodableMessageError",
    "UnsupportedMessageError",
    "WireError",
    "api_constant",
    "api_name",
    "batch_end",
    "batch_headers",
    "batch_of",
    "codec_versions",
    "encoded_batch_of",
    "is_one_plain_batch",
    "names_software",
    "peek_api",
    "read_batch",
    "read_raw_batch",
    "read_request_header",
    "read_response_header",
    "read_uvarint",
    "request_codec",
    "request_frame",
    "response_codec",
    "response_frame",
    "response_header_is_flexible",
    "uvarint",
    "whole_records",
    "with_length",
]
