"""Forwards changes to the active controller on behalf of their requester (KIP-590).

A request goes to the leader of the quorum in an Envelope with its requester's principal and address; the
controller authorizes it again for that principal. As in Kafka's brokers, the request is retried until its
timeout if the controller changes, is unreachable or is not ready. An earlier attempt may already have taken
effect: repeating these requests leads to the same state, but the answer to a repeated deletion lists nothing.
The answer is returned when this node has applied all records that were committed by then.
"""

import asyncio
import ipaddress
import itertools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from kustos.authorizer import AuthorizableRequestContext
from kustos.client.connection import KafkaConnection
from kustos.client.errors import ClientError, ProtocolViolationError, error_name
from kustos.client.quorum.follower import QuorumConnection, QuorumFollower, retry_wait_ms
from kustos.metadata.quorum import FETCH_VERSIONS, Address, FollowedStore, ForeignAnswerError, read_fetch
from kustos.protocol import principal_bytes
from kustos.runtime import Entropy
from kustos.wire import (
    ApiKey,
    ErrorCode,
    MalformedMessageError,
    Message,
    api_name,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_header_is_flexible,
)

LOG: Final = structlog.get_logger("kustos.client")

FRAME_LENGTH_BYTES: Final = 4

FORWARDED_AT_ONCE: Final = 256
"""The maximum number of changes in flight; further changes wait, which bounds memory for a slow
controller."""

LOOK_EVERY_S: Final = 0.2
"""The interval of checks whether the controller in use is still the leader."""

MOVED: Final = frozenset(
    {
        ErrorCode.not_controller.value,
        ErrorCode.unknown_server_error.value,
        ErrorCode.request_timed_out.value,
    }
)
"""Envelope errors after which a retry may succeed."""


class QuorumUnavailableError(Exception):
    """A change was not confirmed within its timeout; it may have taken effect."""


class ForwardingRefusedError(Exception):
    """The controller does not accept forwarded requests from this node."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request to forward: its message, version and requester."""

    api_key: int
    api_version: int
    message: Message = field(repr=False)
    """It may hold a password."""
    context: AuthorizableRequestContext


def envelope_of(forwarded: Forwarded) -> Message:
    """Return the Envelope of a request; raise ValueError for a host that is not an address."""
    codec = request_codec(forwarded.api_key, forwarded.api_version)
    context = forwarded.context
    frame = request_frame(
        codec,
        forwarded.api_key,
        context.correlation_id,
        context.client_id,
        codec.encode(forwarded.message),
    )
    return request_codec(ApiKey.ENVELOPE, 0).new(
        request_data=frame[FRAME_LENGTH_BYTES:],
        request_principal=principal_bytes(context.principal),
        # Java appends a zone to a link-local address; it is not part of the bytes
        client_host_address=ipaddress.ip_address(context.host.partition("%")[0]).packed,
    )


def answer_in(envelope: Message, forwarded: Forwarded) -> Message:
    """Return the answer in an Envelope response; raise `ProtocolViolationError`."""
    data = envelope.response_data
    if data is None:
        raise ProtocolViolationError("the answer to an Envelope is empty")
    codec = response_codec(forwarded.api_key, forwarded.api_version)
    try:
        correlation_id, body_at = read_response_header(
            data, response_header_is_flexible(forwarded.api_key, codec)
        )
        message = codec.decode(data, body_at).message
    except MalformedMessageError as error:
        raise ProtocolViolationError(f"the answer in an Envelope cannot be parsed: {error}") from error
    if correlation_id != forwarded.context.correlation_id:
        raise ProtocolViolationError("an Envelope contains the answer to another request")
    return message


@dataclass(slots=True)
class _Course:
    """The progress of a request: the reason why it is not done yet, and the answer of a controller that was
    not ready."""

    reason: str = "the controllers do not answer"
    unready: Message | None = None


def is_unready(answer: Message) -> bool:
    """Return whether every item failed with an unnamed error.

    A controller gives this answer while its authorizer loads the ACLs (KIP-801).
    """
    items = [item.error_code for name in ("results", "filter_results") for item in answer.get(name) or ()]
    codes = [answer.error_code] if "error_code" in answer.FIELDS else items
    return bool(codes) and all(code == ErrorCode.unknown_server_error.value for code in codes)


class ControllerForwarder:
    """Forwards changes to the active controller, each within `timeout_ms`."""

    def __init__(
        self,
        store: FollowedStore,
        follower: QuorumFollower,
        connection: QuorumConnection,
        entropy: Entropy,
        timeout_ms: int,
        is_in_force: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store: Final = store
        self._follower: Final = follower
        self._connection: Final = connection
        self._entropy: Final = entropy
        self._timeout_ms: Final = timeout_ms
        self._is_in_force: Final = is_in_force
        self._slots: Final = asyncio.Semaphore(FORWARDED_AT_ONCE)
        self._connecting: Final = asyncio.Lock()

    async def forward(self, forwarded: Forwarded) -> Message:
        """Return the controller's answer when its change is applied on this node.

        Raise `QuorumUnavailableError` on timeout, `ForwardingRefusedError` if this node may not forward.
        """
        course = _Course()
        try:
            async with asyncio.timeout(self._timeout_ms / 1000), self._slots:
                return await self._carried_out(forwarded, course)
        except TimeoutError:
            if course.unready is not None:
                return course.unready
            LOG.warning("a change failed", api=api_name(forwarded.api_key), reason=course.reason)
            raise QuorumUnavailableError(
                f"the metadata quorum did not complete the change within {self._timeout_ms} ms, it may still "
                f"take effect later: {course.reason}"
            ) from None

    async def _carried_out(self, forwarded: Forwarded, course: "_Course") -> Message:
        envelope = envelope_of(forwarded)
        answer = None
        for tries in itertools.count():
            try:
                if answer is None:
                    answer = await self._answer(envelope, forwarded)
                course.unready = answer if is_unready(answer) else None
                if course.unready is None:
                    await self._catch_up()
                    return answer
                answer = None
            except (ClientError, ForeignAnswerError) as error:
                course.reason = str(error)
            await asyncio.sleep(retry_wait_ms(tries, self._entropy) / 1000)
        raise QuorumUnavailableError(course.reason)

    async def _answer(self, envelope: Message, forwarded: Forwarded) -> Message:
        connection, address = await self._leader()
        answer = await self._unless_moved(
            connection.send(ApiKey.ENVELOPE, 0, envelope, timeout_ms=self._timeout_ms), address
        )
        if answer.error_code == ErrorCode.cluster_authorization_failed.value:
            raise ForwardingRefusedError(
                f"the controller `{address}` does not let this node forward requests; it needs "
                "CLUSTER_ACTION on the cluster there"
            )
        if answer.error_code in MOVED:
            raise ClientError(f"`{address}` answered {error_name(answer.error_code)}")
        if answer.error_code:
            raise ForwardingRefusedError(f"`{address}` answered {error_name(answer.error_code)}")
        return answer_in(answer, forwarded)

    async def _unless_moved(self, answering: Coroutine[Any, Any, Message], address: Address) -> Message:
        """Return the answer; raise `ClientError` if another controller becomes the leader, because this one
        may hang."""
        task = asyncio.ensure_future(answering)
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=LOOK_EVERY_S)
                if self._store.machine.leader not in {None, address}:
                    break
            if task.done():
                return task.result()
        finally:
            task.cancel()
        raise ClientError(f"`{address}` no longer leads the quorum")

    async def _catch_up(self) -> None:
        """Return when all currently committed records are applied on this node."""
        connection, address = await self._leader()
        version = connection.choose_version(ApiKey.FETCH, FETCH_VERSIONS[1], FETCH_VERSIONS[0])
        question = self._store.machine.watermark_question(version)
        fetched = read_fetch(await connection.send(ApiKey.FETCH, version, question))
        if fetched.error or fetched.high_watermark < 0:
            raise ClientError(f"`{address}` answers without a high watermark")
        await self._follower.applied(fetched.high_watermark)
        if not self._is_in_force():
            # the authorizer is still loading a large set of ACLs
            raise ClientError("the change is not in force on this node yet")

    async def _leader(self) -> tuple[KafkaConnection, Address]:
        leader = self._store.machine.leader
        if leader is None:
            raise ClientError("no leader of the metadata quorum is known")
        async with self._connecting:
            return await self._connection.to(leader)

    def close(self) -> None:
        """Close the connection."""
        self._connection.drop()
