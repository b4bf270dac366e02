"""The follower's states, and the one table of what leads from each to the next."""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final

from kustos.metadata.quorum.answers import Event


@unique
class Phase(Enum):
    """What the follower is about."""

    SEEKING = "seeking a leader"
    FOLLOWING = "following"
    COPYING = "copying a snapshot"
    ENDED = "ended"


NEXT: Final[Mapping[tuple[Phase, Event], tuple[Phase, str]]] = {
    (Phase.SEEKING, Event.RECORDS): (Phase.FOLLOWING, "_take"),
    (Phase.SEEKING, Event.DIVERGED): (Phase.FOLLOWING, "_cut_back"),
    (Phase.SEEKING, Event.SNAPSHOT): (Phase.COPYING, "_begin_copy"),
    (Phase.SEEKING, Event.LEADER): (Phase.FOLLOWING, "_turn_to_leader"),
    (Phase.SEEKING, Event.NO_LEADER): (Phase.SEEKING, "_let_go"),
    (Phase.SEEKING, Event.AGAIN): (Phase.SEEKING, "_let_go"),
    (Phase.SEEKING, Event.REFUSED): (Phase.SEEKING, "_let_go"),
    (Phase.SEEKING, Event.FOREIGN): (Phase.ENDED, "_refuse_cluster"),
    (Phase.SEEKING, Event.LOST): (Phase.SEEKING, "_let_go"),
    (Phase.FOLLOWING, Event.RECORDS): (Phase.FOLLOWING, "_take"),
    (Phase.FOLLOWING, Event.DIVERGED): (Phase.FOLLOWING, "_cut_back"),
    (Phase.FOLLOWING, Event.SNAPSHOT): (Phase.COPYING, "_begin_copy"),
    (Phase.FOLLOWING, Event.LEADER): (Phase.FOLLOWING, "_turn_to_leader"),
    (Phase.FOLLOWING, Event.NO_LEADER): (Phase.SEEKING, "_let_go"),
    (Phase.FOLLOWING, Event.AGAIN): (Phase.SEEKING, "_let_go"),
    (Phase.FOLLOWING, Event.REFUSED): (Phase.SEEKING, "_let_go"),
    (Phase.FOLLOWING, Event.FOREIGN): (Phase.ENDED, "_refuse_cluster"),
    (Phase.FOLLOWING, Event.LOST): (Phase.SEEKING, "_let_go"),
    (Phase.COPYING, Event.CHUNK): (Phase.COPYING, "_take_chunk"),
    (Phase.COPYING, Event.WHOLE): (Phase.FOLLOWING, "_install"),
    (Phase.COPYING, Event.LEADER): (Phase.FOLLOWING, "_turn_to_leader"),
    (Phase.COPYING, Event.NO_LEADER): (Phase.SEEKING, "_let_go"),
    # the snapshot may be gone, for a newer one: the next Fetch will name it
    (Phase.COPYING, Event.AGAIN): (Phase.SEEKING, "_let_go"),
    (Phase.COPYING, Event.REFUSED): (Phase.SEEKING, "_let_go"),
    (Phase.COPYING, Event.FOREIGN): (Phase.ENDED, "_refuse_cluster"),
    (Phase.COPYING, Event.LOST): (Phase.SEEKING, "_let_go"),
}
"""What comes next, and what is done on the way. What has no row cannot be answered to what was asked."""

SETBACKS: Final = frozenset({Event.LEADER, Event.NO_LEADER, Event.AGAIN, Event.REFUSED, Event.LOST})
"""What brings nothing: after several of them in a row the driver waits."""
