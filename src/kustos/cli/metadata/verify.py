"""`kustos metadata verify`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import DocumentOutput, IgnoreTornTail
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.metadata.inspection import Verification

EXAMPLES = """
kustos metadata verify /var/lib/kustos/metadata
kustos metadata verify \\
    /var/lib/kafka/__cluster_metadata-0/00000000000000000000.log -o json
"""

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Directories, segments (.log), snapshots (.checkpoint)."),
]


def verify(
    paths: Paths, ignore_torn_tail: IgnoreTornTail = False, output: DocumentOutput = OutputFormat.TABLE
) -> int:
    """Check that metadata logs and snapshots are whole.

    Checks checksums, offsets and epochs of all batches, that every record can be read, and that each
    snapshot equals the log up to its end. If something is damaged, or a log ends in an unfinished write,
    it reports the file, the offset and the remedy, and exits with 1. Nothing is changed or locked. For a
    single file it checks the content only.
    """
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import print_document
    from kustos.cli.terminal import counting_progress
    from kustos.metadata.inspection import files_of
    from kustos.metadata.inspection import verify as verify_files
    from kustos.runtime import FileSystemStorage

    storage = FileSystemStorage()
    files = [file for path in paths for file in files_of(path, storage)]
    total_bytes = sum(file.path.stat().st_size for file in files if file.path.exists())
    with counting_progress("checking", total_bytes) as advance:
        found = verify_files(paths, storage, advance)
    if output.is_document:
        print_document(_document(found), output)
    else:
        _print(found)
    is_fine = not found.damage if ignore_torn_tail else found.is_whole
    return ExitCode.OK if is_fine else ExitCode.FAILED


def _document(found: "Verification") -> dict[str, Any]:
    return {
        "whole": found.is_whole,
        "segments": found.segments,
        "snapshots": found.snapshots,
        "batches": found.batches,
        "records": found.records,
        "compared_snapshots": found.compared_snapshots,
        "first_offset": found.first_offset,
        "last_offset": found.last_offset,
        "notes": found.notes,
        "torn": [
            {"file": str(each.path), "offset": each.next_offset, "size_bytes": each.torn_size_bytes}
            for each in found.torn
        ],
        "damage": [
            {"file": str(each.path), "offset": each.offset, "message": each.message} for each in found.damage
        ],
    }


def _print(found: "Verification") -> None:
    from kustos.cli.output import counted, print_paragraph

    offsets = ""
    if found.first_offset is not None:
        offsets = f", offsets {found.first_offset} to {found.last_offset}"
    print_paragraph(
        f"checked {counted(found.segments, 'segment')} and {counted(found.snapshots, 'snapshot')}: "
        f"{found.batches} batches, {counted(found.records, 'record')}{offsets}; "
        f"{counted(found.compared_snapshots, 'snapshot')} compared with the log"
    )
    for note in found.notes:
        print_paragraph(note, indent="      ", first="note: ")
    for torn in found.torn:
        print_paragraph(str(torn.error()), indent="      ", first="torn: ")
    for damage in found.damage:
        print_paragraph(damage.message, indent="         ", first="damaged: ")
    if found.damage:
        print_paragraph(f"{counted(len(found.damage), 'place')} damaged")
    else:
        print_paragraph("whole, except an unfinished write at the end" if found.torn else "whole")
