"""Limits on the work that a frame of an unauthenticated client can cause."""

import pytest

from kustos.auth import Fail, SaslServerMachine, SaslServerSettings, SendFrame
from kustos.auth.sasl_requests import (
    ITEMS_PER_REQUEST_MAX,
    OPENING_MAX_BYTES,
    OPENINGS,
    SaslRequest,
    _opening,
    read_opening,
    read_request,
    token_answer,
)
from kustos.protocol import TABLE, refusal_body
from kustos.wire import codec_versions, request_codec, request_frame, response_codec, response_frame
from kustos.wire.frames import HEADER_TAGS_MAX
from kustos.wire.primitives import uvarint
from testkit.clocks import ManualClock
from testkit.sasl import (
    api_versions_body,
    handshake,
    machine,
    mechanisms,
    response,
    versions_request,
)

REFUSED_UNREAD = [
    (api_key, version)
    for api_key in sorted(TABLE.keys() - {36})
    for lowest, highest in (codec_versions(api_key) or (0, -1),)
    for version in range(lowest, highest + 1)
]


@pytest.mark.parametrize(("api_key", "version"), REFUSED_UNREAD)
def test_during_the_login_only_the_header_of_another_request_is_parsed(api_key: int, version: int) -> None:
    """A stranger's 512 KB of group names once cost seconds, and 41 MB of an answer that named them."""
    answers = []
    header = request_frame(request_codec(api_key, version), api_key, 5, "test", b"")[4:]
    for body in (b"", b"\xff" * 20, b"\x01" * 500_000):
        server = SaslServerMachine(
            SaslServerSettings(), mechanisms(), api_versions_body, ManualClock(1_000_000), refusal_body
        )
        server.receive(handshake())
        (failure,) = server.receive(header + body)
        assert isinstance(failure, Fail)
        answers.append(failure.response)
    assert answers[1:] == answers[:1] * 2
    if answers[0]:
        assert response(answers[0], api_key, version).error_code == 34


@pytest.mark.parametrize("version", [3, 4])
def test_tagged_fields_before_a_login_are_limited(version: int) -> None:
    """They cost time field by field, before it is known who sends them."""
    header = request_frame(request_codec(18, version), 18, 5, "test", b"")[4:]
    body = versions_request(version)[len(header) :]

    def with_tags(count: int) -> bytes:
        return uvarint(count) + b"".join(uvarint(tag) + b"\0" for tag in range(1, count + 1))

    for frame, passes in (
        (header + body[:-1] + with_tags(ITEMS_PER_REQUEST_MAX), True),
        (header + body[:-1] + with_tags(ITEMS_PER_REQUEST_MAX + 1), False),
        (header[:-1] + with_tags(HEADER_TAGS_MAX) + body, True),
        (header[:-1] + with_tags(HEADER_TAGS_MAX + 1) + body, False),
    ):
        effects = machine().receive(frame)
        assert any(isinstance(effect, SendFrame) for effect in effects) is passes


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_383, 16_384, 500_000])
def test_an_answer_to_a_token_is_what_the_codec_writes(version: int, size: int) -> None:
    asked, secret = SaslRequest(36, version, 5, None), b"t" * size
    codec = response_codec(36, version)
    for lifetime_ms in (0, 1) if version else (0,):
        fields = {"session_lifetime": lifetime_ms} if version else {}
        expected = codec.encode(codec.new(auth_bytes=secret, **fields))
        assert token_answer(asked, secret, lifetime_ms) == response_frame(36, codec, 5, expected)


@pytest.mark.parametrize("client_id", ["c", "x" * OPENING_MAX_BYTES])
@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1])
@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_a_cached_opening_is_parsed_like_any_request(version: int, number: int, client_id: str) -> None:
    for api_key, fields in (
        (18, {"client_software_name": "kustos", "client_software_version": "1"} if version > 2 else {}),
        (18, {"client_software_name": "no name", "client_software_version": "1"} if version > 2 else {}),
        (17, {"mechanism": "PLAIN"}),
    ):
        codec = request_codec(api_key, version if api_key == 18 else version // 4)
        frame = request_frame(codec, api_key, number, client_id, codec.encode(codec.new(**fields)))[4:]
        for _ in range(2):
            request = read_opening(frame)
            assert request._replace(is_valid=True) == read_request(frame, OPENINGS)
            assert request.is_valid == (fields.get("client_software_name") != "no name")


def test_only_openings_are_cached() -> None:
    codec = request_codec(36, 2)
    frame = request_frame(codec, 36, 1, "c", codec.encode(codec.new(auth_bytes=b"\0alice\0s3cret")))[4:]
    kept = _opening.cache_info().currsize
    assert read_opening(frame).body is None
    assert _opening.cache_info().currsize == kept
