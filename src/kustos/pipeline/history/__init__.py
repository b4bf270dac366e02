"""ACLs, users and tokens as they were: a data source over metadata logs, and events judged by it."""

from kustos.pipeline.history.discrepancies import discrepancies, gravest_discrepancies
from kustos.pipeline.history.judgement import judged_by_history
from kustos.pipeline.history.source import (
    acls_as_of,
    history_range,
    read_history,
    register,
)

__all__ = [
    "acls_as_of",
    "discrepancies",
    "gravest_discrepancies",
    "history_range",
    "judged_by_history",
    "read_history",
    "register",
]
