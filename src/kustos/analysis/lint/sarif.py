"""Findings as SARIF 2.1.0, the format in which code hosts show the findings of static analysis.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0. The log has the required properties and the
properties that viewers use: rules, results, levels, locations, fingerprints.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from kustos.acl import AclBinding
from kustos.analysis.lint.codes import LINT_CODES
from kustos.analysis.lint.findings import Finding, acl_text

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

Locator = Callable[[int], tuple[str, int] | None]
"""Maps the index of an ACL to its file, as a URI, and its line (from 1); None without a location."""

_FINGERPRINT: Final = "kustosAcl/v1"


def sarif_of(
    findings: Sequence[Finding], bindings: Sequence[AclBinding], locate: Locator, version: str
) -> dict[str, Any]:
    """Return one SARIF log with one run; the log lists every code as a rule, even without findings."""
    indices = {code: index for index, code in enumerate(LINT_CODES)}
    rules = [
        {
            "id": kind.code,
            "name": kind.name,
            "shortDescription": {"text": kind.summary},
            "fullDescription": {"text": kind.why},
            "help": {"text": kind.fix},
            "defaultConfiguration": {"level": kind.severity.value},
        }
        for kind in LINT_CODES.values()
    ]
    results = [_result(finding, bindings, locate, indices[finding.code]) for finding in findings]
    driver = {"name": "kustos", "version": version, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, bindings: Sequence[AclBinding], locate: Locator, index: int) -> dict[str, Any]:
    binding = bindings[finding.number]
    identity = f"{finding.code}|{binding.audit_text()}".encode()
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": finding.severity.value,
        "message": {"text": f"{finding.message}; {finding.fix}"},
        "partialFingerprints": {_FINGERPRINT: hashlib.sha256(identity).hexdigest()[:32]},
    }
    location = _location(finding.number, locate)
    if location is not None:
        result["locations"] = [location]
    related = [
        {**place, "id": number, "message": {"text": acl_text(bindings[other])}}
        for number, other in enumerate(finding.related)
        if (place := _location(other, locate)) is not None
    ]
    if related:
        result["relatedLocations"] = related
    return result


def _location(number: int, locate: Locator) -> dict[str, Any] | None:
    found = locate(number)
    if found is None:
        return None
    uri, line = found
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}
