"""Re-authenticates a link at its broker between two requests of the client (KIP-368).

A timer reports to the link when the session is due. The link logs in when it has the next request to send, as
Kafka's clients do; an idle link does not log in.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from kustos.client import ClientError, ProtocolViolationError, SaslSession, one_shot
from kustos.wire import (
    MalformedMessageError,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_header_is_flexible,
)

CLIENT_ID: Final = "kustos"

FIRST_CORRELATION_ID: Final = 2**31 - 8
"""Kafka's clients reserve the last eight for logins. Answers arrive in order here, so these ids only help to
read recorded traffic."""

CORRELATION_IDS: Final = 8


class Renewable(Protocol):
    """The link."""

    def fell_due(self) -> None:
        """Record that the next request must wait for a login."""

    def renewed(self) -> None:
        """Continue after the login."""

    def renewal_failed(self, reason: str) -> None:
        """End the link: the broker takes no more requests."""


class SessionRenewal:
    """Prolongs the session of one link. `write` sends bytes to the broker."""

    __slots__ = ("_answer", "_link", "_sent", "_session", "_task", "_timer", "_write")

    def __init__(self, session: SaslSession, link: Renewable, write: Callable[[bytes], object]) -> None:
        self._session: Final = session
        self._link: Final = link
        self._write: Final = write
        self._task: asyncio.Task[None] | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sent = 0
        self._schedule()

    def _schedule(self) -> None:
        due_at_s = self._session.due_at_s
        if due_at_s is not None:
            self._timer = asyncio.get_running_loop().call_at(due_at_s, self._fall_due)

    def _fall_due(self) -> None:
        self._timer = None
        self._link.fell_due()

    @property
    def is_due(self) -> bool:
        """Whether the next request must wait for a login."""
        return self._timer is None and self._session.due_at_s is not None

    def begin(self) -> None:
        """Log in; no other request may be in flight until the link knows the outcome."""
        self._task = one_shot("upstream-renewal", self._run(), self._broke)

    async def _run(self) -> None:
        failure = None
        try:
            await self._session.begin(self._exchange)
        except ClientError as error:
            failure = str(error)
        self._task = None
        if failure is None:
            self._schedule()
            self._link.renewed()
        else:
            self._link.renewal_failed(failure)

    def _broke(self, _: BaseException) -> None:
        """End the link after a bug of the gateway, rather than leave its client waiting."""
        self._task = None
        self._link.renewal_failed("an internal error, see the log above")

    async def _exchange(self, api_key: int, version: int, body: bytes) -> bytes:
        correlation_id = FIRST_CORRELATION_ID + self._sent % CORRELATION_IDS
        self._sent += 1
        self._answer = asyncio.get_running_loop().create_future()
        codec = request_codec(api_key, version)
        self._write(request_frame(codec, api_key, correlation_id, CLIENT_ID, body))
        frame = await self._answer
        is_flexible = response_header_is_flexible(api_key, response_codec(api_key, version))
        try:
            answered_id, body_at = read_response_header(frame, is_flexible)
        except MalformedMessageError as error:
            raise ProtocolViolationError(f"upstream broke the protocol: {error}") from None
        if answered_id != correlation_id:
            raise ProtocolViolationError("upstream broke the protocol: an answer came out of order")
        return frame[body_at:]

    def take(self, frame: bytes) -> None:
        """Take an answer of the login; raise `MalformedMessageError` for an unexpected one."""
        if self._answer is None or self._answer.done():
            raise MalformedMessageError("an answer came that no request awaits")
        self._answer.set_result(frame)

    def stop(self) -> None:
        """Stop the timer and the login."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None
