"""The bytes of one client that no session has taken yet: part of a frame, and frames behind a login."""

from collections.abc import Callable, Hashable
from typing import Final

from kustos.gateway.session.request_budget import RequestShare
from kustos.wire import FrameReader

TOO_SLOW: Final = "its request is not whole, and others wait, see `kustos.gateway.requests.max.bytes`"


class Incoming:
    """The bytes of one client until its session takes them, and its share of the request budget."""

    __slots__ = ("held", "reader", "share")

    def __init__(self, share: RequestShare, limit: int) -> None:
        self.share: Final = share
        self.reader = FrameReader(limit)
        self.held: list[bytes] = []
        """Frames behind a login that is being verified."""

    def begin(
        self, limit: int, limit_of: Callable[[int], int | None] | None = None, *, owner: Hashable | None
    ) -> None:
        """Read frames within these limits from now on, including frames that have begun.

        `owner` is the owner in the request budget, None for an unauthenticated client.
        """
        self.share.belong_to(owner)
        if owner is None and not self.reader.begun_bytes:
            # nothing has arrived yet, so one reader is enough until there is a session
            self.reader.limit = limit
        else:
            self.reader = FrameReader(limit, limit_of, self.reader.take_rest())

    def weigh(self, waiting_bytes: int, *, has_finished: bool) -> bool:
        """Count the bytes here and those that wait in the session.

        Return False if the client is unauthenticated and exceeds the budget. `has_finished`: a frame became
        whole since the last call.
        """
        waiting_bytes += sum(map(len, self.held))
        begun_bytes = self.reader.begun_bytes
        # a client whose requests wait here is not slow
        is_unfinished = begun_bytes > 0 and not waiting_bytes
        held_bytes = begun_bytes + waiting_bytes
        return self.share.hold(held_bytes, is_unfinished=is_unfinished, has_finished=has_finished)

    def drop(self) -> None:
        """Drop all bytes; nothing more is taken."""
        self.reader.take_rest()
        self.held = []
        self.share.close()
