"""What-if replay: which recorded access other ACLs would decide differently, and how often it happened."""

from kustos.pipeline.replay.answer import Replay, replay
from kustos.pipeline.replay.flips import (
    GAINED,
    LOST,
    RULE_CHANGED,
    decisions,
    flips_by_kind,
    flips_by_principal,
    flips_by_resource,
    top_flips,
    verdict_on_each_event,
)
from kustos.pipeline.replay.of_files import flips_of_files, flips_of_rows

__all__ = [
    "GAINED",
    "LOST",
    "RULE_CHANGED",
    "Replay",
    "decisions",
    "flips_by_kind",
    "flips_by_principal",
    "flips_by_resource",
    "flips_of_files",
    "flips_of_rows",
    "replay",
    "top_flips",
    "verdict_on_each_event",
]
