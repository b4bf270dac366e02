"""Bursts: frames of one event loop turn are sent with one call, in order, within a limit."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.upstream.bursts import BURST_MAX_BYTES, Burst

FRAMES = st.lists(st.integers(0, BURST_MAX_BYTES + 1), max_size=8)


class Socket:
    """Keeps the sent bytes of each call."""

    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []

    def send(self, frames: Sequence[bytes]) -> None:
        self.calls.append(list(frames))

    @property
    def written(self) -> list[bytes]:
        return [frame for call in self.calls for frame in call]


@given(before=FRAMES, amid=FRAMES, after=FRAMES)
def test_frames_keep_their_order_and_a_burst_is_one_send_within_its_limit(
    before: list[int], amid: list[int], after: list[int]
) -> None:
    socket = Socket()
    burst = Burst(socket.send)
    given_frames = [bytes(size) for size in (*before, *amid, *after)]
    for size in before:
        burst.add(bytes(size))
    assert len(socket.calls) == len(before), "without a burst each frame is sent at once"
    burst.begin()
    for size in amid:
        burst.add(bytes(size))
    burst.end()
    gathered = socket.calls[len(before) :]
    for call in gathered:
        assert sum(map(len, call[:-1])) < BURST_MAX_BYTES, "a full burst does not wait for its end"
    if sum(amid) < BURST_MAX_BYTES:
        assert len(gathered) <= 1
    for size in after:
        burst.add(bytes(size))
    assert socket.written == given_frames


def test_dropped_bytes_are_never_sent() -> None:
    socket = Socket()
    burst = Burst(socket.send)
    burst.begin()
    burst.add(b"one")
    burst.drop()
    burst.add(b"two")
    burst.end()
    assert socket.calls == []
