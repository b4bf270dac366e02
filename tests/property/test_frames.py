"""Theorems about frames: a stream split anywhere yields the same frames."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.wire import FrameLengthError, FrameReader, MalformedMessageError

FRAMES = st.lists(st.binary(max_size=50), max_size=10)


@given(frames=FRAMES, cuts=st.lists(st.integers(1, 60), max_size=30), tail=st.binary(max_size=3))
def test_a_stream_cut_anywhere_yields_the_same_frames(
    frames: list[bytes], cuts: list[int], tail: bytes
) -> None:
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames) + tail
    reader = FrameReader(limit=100)
    seen: list[bytes] = []
    for size in cuts:
        seen += reader.feed(stream[:size])
        stream = stream[size:]
    seen += reader.feed(stream)
    assert seen == frames
    assert reader.begun_bytes == len(tail)
    assert reader.take_rest() == tail


@given(cuts=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_a_frame_in_tiny_pieces_takes_little_more_memory_than_its_bytes(cuts: list[int]) -> None:
    size = 40_000
    stream = struct.pack(">i", size) + bytes(size)
    reader = FrameReader(limit=size)
    position = 0
    while position < size - 10:
        cut = cuts[position % len(cuts)]
        assert reader.feed(stream[position : position + cut]) == []
        position += cut
        if position % 1_000 < cut:
            assert sum(map(sys.getsizeof, reader._parts)) <= 1.25 * position + 200
    assert reader.feed(stream[position:]) == [bytes(size)]


@given(frames=FRAMES, length=st.sampled_from([-1, -(2**31), 101, 2**31 - 1]), tail=st.binary(max_size=9))
def test_frames_before_an_invalid_length_are_returned_and_later_bytes_are_kept(
    frames: list[bytes], length: int, tail: bytes
) -> None:
    refused = struct.pack(">i", length) + tail
    reader = FrameReader(limit=100)
    with pytest.raises(FrameLengthError) as refusal:
        reader.feed(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames) + refused)
    assert refusal.value.frames == frames
    assert reader.take_rest() == refused


@given(frames=FRAMES, cut=st.integers(0, 600), limit=st.integers(0, 60))
def test_a_reader_with_a_higher_limit_continues_with_the_remaining_bytes(
    frames: list[bytes], cut: int, limit: int
) -> None:
    stream = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    first = FrameReader(limit)
    try:
        seen = first.feed(stream[:cut])
    except FrameLengthError as error:
        seen = error.frames
    second = FrameReader(60, rest=first.take_rest())
    seen = [*seen, *second.feed(b""), *second.feed(stream[cut:])]
    assert seen == frames
    assert second.begun_bytes == 0


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_a_length_over_the_limit_is_rejected_before_its_bytes_arrive(length: int) -> None:
    with pytest.raises(MalformedMessageError):
        FrameReader(limit=100).feed(struct.pack(">i", length))
