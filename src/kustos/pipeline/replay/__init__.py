"""What-if replay: which recorded access other ACLs would decide differently, and how often it happened."""

from kustos.pipeline.replay.accesses import accesses_of_events, accesses_of_rollup, rule_text
from kustos.pipeline.replay.answer import Replay, replay
from kustos.pipeline.replay.flips import GAINED, LOST, RULE_CHANGED, decisions, flips, verdict_on_each_event
from kustos.pipeline.replay.of_files import flips_of_files
from kustos.pipeline.replay.summaries import (
    flips_by_kind,
    flips_by_principal,
    flips_by_resource,
    top_flips,
)

__all__ = [
    "GAINED",
    "LOST",
    "RULE_CHANGED",
    "Replay",
    "accesses_of_events",
    "accesses_of_rollup",
    "decisions",
    "flips",
    "flips_by_kind",
    "flips_by_principal",
    "flips_by_resource",
    "flips_of_files",
    "replay",
    "rule_text",
    "top_flips",
    "verdict_on_each_event",
]
