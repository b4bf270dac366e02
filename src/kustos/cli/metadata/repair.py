"""`kustos metadata repair`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.metadata.directory import Repair

EXAMPLES = """
kustos metadata repair /var/lib/kustos/metadata --dry-run
kustos metadata repair /var/lib/kustos/metadata
kustos metadata repair /var/lib/kustos/metadata --yes -o json
"""

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory of a metadata log that no node has open.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Repair without confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and change nothing.")]


def repair(
    directory: Directory,
    yes: Yes = False,
    dry_run: DryRun = False,
    output: DocumentOutput = OutputFormat.TABLE,
) -> int:
    """Remove the damaged part of a metadata log.

    Keeps the newest readable snapshot and the log after it up to the damage. All later changes are lost,
    although they were acknowledged: ACLs created since then are gone, and ACLs deleted since then are back.
    Files next to the log keep the removed bytes. If you have a copy of the directory, restore that instead.
    With --dry-run the exit code is 5 if there is something to remove.
    """
    from kustos.cli.failures import ExitCode
    from kustos.cli.terminal import confirm
    from kustos.metadata.directory import carry_out, plan_repair
    from kustos.metadata.inspection import metadata_directory
    from kustos.runtime import FileSystemStorage

    storage = FileSystemStorage()
    plan = plan_repair(metadata_directory(directory, storage), storage)
    if plan is not None and not dry_run:
        if not yes:
            confirm("cut the metadata log", _lines(plan), "--yes")
        carry_out(plan, storage)
    if output.is_document:
        _print_document(directory, plan, output, is_done=plan is not None and not dry_run)
    else:
        _print(directory, plan, dry_run=dry_run)
    return ExitCode.NO if dry_run and plan is not None else ExitCode.OK


def _lines(plan: "Repair") -> list[str]:
    from kustos.cli.output import counted

    lines = [plan.reason]
    if plan.known_end_offset is not None and plan.known_end_offset > plan.end_offset:
        lost = f"{plan.end_offset} to {plan.known_end_offset - 1}"
        lines.append(f"given up: offsets {lost}, which were acknowledged")
    else:
        lines.append(f"given up: everything from offset {plan.end_offset} on")
    lines += [
        f"cut: {counted(cut.size_bytes, 'byte')} from byte {cut.position} of `{cut.path}` on, "
        f"kept in `{cut.kept_as}`"
        for cut in plan.cuts
    ]
    return lines


def _print(directory: Path, plan: "Repair | None", *, dry_run: bool) -> None:
    from kustos.cli.output import print_paragraph

    if plan is None:
        print_paragraph(f"`{directory}` can be read as it is: nothing to repair")
        return
    for line in _lines(plan):
        print_paragraph(line, indent="  ", first="")
    done = "would end" if dry_run else "now ends"
    print_paragraph(f"the log {done} at offset {plan.end_offset - 1}")


def _print_document(directory: Path, plan: "Repair | None", output: OutputFormat, *, is_done: bool) -> None:
    from kustos.cli.output import print_document

    document: dict[str, Any] = {"directory": str(directory), "needed": plan is not None, "done": is_done}
    if plan is not None:
        document |= {
            "reason": plan.reason,
            "last_offset": plan.end_offset - 1,
            "known_last_offset": None if plan.known_end_offset is None else plan.known_end_offset - 1,
            "cut": [
                {
                    "file": str(cut.path),
                    "position": cut.position,
                    "size_bytes": cut.size_bytes,
                    "kept_as": str(cut.kept_as),
                }
                for cut in plan.cuts
            ],
        }
    print_document(document, output)
