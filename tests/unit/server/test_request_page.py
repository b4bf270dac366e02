"""The page on the way of a request names files and functions: a node goes through them in that order."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import kustos
from kustos.wire import ApiKey
from testkit.gateway.admin_node import admin_node
from testkit.protocol.random_requests import batch

SOURCES = Path(kustos.__file__).parent
PAGE = SOURCES.parents[1] / "docs" / "explanation" / "request.md"
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`: .+$", re.MULTILINE)

Step = tuple[str, str]


def way(title: str) -> list[Step]:
    """Return the steps below a line of the page."""
    text = PAGE.read_text().partition(f"\n{title}:\n\n")[2].partition("\n\n")[0]
    found = STEP.findall(text)
    assert len(found) == len(text.splitlines()) > 5, f"lines below `{title}` are no steps"
    return found


class Trace:
    """Which functions of kustos were entered, in order."""

    def __init__(self) -> None:
        self.calls: list[Step] = []

    def note(self, frame: FrameType, event: str, _argument: Any) -> None:
        path, code = frame.f_code.co_filename, frame.f_code
        if event == "call" and path.startswith(str(SOURCES)):
            self.calls.append((path[len(str(SOURCES)) + 1 :], code.co_qualname))

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


async def test_produce_and_its_audit_event_go_the_way_that_the_page_says(tmp_path: Path) -> None:
    trace = Trace()
    audit: dict[str, Any] = {"kustos_audit_sinks": "json", "kustos_audit_json_dir": str(tmp_path / "audit")}
    record = {"index": 0, "records": batch()}
    async with admin_node(tmp_path, **audit) as node:
        talker = await node.talk("admin", admin=False)
        with trace.running():
            await talker.ask(
                ApiKey.PRODUCE,
                9,
                transactional_id=None,
                acks=1,
                timeout=1_000,
                topic_data=[{"name": "t", "partition_data": [record]}],
            )
            # the sink writes on a thread of its own
            while trace.missed(way("The audit event of the Produce")):
                await talker.ask(ApiKey.API_VERSIONS, 0)
    assert not trace.missed(way("A Produce that is allowed"))
    assert not trace.missed(way("The audit event of the Produce"))


async def test_create_acls_goes_the_way_that_the_page_says(tmp_path: Path) -> None:
    trace = Trace()
    acl = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:x"}
    async with admin_node(tmp_path) as node:
        talker = await node.talk("admin", admin=False)
        with trace.running():
            creation = acl | {"host": "*", "operation": 3, "permission_type": 3}
            answer = await talker.ask(ApiKey.CREATE_ACLS, 3, creations=[creation])
    assert answer.results[0].error_code == 0
    assert not trace.missed(way("A CreateAcls"))
