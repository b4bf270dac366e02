"""The follower's phases, and the table of their transitions."""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final

from kustos.metadata.quorum.answers import Event


@unique
class FollowerPhase(Enum):
    """The current activity of the follower."""

    SEEKING = "seeking a leader"
    FOLLOWING = "following"
    COPYING = "copying a snapshot"
    ENDED = "ended"


NEXT: Final[Mapping[tuple[FollowerPhase, Event], tuple[FollowerPhase, str]]] = {
    (FollowerPhase.SEEKING, Event.RECORDS): (FollowerPhase.FOLLOWING, "_take"),
    (FollowerPhase.SEEKING, Event.DIVERGED): (FollowerPhase.FOLLOWING, "_cut_back"),
    (FollowerPhase.SEEKING, Event.SNAPSHOT): (FollowerPhase.COPYING, "_begin_copy"),
    (FollowerPhase.SEEKING, Event.LEADER): (FollowerPhase.FOLLOWING, "_turn_to_leader"),
    (FollowerPhase.SEEKING, Event.NO_LEADER): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.SEEKING, Event.AGAIN): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.SEEKING, Event.REFUSED): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.SEEKING, Event.FOREIGN): (FollowerPhase.ENDED, "_refuse_cluster"),
    (FollowerPhase.SEEKING, Event.LOST): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.RECORDS): (FollowerPhase.FOLLOWING, "_take"),
    (FollowerPhase.FOLLOWING, Event.DIVERGED): (FollowerPhase.FOLLOWING, "_cut_back"),
    (FollowerPhase.FOLLOWING, Event.SNAPSHOT): (FollowerPhase.COPYING, "_begin_copy"),
    (FollowerPhase.FOLLOWING, Event.LEADER): (FollowerPhase.FOLLOWING, "_turn_to_leader"),
    (FollowerPhase.FOLLOWING, Event.NO_LEADER): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.AGAIN): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.REFUSED): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.FOLLOWING, Event.FOREIGN): (FollowerPhase.ENDED, "_refuse_cluster"),
    (FollowerPhase.FOLLOWING, Event.LOST): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.COPYING, Event.CHUNK): (FollowerPhase.COPYING, "_take_chunk"),
    (FollowerPhase.COPYING, Event.WHOLE): (FollowerPhase.FOLLOWING, "_install"),
    (FollowerPhase.COPYING, Event.LEADER): (FollowerPhase.FOLLOWING, "_turn_to_leader"),
    (FollowerPhase.COPYING, Event.NO_LEADER): (FollowerPhase.SEEKING, "_let_go"),
    # a newer snapshot may have replaced it: the next Fetch will name that
    (FollowerPhase.COPYING, Event.AGAIN): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.COPYING, Event.REFUSED): (FollowerPhase.SEEKING, "_let_go"),
    (FollowerPhase.COPYING, Event.FOREIGN): (FollowerPhase.ENDED, "_refuse_cluster"),
    (FollowerPhase.COPYING, Event.LOST): (FollowerPhase.SEEKING, "_let_go"),
}
"""The next phase and the action for each phase and event. A pair without a row is a foreign answer."""

SETBACKS: Final = frozenset({Event.LEADER, Event.NO_LEADER, Event.AGAIN, Event.REFUSED, Event.LOST})
"""Events without progress: after several in a row the driver waits."""
