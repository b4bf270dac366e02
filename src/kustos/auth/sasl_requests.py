"""Parses requests of unauthenticated clients, and encodes their answers."""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from kustos.auth.errors import SaslErrorCode
from kustos.wire import (
    MINIMUM_HEADER_SIZE,
    NO_TAGS,
    ApiKey,
    MalformedMessageError,
    Message,
    MessageCodec,
    UnencodableMessageError,
    api_constant,
    api_name,
    codec_versions,
    correlation_id_of,
    is_valid_api_versions,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
    with_correlation_id,
    without_correlation_id,
)

_API_VERSIONS_FLEXIBLE_SINCE: Final = 3

ErrorBody = Callable[[int, int, int, str], bytes | None]
"""(API key, version, error code, text) → the body that refuses an unparsed request, None if the API has no
such body."""

ITEMS_PER_REQUEST_MAX: Final = 100
"""The maximum number of list elements and tagged fields in a request of an unauthenticated client.
SaslHandshake, SaslAuthenticate and ApiVersions have no lists, and no tagged fields so far."""


HANDSHAKE_ANSWERS_KEPT_MAX: Final = 256
"""Encoded answers to SaslHandshake: two versions and three error codes for each listener's mechanisms."""

CODECS_KEPT_MAX: Final = 64
"""Cached codecs of requests and of answers: the three APIs of logins have ten."""

TOKEN_SIZES_KEPT_MAX: Final = 64
"""Sizes of answer tokens whose surrounding bytes are cached: a mechanism has one or two."""

_LIFETIME: Final = struct.Struct(">q")

TOKENS: Final = frozenset({int(ApiKey.SASL_AUTHENTICATE)})
"""The API whose requests contain the tokens of a login."""

SASL_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
"""The first two bytes of a SaslHandshake: its API key."""

NO_REQUEST_HINT: Final = (
    "not a Kafka request: another protocol than the listener's, a client older than KIP-43, or no client"
)

ApiVersionsBody = Callable[[int], bytes]
"""Version of the request → the encoded body of the listener's ApiVersions response."""

OPENINGS: Final = frozenset({int(ApiKey.API_VERSIONS), int(ApiKey.SASL_HANDSHAKE)})
"""The APIs that precede the tokens of a login. Their bodies name a library and a mechanism, so thousands of
clients send the same few requests, and they contain no secrets."""

OPENINGS_KEPT_MAX: Final = 1_024
"""The number of cached requests of this kind, some 600 bytes each: a library has one for each version and
each client id."""

OPENING_MAX_BYTES: Final = 192
"""The largest cached request: names of libraries, mechanisms and clients are short, but unauthenticated
clients choose them."""

_OPENING_KEYS: Final = frozenset(api_key.to_bytes(2, "big") for api_key in OPENINGS)


class SaslRequest(NamedTuple):
    """A parsed request; `body` is None if only the header was parsed.

    This is the case for APIs that are not allowed here, and for an ApiVersions of an unknown version.
    """

    api_key: int
    api_version: int
    correlation_id: int
    body: Message | None
    is_valid: bool = True
    """Whether a broker accepts the fields of an ApiVersions (KIP-511, KIP-1242)."""

    @property
    def api_name(self) -> str:
        """Kafka's name of the API."""
        return api_name(self.api_key)


def read_request(frame: bytes, only: frozenset[int]) -> SaslRequest:
    """Return the request in a frame without its length; raise `MalformedMessageError`.

    Only bodies of the APIs in `only` are parsed, so an unauthenticated client cannot reach the larger schemas
    or cause expensive work. Other requests are returned without a body.
    """
    api_key, api_version, _ = peek_api(frame)
    codec = _codec(api_key, api_version)
    if codec is None:
        header = read_request_header(frame, api_version >= _API_VERSIONS_FLEXIBLE_SINCE)
        return SaslRequest(api_key, api_version, header.correlation_id, None)
    header = read_request_header(frame, codec.flexible)
    body = None
    if api_key in only:
        body, end, _ = codec.read(frame, header.body_offset, ITEMS_PER_REQUEST_MAX)
        if end != len(frame):
            raise codec.bytes_follow(len(frame) - end)
    return SaslRequest(api_key, api_version, header.correlation_id, body)


@lru_cache(maxsize=CODECS_KEPT_MAX)
def _codec(api_key: int, api_version: int) -> MessageCodec | None:
    """Return the codec of a request, None for an ApiVersions of an unknown version.

    Raise `MalformedMessageError` for an unknown API, and for another one's unknown version.
    """
    versions = codec_versions(api_key)
    if versions is None:
        raise MalformedMessageError(f"unknown API key {api_key}")
    if versions[0] <= api_version <= versions[1]:
        return request_codec(api_key, api_version)
    if api_key != ApiKey.API_VERSIONS:
        raise MalformedMessageError(f"version {api_version} of {api_name(api_key)} is not supported")
    return None


def read_opening(frame: bytes) -> SaslRequest:
    """Return the request in a frame before the tokens; only requests in `OPENINGS` have bodies.

    Raise `MalformedMessageError`.
    """
    if frame[:2] not in _OPENING_KEYS or not MINIMUM_HEADER_SIZE <= len(frame) <= OPENING_MAX_BYTES:
        return _checked(read_request(frame, OPENINGS))
    known = _opening(without_correlation_id(frame))
    return SaslRequest(known.api_key, known.api_version, correlation_id_of(frame), known.body, known.is_valid)


@lru_cache(maxsize=OPENINGS_KEPT_MAX)
def _opening(rest: bytes) -> SaslRequest:
    """Return a request in `OPENINGS`, whose body must not be changed; raise `MalformedMessageError`."""
    return _checked(read_request(with_correlation_id(rest), OPENINGS))


def _checked(request: SaslRequest) -> SaslRequest:
    """Return the request, and whether it is a valid ApiVersions."""
    if request.api_key != ApiKey.API_VERSIONS or request.body is None or is_valid_api_versions(request.body):
        return request
    return request._replace(is_valid=False)


def token_in(frame: bytes) -> bytes | None:
    """Return the token of a SaslAuthenticate, None if the frame is another request or malformed."""
    try:
        body = read_request(frame, TOKENS).body
    except MalformedMessageError:
        return None
    return None if body is None else bytes(body.auth_bytes)


def answer(request: SaslRequest, body: bytes) -> bytes:
    """Return the complete frame of an answer with this body."""
    codec = _answer_codec(request.api_key, request.api_version)
    return response_frame(request.api_key, codec, request.correlation_id, body)


@lru_cache(maxsize=CODECS_KEPT_MAX)
def _answer_codec(api_key: int, api_version: int) -> MessageCodec:
    """Return the codec of the answer: of version 0 if the request's version is unknown (KIP-511)."""
    versions = codec_versions(api_key) or (0, 0)
    known = versions[0] <= api_version <= versions[1]
    return response_codec(api_key, api_version if known else 0)


def versions_refusal(request: SaslRequest, code: SaslErrorCode) -> bytes:
    """Return the frame that refuses an ApiVersions request, in version 0 if its version is unknown."""
    codec = _answer_codec(request.api_key, request.api_version)
    refusal = codec.new(error_code=code)
    if code is SaslErrorCode.UNSUPPORTED_VERSION:
        versions = codec_versions(ApiKey.API_VERSIONS) or (0, 0)
        entry = codec.struct("ApiVersion")
        refusal.api_keys = [
            entry(api_key=int(ApiKey.API_VERSIONS), min_version=versions[0], max_version=versions[1])
        ]
    return answer(request, codec.encode(refusal))


def handshake_answer(request: SaslRequest, code: SaslErrorCode, mechanisms: tuple[str, ...]) -> bytes:
    """Return the frame that answers a SaslHandshake with all enabled mechanisms."""
    return answer(request, _handshake_body(request.api_version, code, mechanisms))


@lru_cache(maxsize=HANDSHAKE_ANSWERS_KEPT_MAX)
def _handshake_body(version: int, code: SaslErrorCode, mechanisms: tuple[str, ...]) -> bytes:
    codec = response_codec(ApiKey.SASL_HANDSHAKE, version)
    return codec.encode(codec.new(error_code=code, mechanisms=list(mechanisms)))


def token_answer(request: SaslRequest, token: bytes, session_lifetime_ms: int = 0) -> bytes:
    """Return the frame that answers a SaslAuthenticate with a token; version 0 has no lifetime."""
    before, tags = _around_token(request.api_version, len(token))
    lifetime = b"" if request.api_version == 0 else _LIFETIME.pack(session_lifetime_ms)
    return answer(request, b"".join((before, token, lifetime, tags)))


@lru_cache(maxsize=TOKEN_SIZES_KEPT_MAX)
def _around_token(api_version: int, size: int) -> tuple[bytes, bytes]:
    """Return the bytes that the codec writes before a token of this size, and after the lifetime that follows
    it."""
    codec = response_codec(ApiKey.SASL_AUTHENTICATE, api_version)
    body, tags = codec.encode(codec.new(auth_bytes=bytes(size))), NO_TAGS if codec.flexible else b""
    lifetime_bytes = 0 if api_version == 0 else _LIFETIME.size
    return body[: len(body) - len(tags) - lifetime_bytes - size], tags


def token_refusal(request: SaslRequest, text: str) -> bytes:
    """Return the frame that refuses a SaslAuthenticate, with the reason."""
    codec = response_codec(ApiKey.SASL_AUTHENTICATE, request.api_version)
    body = codec.new(error_code=SaslErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text)
    return answer(request, codec.encode(body))


def top_level_error(api_key: int, api_version: int, error_code: int, text: str) -> bytes | None:
    """Return a refusal, without the text, for an API whose answer has one error code; None for the others."""
    del text
    codec = response_codec(api_key, api_version)
    if "error_code" not in codec.root.FIELDS:
        return None
    return codec.encode(codec.new(error_code=error_code))


def state_refusal(request: SaslRequest, error_body: ErrorBody) -> bytes:
    """Return the frame that refuses a request during a login; empty if there is none for its API."""
    if request.api_key == ApiKey.API_VERSIONS:
        return versions_refusal(request, SaslErrorCode.ILLEGAL_SASL_STATE)
    text = f"Unexpected Kafka request of type {api_constant(request.api_key)} during SASL authentication."
    code = SaslErrorCode.ILLEGAL_SASL_STATE
    try:
        body = error_body(request.api_key, request.api_version, code, text)
    except UnencodableMessageError:
        body = None
    return b"" if body is None else answer(request, body)
