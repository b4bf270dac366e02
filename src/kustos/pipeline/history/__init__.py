"""ACLs, users and tokens as they were: a data source over metadata logs, and events judged by it."""

from kustos.pipeline.history.findings import gravest_findings, history_findings
from kustos.pipeline.history.judgement import judged_by_history
from kustos.pipeline.history.source import (
    acls_as_of,
    history_reach,
    read_history,
    register,
)

__all__ = [
    "acls_as_of",
    "gravest_findings",
    "history_findings",
    "history_reach",
    "judged_by_history",
    "read_history",
    "register",
]
