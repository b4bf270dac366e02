"""Least privilege: the smallest readable set of ACLs that allows what was used and nothing that was denied.

`solving` decides for one principal, without Spark; `recommending` asks it for all of them.
"""

from kustos.pipeline.privilege.options import (
    DEFAULT_OPTIONS,
    HostChoice,
    PrivilegeOptionError,
    PrivilegeOptions,
)
from kustos.pipeline.privilege.solving import least_privilege
from kustos.pipeline.privilege.values import (
    Answer,
    Denial,
    Problem,
    RecommendedAcl,
    Unserved,
    UnservedUse,
    Use,
)

__all__ = [
    "DEFAULT_OPTIONS",
    "Answer",
    "Denial",
    "HostChoice",
    "PrivilegeOptionError",
    "PrivilegeOptions",
    "Problem",
    "RecommendedAcl",
    "Unserved",
    "UnservedUse",
    "Use",
    "least_privilege",
]
