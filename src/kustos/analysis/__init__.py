"""Questions over whole ACL sets, by exact set algebra; the theory is in `kernel`."""

from kustos.analysis.access import Access, Grant, what_can, who_can
from kustos.analysis.difference import Difference, diff
from kustos.analysis.errors import AnalysisError
from kustos.analysis.host_sets import HostSet
from kustos.analysis.name_sets import NameSet, NameTerm, Site
from kustos.analysis.principal_sets import PrincipalSet
from kustos.analysis.regions import REGIONS_MAX, Change, Direction, Probe, Region
from kustos.analysis.rules import ACLS_ALONE, Rules

__all__ = [
    "ACLS_ALONE",
    "REGIONS_MAX",
    "Access",
    "AnalysisError",
    "Change",
    "Difference",
    "Direction",
    "Grant",
    "HostSet",
    "NameSet",
    "NameTerm",
    "PrincipalSet",
    "Probe",
    "Region",
    "Rules",
    "Site",
    "diff",
    "what_can",
    "who_can",
]
