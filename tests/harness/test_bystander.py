"""The bystander of `make bench-stall` counts every wait, also one that outlives its connection."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from benchmarks.figures import Figure
from benchmarks.stalling.sides import Side
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

HELD_MS = 100


class Server:
    """Answers every frame by its correlation id and zeros, while it `serves`."""

    def __init__(self) -> None:
        self.serves = threading.Event()
        self.serves.set()
        self.connections: list[socket.socket] = []
        self.listener = socket.create_server((LOOPBACK, 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size))
                self.serves.wait()
                connection.sendall((14).to_bytes(4) + frame[4:8] + bytes(10))


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.serves.set()
    made.listener.close()


def test_a_wait_counts_while_it_goes_on_and_whole_when_it_ends_on_another_connection(server: Server) -> None:
    host, port = server.listener.getsockname()
    with Side("a server", f"{host}:{port}", pid=0).watched(asks_by_id=False) as watch:
        wait_until(lambda: watch.take()["requests"] > 1, what="it asks")
        server.serves.clear()
        wait_until(lambda: watch.take()["longest_ms"] > HELD_MS, what="a wait is seen")
        [first] = server.connections
        first.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: len(server.connections) > 1, what="it comes again")
        server.serves.set()
        seen: list[dict[str, float]] = []

        def goes_on() -> bool:
            seen.append(watch.take())
            return seen[-1]["requests"] > 1

        wait_until(goes_on, what="it asks again")
        assert max(each["longest_ms"] for each in seen) > HELD_MS


def figure(ours: float, *, higher_is_better: bool = False) -> Figure:
    return Figure(
        name="a",
        unit="ms",
        ours=ours,
        theirs=50,
        size=1,
        higher_is_better=higher_is_better,
        floor=1,
        enough=100,
    )


def test_a_figure_holds_that_reaches_its_floor_or_is_enough_by_itself() -> None:
    assert [figure(ours).holds for ours in (49, 100, 101)] == [True, True, False]
    assert [figure(ours, higher_is_better=True).holds for ours in (49, 50, 100)] == [False, True, True]
