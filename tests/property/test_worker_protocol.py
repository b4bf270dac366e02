"""Theorems about the worker protocol: a message arrives as it was sent, or not at all."""

import asyncio
import gc
import struct
from collections.abc import Awaitable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kustos.acl import AclBindingFilter, KafkaPrincipal
from kustos.gateway.workers import changes, messages
from kustos.gateway.workers.changes import record_values
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.encoding import ChannelError
from kustos.gateway.workers.messages import FROM_WORKER, FROM_WRITER, decode, encode
from kustos.gateway.workers.store import WorkerStore
from kustos.metadata.control import (
    AclCreated,
    AclsDeleted,
    ApiError,
    ScramAlterResult,
    ScramDeletion,
    ScramUpsertion,
    TokenChangeResult,
    TokenCreateResult,
    TokenCreation,
    TokenExpiry,
    TokenRenewal,
    TokenRules,
)
from kustos.metadata.image import EMPTY_IMAGE, ImageBuilder, image_of
from kustos.metadata.log import MetaProperties
from kustos.metadata.records import (
    ConfigRecord,
    DelegationTokenRecord,
    MetadataRecord,
    RemoveDelegationTokenRecord,
    decode_record,
)
from kustos.metadata.store.requests import AlterScram, CreateAcls, DeleteAcls
from tests.property.test_metadata_theorems import State, bindings, exactly, logs

INT8: Final = st.integers(-128, 127)
INT32: Final = st.integers(0, 2**31 - 1)
INT64: Final = st.integers(-(2**63), 2**63 - 1)
TEXT: Final = st.text(max_size=12)
DATA: Final = st.binary(max_size=24)
PRINCIPALS: Final = st.builds(KafkaPrincipal, TEXT, TEXT, st.booleans())
ERRORS: Final = st.none() | st.builds(ApiError, st.sampled_from(ErrorCode), st.none() | TEXT)
TABLES: Final = st.dictionaries(TEXT, TEXT, max_size=3)
FILTERS: Final = st.just(AclBindingFilter()) | st.builds(exactly, bindings)


def few(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


TOKENS: Final = st.builds(DelegationTokenRecord, TEXT, TEXT, few(TEXT), INT64, INT64, INT64, TEXT)
REQUESTS: Final = st.one_of(
    st.builds(CreateAcls, few(bindings)),
    st.builds(DeleteAcls, few(FILTERS)),
    st.builds(
        AlterScram,
        few(st.builds(ScramDeletion, TEXT, INT8)),
        few(st.builds(ScramUpsertion, TEXT, INT8, INT32, DATA, DATA)),
    ),
    st.builds(TokenCreation, PRINCIPALS, PRINCIPALS, few(PRINCIPALS), INT64),
    st.builds(TokenRenewal, PRINCIPALS, DATA, INT64),
    st.builds(TokenExpiry, PRINCIPALS, DATA, INT64),
)
RESULTS: Final = few(
    st.one_of(
        st.builds(AclCreated, ERRORS, st.none() | INT64),
        st.builds(AclsDeleted, few(bindings), ERRORS, st.none() | INT64),
        st.builds(ScramAlterResult, TEXT, ERRORS),
        st.builds(TokenCreateResult, PRINCIPALS, PRINCIPALS, st.none() | TOKENS, DATA, ERRORS),
        st.builds(TokenChangeResult, INT64, ERRORS),
    )
)
OF_WRITER: Final[dict[type[Any], st.SearchStrategy[Any]]] = {
    messages.Welcome: st.builds(messages.Welcome, INT32, TEXT, INT32, st.none() | st.uuids(), TABLES),
    messages.Records: st.builds(messages.Records, DATA),
    messages.Loaded: st.builds(messages.Loaded, INT64, INT32),
    messages.Delta: st.builds(messages.Delta, INT64, INT32, few(DATA)),
    messages.OpenListeners: st.just(messages.OpenListeners()),
    messages.ChangeResults: st.builds(messages.ChangeResults, INT64, RESULTS),
    messages.Failed: st.builds(messages.Failed, INT64, st.sampled_from(messages.FailureKind), TEXT),
    messages.TurnAway: st.builds(messages.TurnAway, INT64, TEXT),
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
    messages.ChangeRequest: st.builds(messages.ChangeRequest, INT64, REQUESTS),
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


def received(form: Any, pieces: list[bytes]) -> tuple[list[object], list[str]]:
    """Return the messages that a channel parses from these pieces, and why it ended, if it did."""
    said: list[object] = []
    lost: list[str] = []
    channel = Channel(form, form, said.append, lost.append)
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
def test_however_a_stream_is_cut_what_was_said_arrives_in_order(
    side: tuple[Any, list[object]], sizes: list[int]
) -> None:
    form, said = side
    stream = b"".join(encode(form, message) for message in said)
    assert received(form, cut(stream, sizes)) == (said, [])


@given(side=SIDES.filter(lambda side: bool(side[1])), data=st.data())
def test_a_message_that_ends_too_early_or_too_late_is_none(
    side: tuple[Any, list[object]], data: st.DataObject
) -> None:
    form, said = side
    frame = encode(form, said[0])[4:]
    with pytest.raises(ChannelError):
        decode(form, frame + data.draw(st.binary(min_size=1, max_size=4)))
    with pytest.raises(ChannelError):
        decode(form, frame[: data.draw(st.integers(0, len(frame) - 1))])


@given(
    code=st.integers(0, 255),
    body=st.binary(max_size=60),
    side=st.sampled_from([FROM_WRITER, FROM_WORKER]),
)
def test_any_bytes_are_a_message_or_end_the_channel(code: int, body: bytes, side: Any) -> None:
    frame = bytes([code]) + body
    said, lost = received(side, [struct.pack(">i", len(frame)) + frame])
    assert len(said) + len(lost) == 1
    if said:
        assert decode(side, encode(side, said[0])[4:]) == said[0]


@pytest.mark.parametrize("side", [FROM_WRITER, FROM_WORKER])
def test_nobody_takes_what_only_the_other_side_may_say(side: Any) -> None:
    other = FROM_WORKER if side is FROM_WRITER else FROM_WRITER
    frame = encode(other, messages.Fenced() if other is FROM_WORKER else messages.Stop())
    mine = messages.Stop() if side is FROM_WRITER else messages.Fenced()
    said, lost = received(side, [frame, encode(side, mine)])
    assert said == []
    assert len(lost) == 1


def test_a_frame_beyond_the_limit_ends_the_channel_before_its_bytes_come() -> None:
    said, lost = received(FROM_WORKER, [struct.pack(">i", messages.FRAME_MAX_BYTES + 1)])
    assert said == []
    assert len(lost) == 1


def test_every_message_of_the_table_is_tried() -> None:
    assert OF_WRITER.keys() | OF_WORKER.keys() == messages.MESSAGES


CONFIGS: Final = st.builds(ConfigRecord, st.sampled_from([4, 2]), TEXT, TEXT, st.none() | TEXT)
NAMES: Final = st.sampled_from(["User:a", "User:b"])
SOME_TOKENS: Final = st.builds(
    DelegationTokenRecord, NAMES, NAMES, few(NAMES), INT64, INT64, INT64, st.sampled_from(["x", "y"])
)


@given(log=logs(), configs=st.lists(CONFIGS, max_size=4), tokens=st.lists(SOME_TOKENS, max_size=4))
def test_the_records_of_what_changed_change_the_same(
    log: tuple[list[MetadataRecord], State], configs: list[ConfigRecord], tokens: list[DelegationTokenRecord]
) -> None:
    removed = [RemoveDelegationTokenRecord(each.token_id) for each in tokens[:1]]
    records = [*log[0], *configs, *tokens, *removed]
    first = ImageBuilder(EMPTY_IMAGE)
    changes = first.replay_all(records)
    second = ImageBuilder(EMPTY_IMAGE)
    assert second.replay_all(map(decode_record, record_values(changes))) == changes
    assert second.build(1, 1).same_state(first.build(1, 1))


IN_ORDER: Final = (messages.Delta, messages.OpenListeners)
SAID: Final = st.one_of(
    *(OF_WRITER[each] for each in (*IN_ORDER, messages.Look, messages.ChangeResults, messages.Fence))
)


async def settled(channel: Channel) -> None:
    while channel._working is not None:
        await asyncio.wait([channel._working])


@given(
    said=st.lists(SAID, max_size=8), limit=st.integers(1, 40), slow=st.sets(st.integers(0, 7)), data=st.data()
)
def test_deltas_and_the_order_to_open_listeners_keep_their_order_and_all_other_messages_arrive(
    said: list[object], limit: int, slow: set[int], data: st.DataObject
) -> None:
    done: list[object] = []
    begun: list[object] = []

    def on_message(message: object) -> Awaitable[None] | None:
        begun.append(message)
        if isinstance(message, messages.Delta) and len(begun) in slow:
            return work(message)
        done.append(message)
        return None

    async def work(message: object) -> None:
        # a message begun earlier is finished earlier
        assert begun[-1] is message or not isinstance(begun[-1], IN_ORDER)
        await asyncio.sleep(0)
        done.append(message)

    async def receive() -> None:
        channel = Channel(FROM_WORKER, FROM_WRITER, on_message, lost.append)
        stream = b"".join(encode(FROM_WRITER, message) for message in said)
        for piece in cut(stream, data.draw(st.lists(st.integers(1, 40), max_size=10))):
            channel.data_received(piece)
            await asyncio.sleep(0)
        await settled(channel)

    lost: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "LARGE_FRAME_BYTES", limit)
        asyncio.run(receive())
    assert lost == []
    assert sorted(map(repr, done)) == sorted(map(repr, said))
    in_order = [each for each in said if isinstance(each, IN_ORDER)]
    assert [each for each in done if isinstance(each, IN_ORDER)] == in_order


def test_what_cannot_be_carried_out_ends_the_channel_and_nothing_behind_it_is() -> None:
    done: list[object] = []
    lost: list[str] = []

    async def fail() -> None:
        raise RuntimeError("no")

    def on_message(message: object) -> Awaitable[None] | None:
        done.append(message)
        return fail() if len(done) == 1 else None

    async def receive() -> None:
        channel = Channel(FROM_WORKER, FROM_WRITER, on_message, lost.append)
        for offset in (1, 2):
            channel.data_received(encode(FROM_WRITER, messages.Delta(offset, 1, ())))
        await settled(channel)

    asyncio.run(receive())
    assert (len(done), len(lost)) == (1, 1)


@given(log=logs(), tokens=st.lists(SOME_TOKENS, max_size=4), size=st.integers(1, 4))
def test_a_worker_begins_with_the_image_of_the_writer(
    log: tuple[list[MetadataRecord], State], tokens: list[DelegationTokenRecord], size: int
) -> None:
    image = image_of([*log[0], *tokens], 7, 3)
    store = WorkerStore(MetaProperties("cluster", 1), TokenRules())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "CHUNK_MAX_RECORDS", size)
        batches = list(changes.record_chunks(image))
    for batch in batches:
        store.take_records(batch)
    store.loaded(7, 3)
    assert store.image.same_state(image)
    assert (store.image.offset, store.image.epoch) == (7, 3)
    assert gc.isenabled()
