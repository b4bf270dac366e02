"""The functions of kustos that a request enters, on a real node before a scripted broker."""

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import kustos
from kustos.gateway.metrics import loop_lag
from kustos.wire import ApiKey
from testkit.gateway.admin_node import Talker, admin_node
from testkit.protocol.random_requests import batch
from testkit.waiting import wait_until

SOURCES: Final = Path(kustos.__file__).parent
OURS: Final = f"{SOURCES}/"
LEFT_OUT: Final = (f"{Path(__file__).parents[1]}/", loop_lag.__file__)
"""Beginnings of the files whose calls are left out: the client and the broker of a trace, which run on the
same thread, and the timer of the event loop's lag, which belongs to no request."""

WARM_UP_REQUESTS: Final = 6
"""Requests before one counts as repeated."""

Step = tuple[str, str]
"""A file below `src/kustos`, and the qualified name of a function."""


class Trace:
    """The entered functions of kustos, in order."""

    def __init__(self) -> None:
        self.calls: list[Step] = []

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        path, code = frame.f_code.co_filename, frame.f_code
        if event == "call" and path.startswith(OURS) and not self._is_left_out(frame):
            self.calls.append((path[len(OURS) :], code.co_qualname))

    @staticmethod
    def _is_left_out(frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code.co_qualname != "Handle._run":
            if frame.f_code.co_filename.startswith(LEFT_OUT):
                return True
            frame = frame.f_back
        return False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Trace this thread, and threads that begin meanwhile."""
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def missed(self, steps: list[Step]) -> list[Step]:
        """Return the steps from the first that was not taken after those before it."""
        calls = iter(list(self.calls))
        return next((steps[at:] for at, step in enumerate(steps) if step not in calls), [])


async def produce(talker: Talker) -> None:
    """Write one record to a topic."""
    record = {"index": 0, "records": batch()}
    topics = [{"name": "t", "partition_data": [record]}]
    await talker.ask(ApiKey.PRODUCE, 9, transactional_id=None, acks=1, timeout=1_000, topic_data=topics)


async def repeated_produce(directory: Path) -> Trace:
    """Return the trace of a Produce that repeats others, with its answer and its audit event."""
    trace = Trace()
    audit: dict[str, Any] = {"kustos_audit_sinks": "json", "kustos_audit_json_dir": str(directory / "audit")}
    async with admin_node(directory, **audit) as node:
        talker = await node.talk("admin", admin=False)
        for _ in range(WARM_UP_REQUESTS):
            await produce(talker)
        [writer] = node.node.audit.writers
        await asyncio.to_thread(wait_until, lambda: not writer.depth, what="earlier events are written")
        with trace.running():
            await produce(talker)
            await asyncio.to_thread(wait_until, lambda: not writer.depth, what="its event is written")
    return trace


def functions_of_repeated_produce() -> int:
    """Return how many different functions a repeated Produce enters, with its answer and its audit event."""
    with tempfile.TemporaryDirectory() as directory:
        trace = asyncio.run(repeated_produce(Path(directory)))
    return len(set(trace.calls))
