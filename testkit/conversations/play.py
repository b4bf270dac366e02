"""Plays a conversation to one side over a real socket, and writes down what it hears and how it ends."""

import math
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from testkit.conversations.answers import THE_END, Asked, Heard, heard
from testkit.conversations.documents import Conversation, Step
from testkit.conversations.speaker import Speaker

PATIENCE_S: Final = 60.0
"""How long an answer may take on a crowded machine; a side that says nothing where the other does fails."""

LAST_WORDS: Final = Step("versions", 0, {"correlation_id": 99})
"""Said at the end of every conversation: what a side answers tells whether it still listens, and to whom."""


@dataclass(frozen=True, slots=True)
class Side:
    """A server: an address for each listener, its own tokens, the TLS contexts of clients, its process."""

    name: str
    addresses: Mapping[str, str]
    secrets: Mapping[str, str]
    tls: Mapping[str, ssl.SSLContext] = field(default_factory=dict)
    pid: int = 0


class Line:
    """A blocking connection that speaks bytes and hears frames."""

    def __init__(self, address: str, context: ssl.SSLContext | None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        if context is not None:
            self._socket = context.wrap_socket(self._socket)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes, unless the other side is gone: then the next answer says so."""
        try:
            self._socket.sendall(data)
        except (ConnectionError, ssl.SSLError):
            return

    def end(self) -> None:
        """Say that no more will come."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def receive(self) -> bytes | None:
        """Return a frame without its length, None if the connection ended."""
        head = self._exactly(4)
        return None if head is None else self._exactly(int.from_bytes(head))

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except (ConnectionError, ssl.SSLError):
                return None
            if not more:
                return None
            data += more
        return data

    def listen_for(self, seconds: float) -> bytes | None:
        """Return what comes unasked in this time, None if nothing does."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(65_536)
        except TimeoutError:
            return None
        except (ConnectionError, ssl.SSLError):
            return b""
        finally:
            self._socket.settimeout(PATIENCE_S)


SLACK_MS: Final = 200
"""More than the lifetime that the server told: its clock began before ours."""

PLAYS_MAX: Final = 20
"""How often a conversation is begun that outlived its session: on a crowded machine a second is not long."""


class OutlivedError(Exception):
    """The session may have ended before the last answer, which then says something about the machine."""


def play(conversation: Conversation, side: Side) -> list[Heard]:
    """Return every answer in order; the last is `THE_END`, or the answer to `LAST_WORDS`.

    Raise `OutlivedError` where no session lasted until its next answer came, `PLAYS_MAX` times.
    """
    for _ in range(PLAYS_MAX - 1):
        try:
            return _played(conversation, side)
        except OutlivedError:
            continue
    return _played(conversation, side)


def _played(conversation: Conversation, side: Side) -> list[Heard]:
    speaker = Speaker(side.secrets)
    context = None
    if conversation.listener != "SASL_PLAINTEXT" and not conversation.tls.get("none", False):
        context = side.tls[conversation.tls.get("client", "alice")]
    try:
        line = Line(side.addresses[conversation.listener], context)
    except ssl.SSLError as error:
        return [Heard(b"", f"no TLS: {error.reason}")]
    except ConnectionError:
        return [THE_END]
    with line:
        return _converse(line, speaker, (*conversation.steps, LAST_WORDS))


def _converse(line: Line, speaker: Speaker, steps: Sequence[Step]) -> list[Heard]:
    answers: list[Heard] = []
    lifetime_ms, ends_s = 0, math.inf
    for step in steps:
        saying = speaker.say(step)
        if saying.waits:
            unasked = line.listen_for((lifetime_ms + SLACK_MS) / 1000)
            if unasked is not None:
                return [*answers, Heard(unasked, "unasked")]
            ends_s = math.inf
            continue
        sent_s = time.monotonic()
        line.send(saying.data)
        if saying.ends:
            line.end()
        for asked in saying.awaits:
            answer = _answer(line, speaker, asked)
            if time.monotonic() >= ends_s:
                raise OutlivedError(f"a session of {lifetime_ms} ms ended meanwhile")
            answers.append(answer)
            if answer == THE_END:
                return answers
            if answer.lifetime_ms > 0:
                # the server's clock began after this
                lifetime_ms, ends_s = answer.lifetime_ms, sent_s + answer.lifetime_ms / 1000
    return answers


def _answer(line: Line, speaker: Speaker, asked: Asked) -> Heard:
    frame = line.receive()
    if frame is None:
        return THE_END
    answer = heard(asked, frame, speaker.reading)
    speaker.listen(answer.token)
    return answer
