"""Questions over whole ACL sets, by exact set algebra; the theory is in `kernel`."""

from kustos.analysis.access import Access, Grant, what_can, who_can
from kustos.analysis.difference import Difference, diff
from kustos.analysis.errors import AnalysisError, PolicyError
from kustos.analysis.explain import Explanation, NearMiss, Overruled, SmallestChange, explain
from kustos.analysis.host_sets import HostSet
from kustos.analysis.minimize import Minimized, minimize
from kustos.analysis.name_sets import NameSet, NameTerm, Site
from kustos.analysis.policy import (
    Policy,
    PolicyPrincipals,
    PrincipalPattern,
    Statement,
    StatementKind,
)
from kustos.analysis.policy_file import POLICY_VERSION, parse_policy
from kustos.analysis.principal_sets import PrincipalSet
from kustos.analysis.regions import REGIONS_MAX, Change, Direction, Probe, Region
from kustos.analysis.rules import ACLS_ALONE, Rules
from kustos.analysis.verification import COUNTER_EXAMPLES_MAX, CounterExample, Verdict, verify

__all__ = [
    "ACLS_ALONE",
    "COUNTER_EXAMPLES_MAX",
    "POLICY_VERSION",
    "REGIONS_MAX",
    "Access",
    "AnalysisError",
    "Change",
    "CounterExample",
    "Difference",
    "Direction",
    "Explanation",
    "Grant",
    "HostSet",
    "Minimized",
    "NameSet",
    "NameTerm",
    "NearMiss",
    "Overruled",
    "Policy",
    "PolicyError",
    "PolicyPrincipals",
    "PrincipalPattern",
    "PrincipalSet",
    "Probe",
    "Region",
    "Rules",
    "Site",
    "SmallestChange",
    "Statement",
    "StatementKind",
    "Verdict",
    "diff",
    "explain",
    "minimize",
    "parse_policy",
    "verify",
    "what_can",
    "who_can",
]
