"""Unused, redundant, shadowed and orphaned ACLs: each with its evidence and whether it is safe to remove."""

from kustos.pipeline.findings.existing_names import NOTHING_KNOWN, Existing
from kustos.pipeline.findings.kinds import Cause, FindingKind, FindingSeverity
from kustos.pipeline.findings.supports import carried, safe_together, supports
from kustos.pipeline.findings.table import UNUSED_DAYS, acl_findings, removable_together

__all__ = [
    "NOTHING_KNOWN",
    "UNUSED_DAYS",
    "Cause",
    "Existing",
    "FindingKind",
    "FindingSeverity",
    "acl_findings",
    "carried",
    "removable_together",
    "safe_together",
    "supports",
]
