"""`kustos metadata dump`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kustos.cli.options import IgnoreTornTail
from kustos.cli.output import StreamFormat

if TYPE_CHECKING:
    from kustos.cli.output import Columns
    from kustos.metadata.inspection import DumpedBatch, DumpedRecord, MetadataFile, TornBytes

EXAMPLES = """
kustos metadata dump /var/lib/kustos/metadata
kustos metadata dump \\
    /var/lib/kafka/__cluster_metadata-0/00000000000000000000.log
kustos metadata dump /var/lib/kustos/metadata -o json-lines | jq .type
"""

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Segments (.log), snapshots (.checkpoint), directories of them."),
]
RecordsOutput = Annotated[
    StreamFormat,
    typer.Option(
        "--output",
        "-o",
        help="The output format; `wide` has more columns, `json-lines` one object per line.",
    ),
]
"""`--output` of a command that prints records as it reads them."""


def dump(
    paths: Paths, ignore_torn_tail: IgnoreTornTail = False, output: RecordsOutput = StreamFormat.TABLE
) -> int:
    """Show the batches and records in files of metadata logs.

    Reads files of kustos and of Kafka, and changes and locks nothing. Records have the names and
    fields of kafka-dump-log, and are printed as they are read. Secrets are hidden: salts and keys of
    SCRAM credentials, and the values of broker settings. Unknown records are shown by their number and
    size.

    Use `kustos metadata verify` to find damage: this command stops at unreadable bytes with exit code 1, and
    then the document of `json` has no end. It reports an unfinished write at the end of a log, and exits
    with 1 unless --ignore-torn-tail is given: an incomplete copy ends in the same way.
    """
    from kustos.cli.failures import ExitCode
    from kustos.cli.output import is_terminal, stream_rows

    reading = _DumpedFiles(paths)
    if output is StreamFormat.TABLE and is_terminal():
        _print_for_people(reading)
    else:
        stream_rows(record_columns(), reading.rows(), output, member="records", document=_document)
    return ExitCode.FAILED if reading.is_torn and not ignore_torn_tail else ExitCode.OK


@dataclass(frozen=True, slots=True)
class _Row:
    """A record and its position."""

    file: "MetadataFile"
    batch: "DumpedBatch"
    record: "DumpedRecord"


class _DumpedFiles:
    """The contents of the files, read in parts; `is_torn` if one of them ended in an unfinished write.

    Raises `MetadataError` for paths of other files, before reading anything.
    """

    def __init__(self, paths: list[Path]) -> None:
        from kustos.metadata.inspection import files_of
        from kustos.runtime import FileSystemStorage

        self._storage = FileSystemStorage()
        self._files = [file for path in paths for file in files_of(path, self._storage)]
        self.is_torn = False

    def files(self) -> "Iterator[tuple[MetadataFile, Iterator[DumpedBatch]]]":
        """Yield each file with an iterator over its batches."""
        for file in self._files:
            yield file, self._batches(file)

    def _batches(self, file: "MetadataFile") -> "Iterator[DumpedBatch]":
        from kustos.metadata.inspection import TornBytes, dump_file

        for part in dump_file(file, self._storage):
            if isinstance(part, TornBytes):
                self.is_torn = True
                _warn_torn(file, part)
            else:
                yield part

    def rows(self) -> Iterator[_Row]:
        """Yield the records of all files."""
        for file, batches in self.files():
            for batch in batches:
                for record in batch.records:
                    yield _Row(file, batch, record)


def record_columns() -> "Columns[_Row]":
    """Return the columns of a record."""
    from kustos.cli.output import Column, ColumnFormats, Columns, Words
    from kustos.metadata.inspection import moment_text

    def name_of(row: _Row) -> tuple[str, ...]:
        return (str(row.record.offset),) if row.file.snapshot_id is None else ()

    return Columns(
        (
            Column("file", lambda row: str(row.file.path), ColumnFormats.WIDE),
            Column("offset", lambda row: str(row.record.offset)),
            Column("position", lambda row: str(row.batch.position), ColumnFormats.WIDE),
            Column("epoch", lambda row: row.batch.batch.partition_leader_epoch, ColumnFormats.WIDE),
            Column("timestamp", lambda row: moment_text(row.record.time_ms), title="time"),
            Column("type", lambda row: row.record.shown.kind),
            Column("version", lambda row: row.record.shown.version, ColumnFormats.WIDE),
            Column("size_bytes", lambda row: row.record.size_bytes, ColumnFormats.WIDE),
            Column("fields", lambda row: Words(_fields(row.record)), ColumnFormats.NARROW),
            Column("value", lambda row: Words(_json_value(row.record)), ColumnFormats.WIDE),
            Column("note", lambda row: Words(row.record.shown.note or ""), ColumnFormats.WIDE),
        ),
        name_of,
        "the offsets of the log, for `DIR@OFFSET`; records of snapshots have none",
    )


def _json_value(record: "DumpedRecord") -> str:
    return "" if record.shown.value is None else json.dumps(record.shown.value)


def _document(row: _Row) -> dict[str, Any]:
    from kustos.metadata.inspection import moment_text

    record = row.record
    document: dict[str, Any] = {
        "file": str(row.file.path),
        "offset": record.offset,
        "position": row.batch.position,
        "epoch": row.batch.batch.partition_leader_epoch,
        "timestamp": moment_text(record.time_ms),
        "type": record.shown.kind,
        "version": record.shown.version,
        "size_bytes": record.size_bytes,
        "value": record.shown.value,
    }
    if record.shown.note is not None:
        document["note"] = record.shown.note
    return document


def _print_for_people(reading: _DumpedFiles) -> None:
    from kustos.cli.output import print_lines

    for number, (file, batches) in enumerate(reading.files()):
        print_lines(*[""][:number], str(file.path))
        for batch in batches:
            _print_batch(batch)


def _print_batch(batch: "DumpedBatch") -> None:
    from kustos.cli.output import print_lines, print_paragraph
    from kustos.metadata.inspection import moment_text

    whole = batch.batch
    print_lines(
        f"  batch {whole.base_offset}-{whole.last_offset}  {moment_text(whole.max_timestamp_ms)}  "
        f"epoch {whole.partition_leader_epoch}  {batch.size_bytes} bytes at {batch.position}"
    )
    for record in batch.records:
        print_paragraph(_words(record), indent=" " * 13, first=f"{record.offset:11d}  ")


def _words(record: "DumpedRecord") -> str:
    return f"{record.shown.kind} {_fields(record)}".rstrip(" ")


def _fields(record: "DumpedRecord") -> str:
    from kustos.metadata.inspection import field_text

    shown = record.shown
    if shown.value is None:
        version = "" if shown.version is None else f"version {shown.version}, "
        return f"({version}{record.size_bytes} bytes: {shown.note})"
    return " ".join(f"{name}={field_text(shown.kind, name, value)}" for name, value in shown.value.items())


def _warn_torn(file: "MetadataFile", torn: "TornBytes") -> None:
    from kustos.cli.output import counted, print_notice

    print_notice(
        "note",
        f"{file.path}: the last {counted(torn.size_bytes, 'byte')}, from {torn.position} on, are an "
        "unfinished write: either a crash left them, and the next start removes them, or the file is an "
        "incomplete copy, and records are missing",
    )
