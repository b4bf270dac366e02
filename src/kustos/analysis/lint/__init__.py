"""Lint of ACL sets: what is of no use, too wide, or never does what its author meant.

Each finding has a code that stays (`codes`). "Redundant" and its kin are exact (`necessity`).
"""

from collections.abc import Sequence
from typing import Final

from kustos.acl import AclBinding
from kustos.analysis.lint.codes import LINT_CODES, LintCode, Severity
from kustos.analysis.lint.entries import entry_findings
from kustos.analysis.lint.findings import Finding, Listing
from kustos.analysis.lint.sarif import Locator, sarif_of
from kustos.analysis.lint.sets import SetFindings, duplicate_findings, listing_findings, sorted_listing
from kustos.analysis.rules import ACLS_ALONE, Rules

__all__ = [
    "LINT_CODES",
    "Finding",
    "LintCode",
    "Listing",
    "Locator",
    "Severity",
    "lint",
    "sarif_of",
]

_NEVER_DECIDES: Final = frozenset({"KUS202", "KUS301", "KUS406", "KUS501"})
"""Codes after which it needs no saying that an ACL changes no decision."""

_NO_NAME: Final = frozenset({"KUS203", "KUS204", "KUS206"})
"""Codes after which it needs no saying that no resource has the name."""


def lint(
    bindings: Sequence[AclBinding], settings: Rules = ACLS_ALONE, listing: Listing | None = None
) -> list[Finding]:
    """Return what is found, in the order of the ACLs, the worst first where one has several.

    `settings` are those of the brokers. `listing` names the resources that exist, for the types of which
    it is to be told where an ACL's resource does not. Near-linear in the number of ACLs.
    """
    numbers: dict[AclBinding, int] = {}
    for number, binding in enumerate(bindings):
        numbers.setdefault(binding, number)
    unique = list(numbers)
    existing = sorted_listing(listing or {})
    alone: list[Finding] = []
    for number, binding in enumerate(unique):
        own = list(entry_findings(number, binding))
        alone += own
        names = existing.get(binding.pattern.resource_type)
        if names is not None and not any(finding.code in _NO_NAME for finding in own):
            alone += listing_findings(number, binding, names)
    silent = {finding.number for finding in alone if finding.code in _NEVER_DECIDES}
    together = SetFindings(unique, settings).findings(silent)
    places = list(numbers.values())
    found = [_moved(finding, places) for finding in (*alone, *together)]
    found += duplicate_findings(bindings)
    return sorted(found, key=lambda finding: (finding.number, finding.severity.rank, finding.code))


def _moved(finding: Finding, places: Sequence[int]) -> Finding:
    related = tuple([places[number] for number in finding.related])
    return Finding(finding.code, places[finding.number], finding.message, finding.fix, related)
