"""A worker's changes as Envelopes (KIP-590): the request with its requester, and the response to it."""

import ipaddress
from typing import Final

from kustos.authorizer import AuthorizableRequestContext, KafkaApiError
from kustos.client import ClientError
from kustos.client.quorum import Forwarded, answer_in, envelope_of
from kustos.gateway.store.source import Submitted
from kustos.gateway.workers.errors import ChannelError
from kustos.gateway.workers.messages import ChangeAnswer, Submit
from kustos.protocol import RefuseRequestError, principal_of
from kustos.wire import (
    LENGTH_BYTES,
    ApiKey,
    ErrorCode,
    Message,
    WireError,
    peek_api,
    read_request_header,
    request_codec,
    response_codec,
    response_frame,
)

ITEM_BYTES: Final = 64
"""The minimum size of an item of a change, such as one ACL: large changes are encoded and decoded on another
thread."""


def items_of(message: Message) -> int:
    """Return the number of items of a change or its answer, for the types that may have many."""
    items = sum(len(message.get(name) or ()) for name in ("creations", "filters", "deletions", "upsertions"))
    results = message.get("filter_results") or ()
    return items + len(message.get("results") or ()) + sum(1 + len(each.matching_acls) for each in results)


def submit_of(number: int, request: Forwarded) -> Submit:
    """Return the message for a change."""
    return Submit(number, request_codec(ApiKey.ENVELOPE, 0).encode(envelope_of(request)))


def request_of(message: Submit) -> Forwarded:
    """Return the change and its requester; raise `ChannelError` if the Envelope has none."""
    try:
        envelope = request_codec(ApiKey.ENVELOPE, 0).decode(message.payload).message
        frame = envelope.request_data
        api_key, api_version, _ = peek_api(frame)
        codec = request_codec(api_key, api_version)
        header = read_request_header(frame, codec.flexible)
        context = AuthorizableRequestContext(
            principal=principal_of(envelope.request_principal),
            host=str(ipaddress.ip_address(envelope.client_host_address)),
            client_id=header.client_id,
            request_type=api_key,
            request_version=api_version,
            correlation_id=header.correlation_id,
        )
        return Forwarded(api_key, api_version, codec.decode(frame, header.body_offset).message, context)
    except (WireError, RefuseRequestError, ValueError, KeyError) as error:
        # the error's text may contain bytes that clients sent
        raise ChannelError(f"an Envelope has no valid request ({type(error).__name__})") from None


def answer_of(number: int, request: Forwarded, done: Submitted) -> ChangeAnswer:
    """Return the message for the answer to a change."""
    codec = response_codec(request.api_key, request.api_version)
    frame = response_frame(request.api_key, codec, request.context.correlation_id, codec.encode(done.answer))
    payload = _response(ErrorCode.none.value, frame[LENGTH_BYTES:])
    return ChangeAnswer(number, done.offset, done.changed, None, payload)


def failure_of(number: int, error: KafkaApiError) -> ChangeAnswer:
    """Return the message for a change that failed as a whole."""
    return ChangeAnswer(number, None, None, error.message, _response(error.code.value, None))


def _response(code: int, data: bytes | None) -> bytes:
    codec = response_codec(ApiKey.ENVELOPE, 0)
    return codec.encode(codec.new(error_code=code, response_data=data))


def submitted_of(message: ChangeAnswer, request: Forwarded) -> Submitted:
    """Return the answer to a change; raise `KafkaApiError` if it failed, `ChannelError` if it is missing."""
    try:
        envelope = response_codec(ApiKey.ENVELOPE, 0).decode(message.payload).message
        if envelope.error_code:
            raise KafkaApiError(ErrorCode(envelope.error_code), message.error)
        return Submitted(answer_in(envelope, request), message.offset, message.changed)
    except (WireError, ClientError, ValueError) as error:
        raise ChannelError(f"the answer to a change is invalid ({type(error).__name__})") from None
