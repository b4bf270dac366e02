"""Least privilege: the smallest readable set of ACLs that allows what was used and nothing that was denied.

`solver` decides for one principal, without Spark; `recommendations` calls it for all of them.
"""

from kustos.pipeline.privilege.legitimate import EVERY_USE, Legitimate, known_names
from kustos.pipeline.privilege.options import (
    DEFAULT_OPTIONS,
    HostChoice,
    PrivilegeOptionError,
    PrivilegeOptions,
)
from kustos.pipeline.privilege.proof import (
    RECOMMEND_STEPS,
    PrivilegeNumbers,
    Recommendation,
    recommendation,
)
from kustos.pipeline.privilege.recommendations import (
    recommend,
    recommended_acls,
    recommended_commands,
    recommended_yaml,
)
from kustos.pipeline.privilege.solver import least_privilege
from kustos.pipeline.privilege.values import (
    Denial,
    PrincipalRecommendation,
    Problem,
    RecommendedAcl,
    Unserved,
    UnservedUse,
    Use,
)

__all__ = [
    "DEFAULT_OPTIONS",
    "EVERY_USE",
    "RECOMMEND_STEPS",
    "Denial",
    "HostChoice",
    "Legitimate",
    "PrincipalRecommendation",
    "PrivilegeNumbers",
    "PrivilegeOptionError",
    "PrivilegeOptions",
    "Problem",
    "Recommendation",
    "RecommendedAcl",
    "Unserved",
    "UnservedUse",
    "Use",
    "known_names",
    "least_privilege",
    "recommend",
    "recommendation",
    "recommended_acls",
    "recommended_commands",
    "recommended_yaml",
]
