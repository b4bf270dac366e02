"""Theorems about batches of audit events: however they are split, each event occurs once and in order."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.audit.batches import (
    BATCH_MAX_BYTES,
    EVENT_MAX_BYTES,
    TEXT_MAX_CHARACTERS,
    EventBatch,
    EventRecord,
    batches_of,
)

NAMES = st.builds(
    lambda piece, count: piece * count, st.text("aé€\n🎈", min_size=1, max_size=3), st.integers(1, 150_000)
)
EVENTS = st.lists(NAMES | st.text(max_size=20), min_size=1, max_size=12)
SHORTENED_MAX_BYTES = 8 * 1024


def records_of(names: list[str]) -> list[EventRecord]:
    lines = [json.dumps({"at": at, "rule": {"name": name}}) for at, name in enumerate(names)]
    return [EventRecord.of("User:alice", line, at) for at, line in enumerate(lines)]


def places(batches: list[EventBatch]) -> list[int]:
    return [json.loads(record.line)["at"] for batch in batches for record in batch.records]


@given(names=EVENTS)
def test_every_event_is_in_one_batch_in_order_and_no_batch_is_too_large(names: list[str]) -> None:
    records = records_of(names)
    assert all(record.size_bytes <= EVENT_MAX_BYTES for record in records)
    batches = list(batches_of(records))
    assert places(batches) == list(range(len(names)))
    for batch in batches:
        assert sum(record.size_bytes for record in batch.records) <= BATCH_MAX_BYTES


@given(names=EVENTS, limit=st.integers(SHORTENED_MAX_BYTES, 100_000))
def test_halving_a_batch_keeps_every_event_in_order(names: list[str], limit: int) -> None:
    waiting, taken = list(batches_of(records_of(names))), list[EventBatch]()
    while waiting:
        if len(waiting[0].encoded) <= limit:
            taken.append(waiting.pop(0))
        else:
            waiting[:1] = waiting[0].smaller()
    assert places(taken) == list(range(len(names)))
    for record in (record for batch in taken for record in batch.records):
        name, whole = json.loads(record.line)["rule"]["name"], names[record.time_ms]
        kept = whole if len(whole) <= TEXT_MAX_CHARACTERS else whole[:TEXT_MAX_CHARACTERS]
        assert name.startswith(kept) if record.is_shortened else name == whole
