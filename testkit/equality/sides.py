"""Two sides that must answer alike: a broker that authorizes itself, and kustos before one that does not.

A side is asked over bare sockets, one a user, so that nothing stands between the table of cases and the
bytes that come back; a closed connection is an answer too.
"""

import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from kustos.wire import (
    Message,
    MessageCodec,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_header_is_flexible,
)
from kustos.wire.api_keys import ApiKey

ANSWER_TIMEOUT_S = 60.0
"""Everything asked here is answered within milliseconds; a side that hangs has failed."""


class NoAnswerError(Exception):
    """A side kept the connection open and said nothing."""


@dataclass(slots=True)
class Side:
    """One side: where it listens, who can log in, and what its topic ids stand for."""

    name: str
    bootstrap: str
    users: dict[str, str]
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    cluster_id: str = ""
    links: dict[str, socket.socket] = field(default_factory=dict)
    correlation_id: int = 0

    def link(self, user: str) -> socket.socket:
        """Return the user's connection, made and logged in if there is none."""
        if user not in self.links:
            host, _, port = self.bootstrap.rpartition(":")
            self.links[user] = socket.create_connection((host, int(port)), ANSWER_TIMEOUT_S)
            self.links[user].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            token = b"\0" + user.encode() + b"\0" + self.users[user].encode()
            for api, fields in (
                (ApiKey.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
                (ApiKey.SASL_AUTHENTICATE, {"auth_bytes": token}),
            ):
                codec = request_codec(api, 1)
                answer = self.ask(user, api, codec, codec.new(**fields))
                if answer is None or answer.error_code != 0:
                    raise NoAnswerError(f"{self.name} refuses the login of `{user}`")
        return self.links[user]

    def hang_up(self, user: str) -> None:
        """Close the user's connection."""
        link = self.links.pop(user, None)
        if link is not None:
            link.close()

    def send(self, user: str, api: int, codec: MessageCodec, message: Message, client_id: str | None) -> None:
        """Send a request."""
        self.send_body(user, api, codec, codec.encode(message), client_id)

    def send_body(self, user: str, api: int, codec: MessageCodec, body: bytes, client_id: str | None) -> None:
        """Send a request whose body may be anything."""
        self.link(user)
        self.correlation_id += 1
        frame = request_frame(codec, api, self.correlation_id, client_id, body)
        self.send_frame(user, frame)

    def send_frame(self, user: str, frame: bytes) -> None:
        """Send bytes; that the other end is gone shows when its answer is awaited."""
        try:
            self.link(user).sendall(frame)
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self, user: str) -> bytes | None:
        """Return the next frame without its length, None where the connection was closed."""
        try:
            head = self._read(user, 4)
            if head is None:
                return None
            return self._read(user, struct.unpack(">i", head)[0])
        except TimeoutError:
            raise NoAnswerError(f"{self.name} says nothing to `{user}`") from None

    def _read(self, user: str, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                piece = self.links[user].recv(count - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                self.hang_up(user)
                return None
            data += piece
        return data

    def answer(self, user: str, api: int, version: int) -> Message | None:
        """Return the answer to a request of this version, None where the connection was closed."""
        frame = self.receive(user)
        if frame is None:
            return None
        codec = response_codec(api, version)
        correlation_id, body_at = read_response_header(frame, response_header_is_flexible(api, codec))
        if correlation_id != self.correlation_id:
            raise NoAnswerError(f"{self.name} answers {correlation_id}, asked was {self.correlation_id}")
        message, had_unknown_tags = codec.decode(frame, body_at)
        if had_unknown_tags:
            raise NoAnswerError(f"{self.name} answers API {api} with fields that nobody knows")
        return message

    def ask(self, user: str, api: int, codec: MessageCodec, message: Message) -> Message | None:
        """Send a request and return its answer."""
        self.send(user, api, codec, message, "set-up")
        return self.answer(user, api, codec.version)

    def learn_topics(self, user: str) -> dict[str, int]:
        """Learn the topics and their ids from a user who sees them all; return their partition counts."""
        codec = request_codec(ApiKey.METADATA, 12)
        answer = self.ask(user, ApiKey.METADATA, codec, codec.new(topics=None))
        if answer is None:
            raise NoAnswerError(f"{self.name} closes the connection of `{user}`")
        self.cluster_id = answer.cluster_id
        self.topic_ids = {topic.name: topic.topic_id for topic in answer.topics}
        return {topic.name: len(topic.partitions) for topic in answer.topics}

    def close(self) -> None:
        """Close all connections."""
        for user in list(self.links):
            self.hang_up(user)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class GrowingLog:
    """A log file that is read piece by piece, as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0

    def new_lines(self) -> list[str]:
        """Return the whole lines written since the last call."""
        with self.path.open("rb") as log:
            log.seek(self.position)
            data = log.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.position += len(whole)
        return whole.decode().splitlines()
