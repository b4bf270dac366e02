"""Limits the bytes of answers that a process holds for its clients, by lowering the size of a Fetch.

Theory of operation. The gateway gathers and rebuilds the answer to a Fetch with refused partitions, and the
client may read it slowly. Other answers pass through while they arrive. A broker may always answer with less
than was requested, and the client fetches the rest later (KIP-74). A Fetch therefore reserves memory when it
is opened, before any decision, and its `max_bytes` is lowered to the reservation. The reservation is a share
of the free budget, so the first requests do not take all of it. When the answer arrives, the bytes that the
client has not read replace the reservation; they are released when the client reads them. A large answer that
waits to be parsed (`large_turns`) counts as well.

A connection has at most one Fetch at a time, and none while its client does not read. One number per
connection is therefore enough, and their sum is the memory in use.

Only `connections.max.idle.ms` disconnects a client that does not read. A consumer that processes its records
may read nothing for up to `max.poll.interval.ms`, and the bytes held for it do not stop other clients.
"""

from typing import Final

ANSWERS_MAX_BYTES: Final = 128 * 2**20
"""The default limit, small compared with a server's memory. A single consumer gets 32 MiB of it at once;
clients request 50 MiB by default (`fetch.max.bytes`)."""

SHARE_OF_FREE: Final = 4
"""A request gets at most a fourth of the free budget, as switches share a buffer between queues (Choudhury
and Hahne, 1998). Clients that read get memory, however many others do not read."""

FLOOR_BYTES: Final = 2**20
"""The reservation of a request when the budget is used up, so that no client can stop the others. Kafka's
consumers request as much from a partition (`max.partition.fetch.bytes`). By default no batch is larger
(`message.max.bytes`), and brokers return one batch even if less was requested."""

SLICE_BYTES: Final = 256 * 2**10
"""The size of the pieces in which an answer is written to the socket. Each piece is freed once it is sent, so
a client that does not read the last bytes of an answer keeps at most one piece."""


class AnswerBudget:
    """The bytes held by a process. Only floors exceed `max_bytes`, at most one per connection."""

    __slots__ = ("max_bytes", "used_bytes")

    def __init__(self, max_bytes: int = ANSWERS_MAX_BYTES) -> None:
        self.max_bytes: Final = max_bytes
        self.used_bytes = 0

    def share(self) -> "AnswerShare":
        """Return the share of a new connection, which holds nothing."""
        return AnswerShare(self)


class AnswerShare:
    """The bytes reserved or buffered for one connection."""

    __slots__ = ("_budget", "held_bytes")

    def __init__(self, budget: AnswerBudget) -> None:
        self._budget: Final = budget
        self.held_bytes = 0

    def reserve(self, wanted_bytes: int) -> int:
        """Replace the bytes held by a reservation; return its size, at most `wanted_bytes`."""
        self.hold(0)
        free_bytes = self._budget.max_bytes - self._budget.used_bytes
        granted_bytes = min(wanted_bytes, max(FLOOR_BYTES, free_bytes // SHARE_OF_FREE))
        # a client may request a negative size; it gets one batch
        self.hold(max(0, granted_bytes))
        return granted_bytes

    def hold(self, size_bytes: int) -> None:
        """Replace the bytes held; 0 releases everything."""
        if size_bytes != self.held_bytes:
            self._budget.used_bytes += size_bytes - self.held_bytes
            self.held_bytes = size_bytes
