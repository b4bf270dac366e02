"""`kustos metadata dump`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kustos.metadata.inspection.dump import DumpedBatch, DumpedRecord, TornBytes
    from kustos.metadata.inspection.files import MetadataFile

EXAMPLES = """
kustos metadata dump /var/lib/kustos/metadata
kustos metadata dump \\
    /var/lib/kafka/__cluster_metadata-0/00000000000000000000.log
kustos metadata dump /var/lib/kustos/metadata --json | jq .type
"""

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Segments (.log), snapshots (.checkpoint), directories of them."),
]
JsonLines = Annotated[bool, typer.Option("--json", help="One JSON object a line for each record.")]


def dump(paths: Paths, json_lines: JsonLines = False) -> None:
    """Show the batches and records in files of metadata logs.

    Files are kustos' own or a real Kafka's; nothing is changed or locked. Records have the names and
    fields of kafka-dump-log. Secrets are not shown: neither salts and keys of SCRAM
    credentials nor what settings of brokers are set to. Records
    that nobody here knows are shown by their number and size. What is damaged is for
    `kustos metadata verify`: here reading ends at bytes that cannot be read, with exit code 1.
    """
    from kustos.cli.output import print_lines
    from kustos.metadata.inspection.dump import TornBytes, dump_file
    from kustos.metadata.inspection.files import files_of
    from kustos.runtime import FileSystemStorage

    storage = FileSystemStorage()
    for number, file in enumerate([file for path in paths for file in files_of(path, storage)]):
        if not json_lines:
            print_lines(*[""][:number], str(file.path))
        for part in dump_file(file, storage):
            if isinstance(part, TornBytes):
                _print_torn(file, part, json_lines)
            elif json_lines:
                _print_json(file, part)
            else:
                _print_batch(part)


def _print_json(file: "MetadataFile", batch: "DumpedBatch") -> None:
    import json

    from kustos.metadata.inspection.moments import moment_text

    for record in batch.records:
        document: dict[str, Any] = {
            "file": str(file.path),
            "offset": record.offset,
            "epoch": batch.batch.partition_leader_epoch,
            "timestamp": moment_text(record.time_ms),
            "type": record.shown.kind,
            "version": record.shown.version,
            "size_bytes": record.size_bytes,
            "value": record.shown.value,
        }
        if record.shown.note is not None:
            document["note"] = record.shown.note
        print(json.dumps(document))


def _print_batch(batch: "DumpedBatch") -> None:
    from kustos.cli.output import print_lines, print_paragraph
    from kustos.metadata.inspection.moments import moment_text

    whole = batch.batch
    print_lines(
        f"  batch {whole.base_offset}-{whole.last_offset}  {moment_text(whole.max_timestamp_ms)}  "
        f"epoch {whole.partition_leader_epoch}  {batch.size_bytes} bytes at {batch.position}"
    )
    for record in batch.records:
        print_paragraph(_words(record), indent=" " * 13, first=f"{record.offset:11d}  ")


def _words(record: "DumpedRecord") -> str:
    from kustos.metadata.inspection.shown import field_text

    shown = record.shown
    if shown.value is None:
        version = "" if shown.version is None else f" version {shown.version}"
        return f"{shown.kind}{version}, {record.size_bytes} bytes: {shown.note}"
    return " ".join(
        [
            shown.kind,
            *(f"{name}={field_text(shown.kind, name, value)}" for name, value in shown.value.items()),
        ]
    )


def _print_torn(file: "MetadataFile", torn: "TornBytes", json_lines: bool) -> None:
    import sys

    from kustos.cli.output import counted, print_lines, printable

    size = counted(torn.size_bytes, "byte")
    text = f"the last {size}, from {torn.position} on, are an unfinished write that the next start cuts"
    if json_lines:
        sys.stderr.write(f"note: {printable(str(file.path))}: {text}\n")
    else:
        print_lines(f"  {text}")
