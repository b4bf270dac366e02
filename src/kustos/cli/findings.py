"""Output of lint's findings: for people, for programs, as SARIF."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from kustos.acl import ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis.lint import Finding, Listing, Severity, acl_text, sarif_of
from kustos.cli.acl_source import LoadedAcls
from kustos.cli.output import (
    Column,
    ColumnFormats,
    Columns,
    OutputFormat,
    Words,
    counted,
    print_lines,
    print_paragraph,
    print_rows,
)
from kustos.cli.text_files import STANDARD_INPUT, read_text
from kustos.runtime import FileSystemStorage


def existing_names(topics: str | None, groups: str | None) -> Listing:
    """Return the names in files with one name per line, for the types that have a file."""
    files = {ResourceType.TOPIC: topics, ResourceType.GROUP: groups}
    return {
        kind: frozenset(line for line in read_text(file).split("\n") if line)
        for kind, file in files.items()
        if file is not None
    }


_Found = tuple[Finding, LoadedAcls]

FINDINGS: Final[Columns[_Found]] = Columns(
    (
        Column("place", lambda row: _place(row[0].number, row[1])),
        Column("severity", lambda row: row[0].severity.value),
        Column("code", lambda row: row[0].code),
        Column("name", lambda row: row[0].kind.name, ColumnFormats.WIDE),
        Column("message", lambda row: Words(row[0].message)),
        Column("fix", lambda row: Words(row[0].fix), ColumnFormats.WIDE),
    ),
    lambda row: (row[0].code,),
    "the codes, as `--ignore` takes them",
)


def print_findings(found: Sequence[Finding], loaded: LoadedAcls, output: OutputFormat) -> None:
    """Print the findings for a person, or as one document for a program."""
    print_rows(
        FINDINGS,
        [(finding, loaded) for finding in found],
        output,
        document=lambda: _document(found, loaded),
        tail=(_summary(found, loaded),),
        people=lambda: _print_for_people(found, loaded),
    )


def _print_for_people(found: Sequence[Finding], loaded: LoadedAcls) -> None:
    for finding in found:
        binding = loaded.located[finding.number].binding
        print_lines(f"{_place(finding.number, loaded)}: {finding.severity.value} {finding.code}")
        print_paragraph(acl_text(binding), indent="    ", first="  ")
        if finding.message != acl_text(binding):
            print_paragraph(finding.message.removeprefix(f"{acl_text(binding)} "), indent="    ")
        print_paragraph(finding.fix, indent="      ", first="    fix: ")
        print_lines("")
    print_lines(_summary(found, loaded))


def _summary(found: Sequence[Finding], loaded: LoadedAcls) -> str:
    acls = counted(len(loaded.located), "ACL")
    if not found:
        return f"nothing found in {acls}"
    counts = Counter(finding.severity for finding in found)
    totals = [counted(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return f"{', '.join(totals)} in {acls}"


def _place(number: int, loaded: LoadedAcls) -> str:
    line = loaded.located[number].line
    return f"{loaded.path}:{line}" if loaded.path is not None and line else loaded.name


def _document(found: Sequence[Finding], loaded: LoadedAcls) -> dict[str, Any]:
    counts = Counter(finding.severity for finding in found)
    return {
        "source": loaded.name,
        "acls": len(loaded.located),
        "settings": loaded.settings.to_json(),
        "counts": {severity.value: counts[severity] for severity in Severity},
        "findings": [
            {
                **finding.to_json(),
                "line": loaded.located[finding.number].line or None,
                "acl": texts_of(loaded.located[finding.number].binding),
                "related": [
                    {
                        "line": loaded.located[number].line or None,
                        "acl": texts_of(loaded.located[number].binding),
                    }
                    for number in finding.related
                ],
            }
            for finding in found
        ],
    }


def write_sarif(target: str, found: Sequence[Finding], loaded: LoadedAcls) -> None:
    """Write the findings to a file or standard output, with locations if the ACLs came from a file path."""
    from kustos import __version__

    path = loaded.path if loaded.path != "standard input" else None
    uri = None if path is None else _uri(path)

    def locate(number: int) -> tuple[str, int] | None:
        return None if uri is None else (uri, loaded.located[number].line)

    log = sarif_of(found, [each.binding for each in loaded.located], locate, __version__)
    text = json.dumps(log, indent=2) + "\n"
    if target == STANDARD_INPUT:
        sys.stdout.write(text)
    else:
        FileSystemStorage().write(Path(target), text.encode())


def _uri(path: str) -> str:
    """Return a path as a SARIF URI: relative to the working directory if it is below, else absolute."""
    file = Path(path)
    if file.is_absolute() and file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
