"""A log in which use beyond a budget is summed up is counted like one with an event for each decision."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.acl import AclOperation
from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.audit.events import RequestEvents
from kustos.gateway.audit.summaries import SUMMARY_MS, DecisionBudgets
from kustos.pipeline.columns.file_parts import FilePart
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.tables.rollup.columns import rolled_up_parts
from kustos.protocol import Decided
from testkit.gateway.audit import ALLOWED, EVENTS, context_of, decided

EVENTS_ARROW = to_arrow_schema(AUDIT_EVENTS_SCHEMA, timezone="UTC")
ROLLUP = to_arrow_schema(AUDIT_ROLLUP_SCHEMA, timezone="UTC")

BEFORE_MIDNIGHT_MS = 1_795_219_200_000 - 4 * SUMMARY_MS


class Request(NamedTuple):
    time_ms: int
    context: AuthorizableRequestContext
    items: tuple[Decided, ...]


def some_requests(random: Random) -> Iterator[Request]:
    """Requests around a midnight and a full hour."""
    rules = [replace(ALLOWED) for _ in range(2)]
    time_ms = BEFORE_MIDNIGHT_MS
    for _ in range(3_000):
        time_ms += random.choice([0, 10, 100, 500])
        context = replace(
            context_of(random.choice(["alice", "bob"])), host=random.choice(["10.0.0.1", "10.0.0.2"])
        )
        items = []
        for name in random.sample(["a", "b", "c", "d"], random.randint(1, 3)):
            item = decided(name, random.choice(rules))
            operation = random.choice([AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER])
            action = replace(item.action, operation=operation, reference_count=random.randint(0, 5))
            items.append(item._replace(action=action, name=random.choice([name, name, None])))
        yield Request(time_ms, context, tuple(items))


def rows_of(time_ms: int, context: AuthorizableRequestContext, items: Sequence[Decided]) -> Iterator[Any]:
    for line in EVENTS.json_lines(RequestEvents(0, time_ms, context, tuple(items), 7)):
        yield {"cluster": "", **json.loads(line)}


def recorded(requests: Sequence[Request], bytes_per_hour: int) -> list[dict[str, Any]]:
    """Return the events of the requests, as a node with this budget writes them."""
    now_ms = 0
    budgets = DecisionBudgets(0, bytes_per_hour, lambda: now_ms)
    rows: list[dict[str, Any]] = []
    for time_ms, context, items in requests:
        now_ms = time_ms
        for each in budgets.summaries.take():
            rows += rows_of(each.time_ms, each.context, [each.decided])
        rows += rows_of(time_ms, context, budgets.admit(context, items, time_ms, 7))
    for each in budgets.summaries.take(is_end=True):
        rows += rows_of(each.time_ms, each.context, [each.decided])
    return rows


def rolled_up(path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parquet.write_table(pa.Table.from_pylist(rows, schema=EVENTS_ARROW), path)
    table = pa.Table.from_batches(rolled_up_parts([FilePart(str(path))]), schema=ROLLUP)
    return sorted(table.drop(["sample_event_id"]).to_pylist(), key=str)


def test_the_roll_up_of_a_summarized_log_is_that_of_the_whole_log(tmp_path: Path, seed: int) -> None:
    requests = list(some_requests(Random(seed)))
    whole = recorded(requests, 2**40)
    assert len(whole) == sum(len(request.items) for request in requests)
    summarized = recorded(requests, 20_000)
    assert len(summarized) < 0.6 * len(whole)
    assert rolled_up(tmp_path / "summarized.parquet", summarized) == rolled_up(
        tmp_path / "whole.parquet", whole
    )
