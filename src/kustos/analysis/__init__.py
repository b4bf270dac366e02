"""Questions over whole ACL sets, answered by exact set algebra; `kernel` holds the theory."""

from kustos.analysis.access import AllowedAccess, Grant, what_can, who_can
from kustos.analysis.difference import Difference, diff
from kustos.analysis.duties import Breach, Duty, DutySide, breaches, parse_duties
from kustos.analysis.entitlements import (
    Breadth,
    Denying,
    Effect,
    Entitlement,
    breadth_of,
    entitlements,
    name_is_matched,
)
from kustos.analysis.escalation import BlastRadius, Escalation, Identity, Means, Step, Token, blast_radius
from kustos.analysis.explain import Explanation, NearMiss, Overruled, SmallestChange, explain, is_allow
from kustos.analysis.explain_scope import ExplainScope, Part, ScopeExplanation, explain_scope, meets
from kustos.analysis.groups import denial_changes, with_groups
from kustos.analysis.headline import Claim, Consequence, Headline, Rest, headline_of
from kustos.analysis.host_sets import ANYWHERE, HostSet, hosts_are_covered
from kustos.analysis.importance import ShownChanges, by_importance, most_important
from kustos.analysis.kernel import ACLS_ALONE, AnalysisError, Rules
from kustos.analysis.minimize import Minimized, minimize
from kustos.analysis.name_sets import EVERY_NAME, NOUNS, WILDCARD_NAMES, NameSet, NameTerm, Site
from kustos.analysis.necessity import necessity
from kustos.analysis.policy import (
    Policy,
    PolicyError,
    PolicyPrincipals,
    PrincipalPattern,
    Statement,
    StatementKind,
)
from kustos.analysis.policy_file import POLICY_VERSION, parse_policy
from kustos.analysis.regions import REGIONS_MAX, Change, Direction, PrincipalSet, Probe, Region, operations_of
from kustos.analysis.sentence_file import SentenceFile
from kustos.analysis.trial import (
    CandidateLoad,
    DifferenceCount,
    DifferenceKey,
    DifferenceKind,
    TrialSummary,
)
from kustos.analysis.verification import COUNTER_EXAMPLES_MAX, CounterExample, Verdict, verify

__all__ = [
    "ACLS_ALONE",
    "ANYWHERE",
    "COUNTER_EXAMPLES_MAX",
    "EVERY_NAME",
    "NOUNS",
    "POLICY_VERSION",
    "REGIONS_MAX",
    "WILDCARD_NAMES",
    "AllowedAccess",
    "AnalysisError",
    "BlastRadius",
    "Breach",
    "Breadth",
    "CandidateLoad",
    "Change",
    "Claim",
    "Consequence",
    "CounterExample",
    "Denying",
    "Difference",
    "DifferenceCount",
    "DifferenceKey",
    "DifferenceKind",
    "Direction",
    "Duty",
    "DutySide",
    "Effect",
    "Entitlement",
    "Escalation",
    "ExplainScope",
    "Explanation",
    "Grant",
    "Headline",
    "HostSet",
    "Identity",
    "Means",
    "Minimized",
    "NameSet",
    "NameTerm",
    "NearMiss",
    "Overruled",
    "Part",
    "Policy",
    "PolicyError",
    "PolicyPrincipals",
    "PrincipalPattern",
    "PrincipalSet",
    "Probe",
    "Region",
    "Rest",
    "Rules",
    "ScopeExplanation",
    "SentenceFile",
    "ShownChanges",
    "Site",
    "SmallestChange",
    "Statement",
    "StatementKind",
    "Step",
    "Token",
    "TrialSummary",
    "Verdict",
    "blast_radius",
    "breaches",
    "breadth_of",
    "by_importance",
    "denial_changes",
    "diff",
    "entitlements",
    "explain",
    "explain_scope",
    "headline_of",
    "hosts_are_covered",
    "is_allow",
    "meets",
    "minimize",
    "most_important",
    "name_is_matched",
    "necessity",
    "operations_of",
    "parse_duties",
    "parse_policy",
    "verify",
    "what_can",
    "who_can",
    "with_groups",
]
