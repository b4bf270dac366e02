"""Lint of ACL sets: finds ACLs that are useless, too broad, or without the effect that their author intended.

Each finding has a stable code (`codes`). "Redundant" and similar findings are exact (`necessity`).
"""

from collections.abc import Sequence
from typing import Final

from kustos.acl import AclBinding
from kustos.analysis.kernel import ACLS_ALONE, Rules
from kustos.analysis.lint.codes import LINT_CODES, LintCode, Severity
from kustos.analysis.lint.entries import entry_findings
from kustos.analysis.lint.findings import Finding, Listing, acl_text
from kustos.analysis.lint.sarif import Locator, sarif_of
from kustos.analysis.lint.sets import SetFindings, duplicate_findings, listing_findings, sorted_listing

_NEVER_DECIDES: Final = frozenset({"KUS202", "KUS301", "KUS406", "KUS501"})
"""Codes that already imply that an ACL changes no decision."""

_NO_NAME: Final = frozenset({"KUS203", "KUS204", "KUS206"})
"""Codes that already imply that no resource has the name."""


def lint(
    bindings: Sequence[AclBinding], settings: Rules = ACLS_ALONE, listing: Listing | None = None
) -> list[Finding]:
    """Return the findings in the order of the ACLs; several findings of one ACL are ordered worst first.

    `settings`: the settings of the brokers. `listing`: the names of the existing resources, for the types
    whose ACLs on missing resources are reported. The time is nearly linear in the number of ACLs.
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


__all__ = [
    "LINT_CODES",
    "Finding",
    "LintCode",
    "Listing",
    "Locator",
    "Severity",
    "acl_text",
    "entry_findings",
    "lint",
    "sarif_of",
]
