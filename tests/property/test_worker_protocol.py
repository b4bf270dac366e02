"""Theorems about the worker protocol: a message arrives unchanged, or not at all."""

import asyncio
import gc
import struct
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding, KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, KafkaApiError
from kustos.client.quorum import Forwarded
from kustos.gateway.store.source import Submitted
from kustos.gateway.workers import messages
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.errors import ChannelError
from kustos.gateway.workers.messages import FROM_WORKER, FROM_WRITER, IN_ORDER, Table, decode, encode
from kustos.gateway.workers.requests import answer_of, failure_of, request_of, submit_of, submitted_of
from kustos.gateway.workers.store import WorkerStore
from kustos.metadata.control import TokenRules
from kustos.metadata.image import (
    AclAdded,
    AclIdRemoved,
    AclRemoved,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    image_of,
)
from kustos.metadata.log import MAX_BATCH_SIZE_BYTES, MetaProperties
from kustos.metadata.log import snapshot as snapshot_module
from kustos.metadata.log.snapshot import snapshot_pieces
from kustos.metadata.records import (
    BeginTransactionRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    LeaderChange,
    MetadataRecord,
    control_batch,
    encode_record,
)
from kustos.wire import ApiKey, ErrorCode, encoded_batch_of, request_codec, response_codec
from tests.property.test_metadata_theorems import State, logs

INT32: Final = st.integers(0, 2**31 - 1)
INT64: Final = st.integers(-(2**63), 2**63 - 1)
TEXT: Final = st.text(max_size=12)
DATA: Final = st.binary(max_size=24)
TABLES: Final = st.dictionaries(TEXT, TEXT, max_size=3)
OF_WRITER: Final[dict[type[Any], st.SearchStrategy[Any]]] = {
    messages.Welcome: st.builds(messages.Welcome, INT32, TEXT, INT32, st.none() | TEXT, TABLES),
    messages.SnapshotBatch: st.builds(messages.SnapshotBatch, INT64, INT32, DATA),
    messages.LogBatch: st.builds(messages.LogBatch, DATA),
    messages.Current: st.builds(messages.Current, INT64),
    messages.QuorumLost: st.just(messages.QuorumLost()),
    messages.OpenListeners: st.builds(messages.OpenListeners, INT64),
    messages.ChangeAnswer: st.builds(
        messages.ChangeAnswer, INT64, st.none() | INT64, st.none() | TEXT, st.none() | TEXT, DATA
    ),
    messages.CloseConnection: st.builds(messages.CloseConnection, INT64, TEXT),
    messages.LoginFailed: st.builds(messages.LoginFailed, TEXT),
    messages.Look: st.builds(messages.Look, INT64, st.booleans()),
    messages.Reload: st.builds(messages.Reload, TABLES),
    messages.Fence: st.builds(messages.Fence, TEXT),
    messages.Stop: st.just(messages.Stop()),
    messages.Levels: st.builds(messages.Levels, TABLES),
    messages.Drain: st.builds(messages.Drain, INT64),
}
OF_WORKER: Final[dict[type[Any], st.SearchStrategy[Any]]] = {
    messages.Applied: st.builds(messages.Applied, INT64),
    messages.Serving: st.just(messages.Serving()),
    messages.Submit: st.builds(messages.Submit, INT64, DATA),
    messages.Arrived: st.builds(messages.Arrived, INT64, TEXT),
    messages.LoginFailed: st.builds(messages.LoginFailed, TEXT),
    messages.Left: st.builds(messages.Left, INT64),
    messages.WorkerStatus: st.builds(
        messages.WorkerStatus, INT64, st.dictionaries(TEXT, st.booleans(), max_size=3), DATA
    ),
    messages.Fenced: st.just(messages.Fenced()),
    messages.Drained: st.builds(messages.Drained, INT64, st.booleans()),
    messages.Progress: st.builds(messages.Progress, INT64),
}
SIDES: Final = st.one_of(
    st.tuples(st.just(FROM_WRITER), st.lists(st.one_of(*OF_WRITER.values()), max_size=5)),
    st.tuples(st.just(FROM_WORKER), st.lists(st.one_of(*OF_WORKER.values()), max_size=5)),
)


def received(table: Table, pieces: list[bytes]) -> tuple[list[object], list[str]]:
    """Return the messages that a channel parses from these pieces, and the reason for its end, if any."""
    said: list[object] = []
    lost: list[str] = []
    channel = Channel(table, said.append, lost.append)
    for piece in pieces:
        channel.data_received(piece)
    return said, lost


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


@given(side=SIDES, sizes=st.lists(st.integers(1, 40), max_size=20))
def test_messages_of_a_stream_cut_anywhere_arrive_in_order(
    side: tuple[Table, list[object]], sizes: list[int]
) -> None:
    table, said = side
    stream = b"".join(map(encode, said))
    assert received(table, cut(stream, sizes)) == (said, [])


@given(side=SIDES.filter(lambda side: bool(side[1])), data=st.data())
def test_a_message_with_a_truncated_head_is_refused(
    side: tuple[Table, list[object]], data: st.DataObject
) -> None:
    table, said = side
    frame = encode(said[0])[4:]
    head_end = 4 + int.from_bytes(frame[:4], "big")
    with pytest.raises(ChannelError):
        decode(table, frame[: data.draw(st.integers(0, head_end - 1))])
    if not hasattr(said[0], messages.PAYLOAD):
        with pytest.raises(ChannelError):
            decode(table, frame + data.draw(st.binary(min_size=1, max_size=4)))


HEADS: Final = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"[]",
            b"{}",
            b"null",
            b"[1]",
            b'["Fence",{}]',
            b'["Fence",{"reason":1}]',
            b'["Fence",{"reason":"a","more":1}]',
            b'["Fence",["reason"]]',
            b'["Look",{"id":1,"wants_metrics":1}]',
            b'["Look",{"id":true,"wants_metrics":true}]',
            b'["Levels",{"levels":{"a":1}}]',
            b'[["Stop"],{}]',
            b"[" * 5_000,
        ]
    ),
)


@given(head=HEADS, rest=st.binary(max_size=10), side=st.sampled_from([FROM_WRITER, FROM_WORKER]))
def test_any_bytes_are_a_message_or_end_the_channel(head: bytes, rest: bytes, side: Table) -> None:
    frame = struct.pack(">I", len(head)) + head + rest
    said, lost = received(side, [struct.pack(">i", len(frame)) + frame])
    assert len(said) + len(lost) == 1
    if said:
        assert decode(side, encode(said[0])[4:]) == said[0]


@pytest.mark.parametrize("side", [FROM_WRITER, FROM_WORKER])
def test_neither_side_takes_a_message_that_only_the_other_side_may_send(side: Table) -> None:
    of_worker, of_writer = encode(messages.Fenced()), encode(messages.Stop())
    frames = [of_writer, of_worker] if side is FROM_WORKER else [of_worker, of_writer]
    said, lost = received(side, frames)
    assert said == []
    assert len(lost) == 1


def test_a_frame_over_the_limit_ends_the_channel_before_its_bytes_arrive() -> None:
    said, lost = received(FROM_WORKER, [struct.pack(">i", messages.FRAME_MAX_BYTES + 1)])
    assert said == []
    assert len(lost) == 1


def test_a_message_beyond_the_limit_is_not_sent() -> None:
    with pytest.raises(ChannelError, match="longer than"):
        encode(messages.LogBatch(bytes(messages.FRAME_MAX_BYTES)))


def test_every_batch_of_a_log_or_snapshot_fits_a_frame() -> None:
    assert len(encode(messages.SnapshotBatch(1, 1, bytes(MAX_BATCH_SIZE_BYTES)))) < messages.FRAME_MAX_BYTES


def test_the_tests_cover_every_message_of_the_tables() -> None:
    assert OF_WRITER.keys() == set(FROM_WRITER.values())
    assert OF_WORKER.keys() == set(FROM_WORKER.values())


SAID: Final = st.one_of(
    *(OF_WRITER[each] for each in (*IN_ORDER, messages.Look, messages.ChangeAnswer, messages.Fence))
)


async def settled(channel: Channel) -> None:
    while channel._working is not None:
        await asyncio.wait([channel._working])


@given(said=st.lists(SAID, max_size=8), slow=st.sets(st.integers(0, 7)), data=st.data())
def test_the_log_keeps_its_order_and_all_other_messages_arrive(
    said: list[object], slow: set[int], data: st.DataObject
) -> None:
    done: list[object] = []
    begun: list[object] = []

    def on_message(message: object) -> Awaitable[None] | None:
        begun.append(message)
        if isinstance(message, messages.LogBatch) and len(begun) in slow:
            return work(message)
        done.append(message)
        return None

    async def work(message: object) -> None:
        # a message begun earlier is finished earlier
        assert begun[-1] is message or not isinstance(begun[-1], IN_ORDER)
        await asyncio.sleep(0)
        done.append(message)

    async def receive() -> None:
        channel = Channel(FROM_WRITER, on_message, lost.append)
        stream = b"".join(map(encode, said))
        for piece in cut(stream, data.draw(st.lists(st.integers(1, 40), max_size=10))):
            channel.data_received(piece)
            await asyncio.sleep(0)
        await settled(channel)

    lost: list[str] = []
    asyncio.run(receive())
    assert lost == []
    assert sorted(map(repr, done)) == sorted(map(repr, said))
    in_order = [each for each in said if isinstance(each, IN_ORDER)]
    assert [each for each in done if isinstance(each, IN_ORDER)] == in_order


def test_a_failing_message_ends_the_channel_and_later_ones_are_dropped() -> None:
    done: list[object] = []
    lost: list[str] = []

    async def fail() -> None:
        raise RuntimeError("no")

    def on_message(message: object) -> Awaitable[None] | None:
        done.append(message)
        return fail() if len(done) == 1 else None

    async def receive() -> None:
        channel = Channel(FROM_WRITER, on_message, lost.append)
        for _ in range(2):
            channel.data_received(encode(messages.LogBatch(b"")))
        await settled(channel)

    asyncio.run(receive())
    assert (len(done), len(lost)) == (1, 1)


NAMES: Final = st.sampled_from(["User:a", "User:b"])
SOME_TOKENS: Final = st.builds(
    DelegationTokenRecord,
    NAMES,
    NAMES,
    st.lists(NAMES, max_size=3).map(tuple),
    INT64,
    INT64,
    INT64,
    st.sampled_from(["x", "y"]),
)


def known(log: tuple[list[MetadataRecord], State]) -> list[MetadataRecord]:
    """Return the records of a log without levels of features, which may be unknown."""
    return [each for each in log[0] if not isinstance(each, FeatureLevelRecord)]


class Follower:
    """Keeps the ACLs of the log, as an authorizer does: by its changes."""

    def __init__(self, acls: dict[UUID, AclBinding]) -> None:
        self._acls: Final = acls

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Replace all ACLs."""
        self._acls.clear()
        self._acls.update(image.acls)

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Apply the changes."""
        for change in delta.changes:
            match change:
                case AclAdded(acl_id, binding):
                    assert acl_id not in self._acls
                    self._acls[acl_id] = binding
                case AclIdRemoved(acl_id):
                    del self._acls[acl_id]
                case AclRemoved():
                    raise AssertionError(change)


def loaded(records: list[MetadataRecord], size: int = 1024) -> WorkerStore:
    """Return the store of a worker that got the snapshot of these records, ending at offset 7."""
    image = image_of(records, 7, 3)
    store = WorkerStore(MetaProperties("cluster", 1), TokenRules())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_module, "MAX_RECORDS_PER_BATCH", size)
        pieces = list(snapshot_pieces(image.records(), epoch=3, timestamp_ms=0))
    for number, piece in enumerate(pieces, start=1):
        assert store.take_snapshot(messages.SnapshotBatch(8, 3, piece)) is (number == len(pieces))
    return store


@given(
    log=logs(),
    tokens=st.lists(SOME_TOKENS, max_size=4),
    size=st.integers(1, 4),
    again=st.booleans(),
)
def test_a_worker_starts_with_the_image_of_the_writer(
    log: tuple[list[MetadataRecord], State], tokens: list[DelegationTokenRecord], size: int, again: bool
) -> None:
    records = [*known(log), *tokens]
    store = loaded(records, size)
    if again:
        # a quorum may replace the whole state
        for piece in snapshot_pieces(image_of(records).records(), epoch=3, timestamp_ms=0):
            store.take_snapshot(messages.SnapshotBatch(8, 3, piece))
    assert store.image.same_state(image_of(records))
    assert (store.image.offset, store.image.epoch) == (7, 3)
    assert gc.isenabled()


@given(
    log=logs(),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    spans=st.none() | st.tuples(st.integers(0, 20), st.integers(1, 9)),
)
def test_a_worker_that_applies_the_log_has_its_state(
    log: tuple[list[MetadataRecord], State], sizes: list[int], spans: tuple[int, int] | None
) -> None:
    records = known(log)
    if spans is not None:
        # a metadata transaction may begin in one batch and end in a later one
        begin, length = spans
        begin = min(begin, len(records))
        records.insert(begin, BeginTransactionRecord("n"))
        records.insert(begin + length, EndTransactionRecord())
    store, builder, offset, at = loaded([]), ImageBuilder(), 8, 0
    snapshot_batches = store.steps
    assert snapshot_batches > 0
    while at < len(records):
        size = sizes[at % len(sizes)]
        if size == 1:
            leader = control_batch(offset, 4, 0, (LeaderChange(1, (1,), (1,)),))
            store.take_batch(messages.LogBatch(leader.encode()))
            offset += 1
        values = [encode_record(each) for each in records[at : at + size]]
        builder.replay_all(records[at : at + size])
        at += size
        store.take_batch(messages.LogBatch(encoded_batch_of(offset, 4, 0, values)))
        offset += len(values)
        assert builder.in_transaction or store.last_offset == offset - 1
    assert store.image.same_state(builder.build(0, 0))
    assert store.steps == snapshot_batches + len(records)


@given(log=logs(), snapshot=st.integers(0, 20))
def test_the_changes_of_a_worker_that_holds_no_acls_are_the_ones_of_the_log(
    log: tuple[list[MetadataRecord], State], snapshot: int
) -> None:
    records = known(log)
    acls: dict[UUID, AclBinding] = {}
    store, builder, follower = loaded([]), ImageBuilder(), Follower(acls)
    store.add_publisher(follower)
    store.complete()
    for number, record in enumerate(records):
        if number == snapshot:
            # a quorum may replace the whole state
            for piece in snapshot_pieces(builder.view().records(), epoch=3, timestamp_ms=0):
                store.take_snapshot(messages.SnapshotBatch(8 + number, 3, piece))
        builder.replay(record)
        store.take_batch(messages.LogBatch(encoded_batch_of(8 + number, 4, 0, [encode_record(record)])))
        assert not store.image.acls
        assert not store.image.acl_ids
    image = builder.build(0, 0)
    assert acls == dict(image.acls)
    assert store.image.same_state(replace(image, acls={}, acl_ids={}))
    with pytest.raises(RuntimeError, match="ACLs"):
        store.add_publisher(follower)


PRINCIPALS: Final = st.builds(KafkaPrincipal, TEXT, TEXT, st.booleans())
HOSTS: Final = st.ip_addresses().map(str)


@given(principal=PRINCIPALS, host=HOSTS, client=st.none() | TEXT, hmac=DATA, number=INT32)
def test_a_change_and_its_answer_arrive_in_their_envelopes(
    principal: KafkaPrincipal, host: str, client: str | None, hmac: bytes, number: int
) -> None:
    message = request_codec(ApiKey.RENEW_DELEGATION_TOKEN, 2).new(hmac=hmac, renew_period=5)
    context = AuthorizableRequestContext(
        principal, host, client_id=client, request_type=39, request_version=2, correlation_id=number
    )
    request = Forwarded(ApiKey.RENEW_DELEGATION_TOKEN, 2, message, context)
    found = request_of(decode(FROM_WORKER, encode(submit_of(number, request))[4:]))
    assert found == request
    answer = response_codec(ApiKey.RENEW_DELEGATION_TOKEN, 2).new(expiry_timestamp=9)
    done = Submitted(answer, 7, "token")
    assert submitted_of(decode(FROM_WRITER, encode(answer_of(number, found, done))[4:]), request) == done
    with pytest.raises(KafkaApiError) as raised:
        submitted_of(failure_of(number, KafkaApiError(ErrorCode.request_timed_out, "late")), request)
    assert (raised.value.code, raised.value.message) == (ErrorCode.request_timed_out, "late")


@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_change_or_are_refused(data: bytes) -> None:
    try:
        request_of(messages.Submit(1, data))
    except ChannelError:
        return
