"""Bytes of one client that are not requests yet: part of a frame, and frames behind a login."""

from collections.abc import Callable, Hashable
from typing import Final

from kustos.gateway.session.request_budget import RequestShare
from kustos.wire import FrameReader

TOO_SLOW: Final = "its request is not whole, and others wait, see `kustos.gateway.requests.max.bytes`"


class Incoming:
    """The bytes of one client until its session takes them, and the room that they have."""

    __slots__ = ("held", "reader", "share")

    def __init__(self, share: RequestShare, limit: int) -> None:
        self.share: Final = share
        self.reader = FrameReader(limit)
        self.held: list[bytes] = []
        """Frames behind a login that is being verified."""

    def begin(
        self, limit: int, limit_of: Callable[[int], int | None] | None = None, *, owner: Hashable | None
    ) -> None:
        """Read frames within these limits from now on; whoever has the former reader takes what is in it.

        `owner`: who has what is held, None for a stranger.
        """
        self.share.belong_to(owner)
        if owner is None and not self.reader.begun_bytes:
            # nothing has come yet, so one reader is enough until there is a session
            self.reader.limit = limit
        else:
            self.reader = FrameReader(limit, limit_of)

    def weigh(self, waiting_bytes: int, *, has_finished: bool) -> bool:
        """Count what is here, and what waits in the session; return False for a stranger without room.

        `has_finished`: a frame became whole since the last time.
        """
        waiting_bytes += sum(map(len, self.held))
        begun_bytes = self.reader.begun_bytes
        # who waits for us is not slow
        is_unfinished = begun_bytes > 0 and not waiting_bytes
        held_bytes = begun_bytes + waiting_bytes
        return self.share.hold(held_bytes, is_unfinished=is_unfinished, has_finished=has_finished)

    def drop(self) -> None:
        """Forget everything; nothing more is taken."""
        self.reader.take_rest()
        self.held = []
        self.share.close()
