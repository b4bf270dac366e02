"""Kafka's own parser of requests as a child process that reads frames."""

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from testkit.kafka.compiled import java_program
from testkit.processes import ChildError, spawn

PROBE: Final = Path(__file__).with_name("RequestProbe.java")
LENGTH_BYTES: Final = 4


class TheirRequest(NamedTuple):
    """What Kafka reads in a frame.

    `canonical`: header and body, written again without the tagged fields that nobody knows; None for a frame
    that it refuses. `is_transactional`: whether the records of a Produce are in a transaction; None if its
    batches cannot be read. `refusal`: why a frame is refused.
    """

    canonical: bytes | None
    is_transactional: bool | None = False
    refusal: str = ""


class RequestProbe:
    """Kafka's parser; close it, or leave its context."""

    def __init__(self) -> None:
        self._child = spawn(java_program(PROBE, peak=True), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._child.stdin is None or self._child.stdout is None:
            raise ChildError("the probe has no pipes")
        self._in: Final[IO[bytes]] = self._child.stdin
        self._out: Final[IO[bytes]] = self._child.stdout

    def read(self, frames: Sequence[bytes]) -> list[TheirRequest]:
        """Return what Kafka reads in each frame; frames have no length."""
        data = b"".join(
            part for frame in frames for part in (len(frame).to_bytes(LENGTH_BYTES, "big"), frame)
        )
        # the probe answers while it reads, and a pipe holds little
        writer = threading.Thread(target=self._write, args=(data,))
        writer.start()
        answers = [self._answer() for _ in frames]
        writer.join()
        return answers

    def read_one(self, frame: bytes) -> TheirRequest:
        """Return what Kafka reads in a small frame."""
        self._write(len(frame).to_bytes(LENGTH_BYTES, "big") + frame)
        return self._answer()

    def _write(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def _answer(self) -> TheirRequest:
        head = self._out.read(LENGTH_BYTES)
        if len(head) < LENGTH_BYTES:
            raise ChildError("the probe of Kafka's parser has ended")
        answer = self._out.read(int.from_bytes(head, "big"))
        if answer[0] == 0:
            return TheirRequest(None, refusal=answer[1:].decode("utf-8", "replace"))
        return TheirRequest(answer[2:], {0: False, 1: True}.get(answer[1]))

    def close(self) -> None:
        """End the child."""
        self._in.close()
        self._child.wait()
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
