"""What is decoded of fetched batches is what a consumer of committed records sees, however it is cut."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.client.topics import AbortedTransaction
from kustos.pipeline.errors import DamagedRecordsError
from kustos.pipeline.run.topic.decoding import UNCOMPRESSED_BYTES_MAX
from kustos.pipeline.run.topic.decoding import compression as codecs
from kustos.wire import CorruptBatchError, Record, RecordBatch, whole_batches
from tests.pipeline.run.batches import (
    ABORT,
    CODECS,
    COMMIT,
    GZIP,
    NONE,
    SNAPPY,
    SNAPPY_OF_JAVA,
    ZSTD,
    Log,
    compressed,
    data_batch,
    decoded,
    marker,
    message_set,
    sealed,
    with_codec,
)

VALUES = st.lists(st.none() | st.binary(max_size=100), min_size=1, max_size=6)
PRODUCERS = st.sampled_from([7, 8])
EVERYTHING = 2**62


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Draw a log in which two producers have transactions and others write in between."""
    log = Log()
    for kind in draw(st.lists(st.sampled_from(["plain", "within", "end", "old"]), min_size=1, max_size=12)):
        if kind == "plain":
            log.append(draw(VALUES), draw(st.sampled_from(CODECS)), -1, draw(st.integers(0, 3)))
        elif kind == "within":
            log.append(draw(VALUES), draw(st.sampled_from(CODECS)), draw(PRODUCERS), draw(st.integers(0, 3)))
        elif kind == "end":
            log.end_transaction(draw(PRODUCERS), draw(st.sampled_from([ABORT, COMMIT])))
        else:
            log.append_messages(
                draw(st.sampled_from([0, 1])), draw(VALUES), is_compressed=draw(st.booleans())
            )
    for producer in list(log.open):
        log.end_transaction(producer, draw(st.sampled_from([ABORT, COMMIT])))
    return log


@given(log=logs(), data=st.data())
def test_committed_records_of_a_range_are_decoded_and_no_others(log: Log, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, log.end))
    end = data.draw(st.integers(first, log.end + 2))
    # a broker begins with the batch that holds the first offset, and names what was aborted from there on
    begin = max((at for at, _ in log.batches if at <= first), default=0)
    fetched = b"".join(batch for at, batch in log.batches if at >= begin)
    aborted = [AbortedTransaction(who, since) for who, since, until in log.aborted if until >= begin]
    found = decoded(fetched, aborted, first, end)
    expected = sorted(row for row in log.seen if first <= row[0] < end)
    assert list(zip(found.offsets, found.values, strict=True)) == expected
    assert found.next_offset == log.end


@given(log=logs(), data=st.data())
def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch(log: Log, data: st.DataObject) -> None:
    whole = b"".join(batch for _, batch in log.batches)
    cut = data.draw(st.integers(0, len(whole)))
    aborted = [AbortedTransaction(who, since) for who, since, _ in log.aborted]
    found = decoded(whole[:cut], aborted, 0, EVERYTHING)
    rest = decoded(whole, aborted, found.next_offset, EVERYTHING)
    both = found.offsets + rest.offsets, found.values + rest.values
    assert list(zip(*both, strict=True)) == sorted(log.seen)
    assert not found.offsets or found.offsets[-1] < found.next_offset <= log.end


@given(codec=st.sampled_from(CODECS), values=VALUES, data=st.data())
def test_a_damaged_byte_is_found_and_the_error_quotes_none(
    codec: int, values: list[bytes | None], data: st.DataObject
) -> None:
    batch = bytearray(data_batch(5, [b"hunter2", *values], codec))
    # what the checksum covers
    at = data.draw(st.integers(21, len(batch) - 1))
    batch[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(
        DamagedRecordsError, match=r"the batch at or after offset [05] cannot be read"
    ) as raised:
        decoded(bytes(batch), (), 0, EVERYTHING)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None


@given(codec=st.sampled_from(CODECS), body=st.binary(max_size=60), data=st.data())
def test_whatever_a_producer_sends_ends_in_records_or_the_one_error(
    codec: int, body: bytes, data: st.DataObject
) -> None:
    batch = bytearray(data_batch(0, [b"one", None, b"three"]))
    for _ in range(data.draw(st.integers(0, 4))):
        batch[data.draw(st.integers(57, len(batch) - 1))] = data.draw(st.integers(0, 255))
    for made in (with_codec(sealed(bytes(batch)), codec), with_codec(sealed(bytes(batch)), codec, body)):
        try:
            found = decoded(made, (), 0, EVERYTHING)
        except DamagedRecordsError:
            continue
        assert len(found.offsets) == len(found.values)


@given(magic=st.sampled_from([0, 1]), values=VALUES, is_compressed=st.booleans(), data=st.data())
def test_a_damaged_old_message_is_found(
    magic: int, values: list[bytes | None], is_compressed: bool, data: st.DataObject
) -> None:
    made = bytearray(message_set(magic, 3, values, is_compressed=is_compressed))
    first_size = 12 + struct.unpack_from(">i", made, 8)[0]
    # from behind the magic on
    at = data.draw(st.integers(17, first_size - 1))
    made[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DamagedRecordsError, match="it fails its checksum"):
        decoded(bytes(made), (), 0, EVERYTHING)


def test_a_header_whose_key_is_not_utf_8_does_not_stop_the_reader() -> None:
    records = (Record(0, b"before"), Record(1, b"odd", None, 0, ((b"\xff\xfe", b"x"),)), Record(2, None))
    batch = RecordBatch(9, 0, records, last_offset_delta=2).encode()
    for made in (batch, with_codec(batch, ZSTD)):
        found = decoded(made, (), 0, EVERYTHING)
        assert (found.offsets, found.values) == ([9, 10, 11], [b"before", b"odd", None])


def test_a_batch_that_compaction_emptied_moves_the_next_offset() -> None:
    empty = RecordBatch(4, 0, (), last_offset_delta=9).encode()
    found = decoded(empty, (), 4, EVERYTHING)
    assert (found.offsets, found.next_offset) == ([], 14)


def test_an_empty_marker_of_an_abort_ends_nothing() -> None:
    emptied = RecordBatch(1, 0, (), attributes=0x30, producer_id=7).encode()
    log = data_batch(0, [b"gone"], producer_id=7) + emptied + data_batch(2, [b"gone"], producer_id=7)
    log += marker(3, 7, ABORT) + data_batch(4, [b"here"], producer_id=7) + marker(5, 7, COMMIT)
    found = decoded(log, [AbortedTransaction(7, 0)], 0, EVERYTHING)
    assert (found.offsets, found.values, found.next_offset) == ([4], [b"here"], 6)


@pytest.mark.parametrize("codec", [code for code in CODECS if code != NONE])
def test_a_batch_that_is_too_large_uncompressed_is_refused(
    codec: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = data_batch(2, [bytes(10_000)], codec)
    monkeypatch.setattr(codecs, "UNCOMPRESSED_BYTES_MAX", 5000)
    with pytest.raises(
        DamagedRecordsError, match="after offset 2 cannot be read: it has more than 5000 bytes"
    ):
        decoded(large, (), 0, EVERYTHING)


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_a_bomb_is_refused_before_it_fills_the_memory(codec: int) -> None:
    # several frames, one after the other: a stream goes on with the next
    bomb = compressed(codec, bytes(16 << 20)) * (UNCOMPRESSED_BYTES_MAX // (16 << 20) + 1)
    with pytest.raises(DamagedRecordsError, match=f"more than {UNCOMPRESSED_BYTES_MAX} bytes uncompressed"):
        decoded(with_codec(data_batch(0, [b"x"]), codec, bomb), (), 0, EVERYTHING)


def test_a_snappy_block_that_claims_too_much_is_refused_before_it_is_read() -> None:
    claim = b"\xff\xff\xff\xff\x07" + b"x" * 20
    for codec, body in (
        (SNAPPY, claim),
        (SNAPPY_OF_JAVA, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + struct.pack(">i", len(claim)) + claim),
    ):
        with pytest.raises(DamagedRecordsError, match="more than"):
            decoded(with_codec(data_batch(0, [b"x"]), codec, body), (), 0, EVERYTHING)


def test_an_unknown_codec_or_magic_is_named() -> None:
    with pytest.raises(DamagedRecordsError, match="its codec 5 is none of gzip, snappy, LZ4 and zstd"):
        decoded(with_codec(data_batch(0, [b"x"]), 5, b"?"), (), 0, EVERYTHING)
    odd = bytearray(data_batch(0, [b"x"]))
    odd[16] = 3
    with pytest.raises(DamagedRecordsError, match="magic 3"):
        decoded(bytes(odd), (), 0, EVERYTHING)
    with pytest.raises(CorruptBatchError):
        list(whole_batches(bytes(odd)))


def test_an_old_message_that_wraps_wrappers_is_refused() -> None:
    inner = message_set(1, 0, [b"a"], is_compressed=True)
    wrapper = bytearray(message_set(1, 0, [b"a"], is_compressed=True))
    outer = wrapped(bytes(wrapper), inner)
    with pytest.raises(DamagedRecordsError, match="it wraps a message that wraps others"):
        decoded(outer, (), 0, EVERYTHING)


def wrapped(like: bytes, inner: bytes) -> bytes:
    """Return a gzipped message of magic 1 that wraps these bytes."""
    value = compressed(GZIP, inner)
    body = like[16:26] + struct.pack(">ii", -1, len(value)) + value
    return like[:8] + struct.pack(">iI", len(body) + 4, zlib.crc32(body)) + body
