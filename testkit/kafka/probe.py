"""Sends one broker a Metadata request over a bare socket: is it ready, and what does it know?"""

import io
import socket
import struct

from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32

from testkit.kafka.listeners import INTERNAL_PASSWORD, INTERNAL_USER
from testkit.ports import LOOPBACK

TIMEOUT_S = 2.0
"""A starting broker may accept before it answers; the next probe tries again."""

SASL_HANDSHAKE, SASL_AUTHENTICATE, METADATA = 17, 36, 3


def broker_ids(port: int, *, sasl: bool) -> frozenset[int]:
    """Return the broker ids known to the broker at `port`; empty if it does not answer yet."""
    answer = _metadata(port, sasl=sasl, topics=())
    return frozenset() if answer is None else frozenset(broker.node_id for broker in answer.brokers)


def complete_topics(port: int, *, sasl: bool) -> frozenset[str]:
    """Return the topics known to the broker at `port` with a leader and all replicas in sync."""
    answer = _metadata(port, sasl=sasl, topics=None)
    return (
        frozenset() if answer is None else frozenset(str(each.name) for each in answer.topics if _whole(each))
    )


def _whole(topic: MetadataResponseTopic) -> bool:
    return bool(topic.partitions) and all(
        each.error_code.value == 0 and set(each.isr_nodes) == set(each.replica_nodes)
        for each in topic.partitions
    )


def _metadata(port: int, *, sasl: bool, topics: tuple[()] | None) -> MetadataResponse | None:
    """Return the response about no topics or all; None if there is none yet."""
    try:
        with socket.create_connection((LOOPBACK, port), TIMEOUT_S) as link:
            if sasl:
                _log_in(link)
            return _ask_metadata(link, topics)
    except (OSError, EOFError):
        return None


def _ask_metadata(link: socket.socket, topics: tuple[()] | None) -> MetadataResponse:
    body = io.BytesIO()
    header = RequestHeader(
        request_api_key=i16(METADATA), request_api_version=i16(12), correlation_id=i32(1), client_id="probe"
    )
    entity_writer(RequestHeader)(body, header)
    question = MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    entity_writer(MetadataRequest)(body, question)
    answer = _ask(link, body.getvalue())
    _, used = entity_reader(ResponseHeader)(answer, 0)
    response, _ = entity_reader(MetadataResponse)(answer, used)
    return response


def _log_in(link: socket.socket) -> None:
    name = b"PLAIN"
    if _error(_ask(link, _header(SASL_HANDSHAKE, 1) + struct.pack(">h", len(name)) + name)):
        raise EOFError("PLAIN is not enabled")
    token = b"\0" + INTERNAL_USER.encode() + b"\0" + INTERNAL_PASSWORD.encode()
    if _error(_ask(link, _header(SASL_AUTHENTICATE, 1) + struct.pack(">i", len(token)) + token)):
        raise EOFError("the broker refused its own user")


def _header(key: int, version: int) -> bytes:
    body = io.BytesIO()
    header = RequestHeaderV1(
        request_api_key=i16(key), request_api_version=i16(version), correlation_id=i32(0), client_id="probe"
    )
    entity_writer(RequestHeaderV1)(body, header)
    return body.getvalue()


def _error(answer: bytes) -> int:
    code: int = struct.unpack_from(">h", answer, 4)[0]
    return code


def _ask(link: socket.socket, message: bytes) -> bytes:
    link.sendall(struct.pack(">i", len(message)) + message)
    (length,) = struct.unpack(">i", _read(link, 4))
    return _read(link, length)


def _read(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (piece := link.recv(count - len(data))):
            raise EOFError("the broker closed the connection")
        data += piece
    return data
