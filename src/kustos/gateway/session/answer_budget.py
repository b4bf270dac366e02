"""Limits the bytes of answers that a process holds for its clients: a Fetch is lowered to the free room.

Theory of operation. An answer to a Fetch with refused partitions is gathered and rebuilt, and its client may
read it slowly; other answers pass while they arrive. A broker may always answer with less than was requested,
and the client fetches the rest later (KIP-74). So a Fetch reserves room when it is opened, before any
decision, and its `max_bytes` is lowered to the reservation: a share of the free room, so that the first
requests do not take all of it. Once the answer is there, the bytes that the client has not read replace the
reservation; they are given back when the client reads them. A large answer that waits for its turn to be read
(`large_turns`) is held as well.

A connection has one Fetch at a time, and none while its client does not read. So one number per connection is
enough, and their sum is the room that is used.

Only `connections.max.idle.ms` disconnects a client that does not read: a consumer that works on its records
may read nothing for as long as `max.poll.interval.ms`, and the bytes held for it do not stop other clients.
"""

from typing import Final

ANSWERS_MAX_BYTES: Final = 128 * 2**20
"""The default limit, small compared with a server's memory. A single consumer gets 32 MiB of it at once, of
the 50 MiB that clients request by default (`fetch.max.bytes`)."""

SHARE_OF_FREE: Final = 4
"""A request gets at most a fourth of the free room, as switches share a buffer between queues (Choudhury and
Hahne, 1998): clients that read find room, however many others do not read."""

FLOOR_BYTES: Final = 2**20
"""The room of a request when none is free, so that no client can stop the others: as much as Kafka's
consumers request from a partition (`max.partition.fetch.bytes`). By default no batch is larger
(`message.max.bytes`), and brokers return one batch even if less was requested."""

SLICE_BYTES: Final = 256 * 2**10
"""The size of the pieces in which an answer is written to the socket, so that each is freed once it was sent:
a client that does not read the last bytes of an answer keeps one piece at most."""


class AnswerBudget:
    """The bytes held by a process. Only floors exceed `max_bytes`, at most one for each connection."""

    __slots__ = ("max_bytes", "used_bytes")

    def __init__(self, max_bytes: int = ANSWERS_MAX_BYTES) -> None:
        self.max_bytes: Final = max_bytes
        self.used_bytes = 0

    def share(self) -> "AnswerShare":
        """Return the share of a new connection, which holds nothing."""
        return AnswerShare(self)


class AnswerShare:
    """The bytes held for one connection, reserved or buffered."""

    __slots__ = ("_budget", "held_bytes")

    def __init__(self, budget: AnswerBudget) -> None:
        self._budget: Final = budget
        self.held_bytes = 0

    def reserve(self, wanted_bytes: int) -> int:
        """Reserve bytes for a request, in place of those held; return how many, `wanted_bytes` or less."""
        self.hold(0)
        free_bytes = self._budget.max_bytes - self._budget.used_bytes
        granted_bytes = min(wanted_bytes, max(FLOOR_BYTES, free_bytes // SHARE_OF_FREE))
        # a client may request a negative size, and gets one batch
        self.hold(max(0, granted_bytes))
        return granted_bytes

    def hold(self, size_bytes: int) -> None:
        """Hold `size_bytes`, in place of those held before; 0 gives everything back."""
        if size_bytes != self.held_bytes:
            self._budget.used_bytes += size_bytes - self.held_bytes
            self.held_bytes = size_bytes
