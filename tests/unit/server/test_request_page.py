"""The page on processing a request names files and functions: a node runs them in that order."""

import re
from pathlib import Path
from typing import Any

from kustos.wire import ApiKey
from testkit.gateway.admin_node import admin_node
from testkit.gateway.function_trace import SOURCES, Step, Trace, produce, repeated_produce

PAGE = SOURCES.parents[1] / "docs" / "explanation" / "request.md"
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`: .+$", re.MULTILINE)


def way(title: str) -> list[Step]:
    """Return the steps below a line of the page."""
    text = PAGE.read_text().partition(f"\n{title}:\n\n")[2].partition("\n\n")[0]
    found = STEP.findall(text)
    assert len(found) == len(text.splitlines()) > 5, f"lines below `{title}` are no steps"
    return found


async def test_produce_and_its_audit_event_go_the_way_that_the_page_says(tmp_path: Path) -> None:
    trace = Trace()
    audit: dict[str, Any] = {"kustos_audit_sinks": "json", "kustos_audit_json_dir": str(tmp_path / "audit")}
    async with admin_node(tmp_path, **audit) as node:
        talker = await node.talk("admin", admin=False)
        with trace.running():
            await produce(talker)
            # the sink writes on a thread of its own
            while trace.missed(way("The audit event of the Produce")):
                await talker.ask(ApiKey.API_VERSIONS, 0)
    assert not trace.missed(way("A Produce that is allowed"))
    assert not trace.missed(way("The audit event of the Produce"))


async def test_a_repeated_produce_goes_the_way_that_the_page_says(tmp_path: Path) -> None:
    trace = await repeated_produce(tmp_path)
    assert not trace.missed(way("A Produce that repeats it"))


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
