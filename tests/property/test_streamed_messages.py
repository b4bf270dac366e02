"""Theorems about messages that are read while they arrive: the answers of a Fetch."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.wire import ApiKey, MalformedMessageError, Message, Shape, StreamedMessage, response_codec
from kustos.wire.primitives import uvarint
from kustos.wire.streamed import filled

SHAPE = Shape("responses", "partitions", "records")
VERSIONS = st.integers(4, 18)
ENDPOINTS_SINCE = 16
FLEXIBLE_SINCE = 12
ELEMENTS = 10_000


@st.composite
def answers(draw: st.DrawFn) -> tuple[int, Message]:
    """Draw a Fetch response: version and message."""
    version = draw(VERSIONS)
    codec = response_codec(ApiKey.FETCH, version)
    topic_type = codec.root.ELEMENTS["responses"]
    part_type = topic_type.ELEMENTS["partitions"]
    aborted_type = part_type.ELEMENTS["aborted_transactions"]
    topics = []
    for number in range(draw(st.integers(0, 3))):
        parts = [
            part_type.fit(
                partition_index=index,
                error_code=draw(st.sampled_from([0, 6])),
                high_watermark=draw(st.integers(-1, 2**40)),
                aborted_transactions=draw(
                    st.none() | st.lists(st.builds(aborted_type, producer_id=st.integers(0, 99)), max_size=3)
                ),
                records=draw(st.none() | st.binary(max_size=300)),
                **(
                    {"current_leader": part_type.ELEMENTS["current_leader"](leader_id=3, leader_epoch=7)}
                    if version >= FLEXIBLE_SINCE and draw(st.booleans())
                    else {}
                ),
            )
            for index in range(draw(st.integers(0, 3)))
        ]
        topics.append(
            topic_type.fit(topic=f"topic-{number}", topic_id=bytes([number + 1] * 16), partitions=parts)
        )
    message = codec.root.fit(throttle_time=draw(st.integers(0, 9)), session_id=5, responses=topics)
    if version >= ENDPOINTS_SINCE and draw(st.booleans()):
        endpoint = codec.root.ELEMENTS["node_endpoints"]
        hosts = draw(st.lists(st.text("abc.", min_size=1, max_size=40), min_size=1, max_size=3))
        message.node_endpoints = [endpoint(node_id=n, host=host, port=9092) for n, host in enumerate(hosts)]
    return version, message


def streamed(version: int, size_bytes: int, **hooks: Any) -> StreamedMessage:
    on_part = hooks.get("on_part", lambda _topic, _part: None)
    on_end = hooks.get("on_end", lambda _message: ())
    limit = hooks.get("limit", ELEMENTS)
    return StreamedMessage(response_codec(ApiKey.FETCH, version), SHAPE, size_bytes, on_part, on_end, limit)


def pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    """Cut bytes at these places, counted around."""
    at = sorted({cut % len(body) for cut in cuts} | {0, len(body)})
    return [body[begin:end] for begin, end in pairwise(at)]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


def fed(reader: StreamedMessage, body: bytes, cuts: list[int], passed: list[bytes] | None = None) -> bytes:
    """Feed bytes in pieces; return the passed bytes, also kept in `passed` in case of an error."""
    sent = [] if passed is None else passed
    for piece in pieces(body, cuts):
        sent.append(reader.feed(piece))
    return b"".join(sent)


def without_records(message: Message) -> Message:
    return message.replace(
        responses=[
            topic.replace(partitions=[part.replace(records=None) for part in topic.partitions])
            for topic in message.responses
        ]
    )


@given(answers(), CUTS)
def test_every_byte_passes_and_the_message_is_read_in_any_pieces(answer: Any, cuts: list[int]) -> None:
    version, message = answer
    body = response_codec(ApiKey.FETCH, version).encode(message)
    reader = streamed(version, len(body))
    assert fed(reader, body, cuts) == body
    assert reader.is_done
    assert not reader.is_altered
    assert reader.message == without_records(message)


@given(answers(), CUTS, st.data())
def test_no_byte_of_a_denied_part_is_forwarded(answer: Any, cuts: list[int], data: st.DataObject) -> None:
    version, message = answer
    codec = response_codec(ApiKey.FETCH, version)
    found = [(topic, part) for topic in message.responses for part in topic.partitions]
    if not found:
        return
    chosen = data.draw(st.integers(0, len(found) - 1))
    found[chosen][1].records = b"secret" * 50
    body = codec.encode(message)
    seen: list[Message] = []

    def refuse(_topic: Message, part: Message) -> None:
        seen.append(part)
        if len(seen) == chosen + 1:
            raise MalformedMessageError("not this one")

    passed: list[bytes] = []
    with pytest.raises(MalformedMessageError, match="not this one"):
        fed(streamed(version, len(body), on_part=refuse), body, cuts, passed)
    assert body.startswith(b"".join(passed))
    assert b"secret" not in b"".join(passed)


@given(answers(), CUTS, st.data())
def test_an_answer_cut_short_or_too_long_is_refused(
    answer: Any, cuts: list[int], data: st.DataObject
) -> None:
    version, message = answer
    body = response_codec(ApiKey.FETCH, version).encode(message)
    short = body[: data.draw(st.integers(1, len(body) - 1))]
    for wrong in (short, body + b"\0"):
        with pytest.raises(MalformedMessageError):
            fed(streamed(version, len(wrong)), wrong, cuts)


@given(answers(), CUTS, st.text("xyz", max_size=60))
def test_no_address_of_a_broker_passes_and_the_size_stays(answer: Any, cuts: list[int], host: str) -> None:
    version, message = answer
    codec = response_codec(ApiKey.FETCH, version)
    body = codec.encode(message)

    def moved(whole: Message) -> tuple[Message, ...]:
        if not whole.get("node_endpoints"):
            return ()
        for endpoint in whole.node_endpoints:
            endpoint.host, endpoint.port = host, 1
        return whole, whole.replace(node_endpoints=[])

    reader = streamed(version, len(body), on_end=moved)
    passed = fed(reader, body, cuts)
    assert len(passed) == len(body)
    read, had_unknown_tags = codec.decode(passed)
    assert {each.host for each in read.get("node_endpoints") or ()} <= {host}
    assert read.replace(responses=[]) == message.replace(
        responses=[], **({"node_endpoints": read.node_endpoints} if version >= ENDPOINTS_SINCE else {})
    )
    assert read.responses == message.responses
    assert had_unknown_tags <= reader.is_altered


@given(st.integers(FLEXIBLE_SINCE, 18), st.integers(3, 120), st.binary(max_size=200), CUTS)
def test_unknown_tagged_fields_pass_as_zeros(version: int, tag: int, content: bytes, cuts: list[int]) -> None:
    codec = response_codec(ApiKey.FETCH, version)
    plain = codec.encode(codec.root.fit(session_id=5))
    body = plain[:-1] + b"\1" + uvarint(tag) + uvarint(len(content)) + content
    reader = streamed(version, len(body))
    passed = fed(reader, body, cuts)
    assert reader.is_altered
    assert len(passed) == len(body)
    assert codec.decode(passed) == (codec.root.fit(session_id=5), True)
    assert not any(passed[-len(content) + 3 :]) or len(content) <= 3


@given(st.lists(st.integers(2, 400), min_size=1, max_size=3), st.integers(1, 500))
def test_every_gap_except_one_byte_is_filled(sizes: list[int], size_bytes: int) -> None:
    tags = [b"\1" + uvarint(0) + uvarint(size) + bytes(size) for size in sizes]
    fits = [each for each in tags if size_bytes == len(each) or size_bytes >= len(each) + 2]
    if not fits:
        with pytest.raises(MalformedMessageError, match="do not fit"):
            filled(tags, size_bytes)
        return
    made = filled(tags, size_bytes)
    assert len(made) == size_bytes
    assert made[1:].startswith(fits[0][1:])


@given(answers(), CUTS)
def test_no_more_elements_are_read_than_allowed(answer: Any, cuts: list[int]) -> None:
    version, message = answer
    body = response_codec(ApiKey.FETCH, version).encode(message)
    elements = len(message.responses) + sum(len(topic.partitions) for topic in message.responses)
    if elements:
        reader = streamed(version, len(body), limit=elements - 1)
        with pytest.raises(MalformedMessageError, match="too many elements"):
            fed(reader, body, cuts)
