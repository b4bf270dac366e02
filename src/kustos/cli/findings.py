"""How the findings of lint look: for people, for programs, as SARIF."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kustos.acl import ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis.lint import Finding, Listing, Severity, sarif_of
from kustos.analysis.lint.findings import acl_text
from kustos.cli.acl_sources import STANDARD_INPUT, AclListing, read_text
from kustos.cli.output import OutputFormat, counted, print_json, print_lines, print_paragraph
from kustos.runtime import FileSystemStorage


def existing_names(topics: str | None, groups: str | None) -> Listing:
    """Return the names in files with one a line, for those types that have a file."""
    files = {ResourceType.TOPIC: topics, ResourceType.GROUP: groups}
    return {
        kind: frozenset(line for line in read_text(file).split("\n") if line)
        for kind, file in files.items()
        if file is not None
    }


def print_findings(found: Sequence[Finding], listing: AclListing, output: OutputFormat) -> None:
    """Print them for a person, or as one document for a program."""
    if output is OutputFormat.JSON:
        print_json(_document(found, listing))
        return
    for finding in found:
        binding = listing.located[finding.number].binding
        print_lines(f"{_place(finding.number, listing)}: {finding.severity.value} {finding.code}")
        print_paragraph(acl_text(binding), indent="    ", first="  ")
        if finding.message != acl_text(binding):
            print_paragraph(finding.message.removeprefix(f"{acl_text(binding)} "), indent="    ")
        print_paragraph(finding.fix, indent="      ", first="    fix: ")
        print_lines("")
    acls = counted(len(listing.located), "ACL")
    if not found:
        print_lines(f"nothing found in {acls}")
        return
    counts = Counter(finding.severity for finding in found)
    told = [counted(counts[severity], severity.value) for severity in Severity if counts[severity]]
    print_lines(f"{', '.join(told)} in {acls}")


def _place(number: int, listing: AclListing) -> str:
    line = listing.located[number].line
    return f"{listing.path}:{line}" if listing.path is not None and line else listing.name


def _document(found: Sequence[Finding], listing: AclListing) -> dict[str, Any]:
    counts = Counter(finding.severity for finding in found)
    return {
        "source": listing.name,
        "acls": len(listing.located),
        "counts": {severity.value: counts[severity] for severity in Severity},
        "findings": [
            {
                **finding.to_json(),
                "line": listing.located[finding.number].line or None,
                "acl": texts_of(listing.located[finding.number].binding),
                "related": [
                    {
                        "line": listing.located[number].line or None,
                        "acl": texts_of(listing.located[number].binding),
                    }
                    for number in finding.related
                ],
            }
            for finding in found
        ],
    }


def write_sarif(target: str, found: Sequence[Finding], listing: AclListing) -> None:
    """Write the findings to a file, or to standard output; places are those of a file read by its path."""
    from kustos import __version__

    path = listing.path if listing.path != "standard input" else None
    uri = None if path is None else _uri(path)

    def locate(number: int) -> tuple[str, int] | None:
        return None if uri is None else (uri, listing.located[number].line)

    log = sarif_of(found, [each.binding for each in listing.located], locate, __version__)
    text = json.dumps(log, indent=2) + "\n"
    if target == STANDARD_INPUT:
        sys.stdout.write(text)
    else:
        FileSystemStorage().write(Path(target), text.encode())


def _uri(path: str) -> str:
    """Return a path as SARIF wants it: relative to where the command ran if it is below, else absolute."""
    file = Path(path)
    if file.is_absolute() and file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
