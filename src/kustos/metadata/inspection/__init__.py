"""Inspects the files of a metadata log, ours or a real Kafka's, without changing them."""

from kustos.metadata.inspection.dump import DumpedBatch, DumpedRecord, TornBytes, dump_file
from kustos.metadata.inspection.files import MetadataFile, files_of, metadata_directory
from kustos.metadata.inspection.moments import Moment, moment_text
from kustos.metadata.inspection.requesters import (
    AdminEvent,
    AuditTrailError,
    RequestedBy,
    Requesters,
    admin_events,
)
from kustos.metadata.inspection.shell import MetadataShell, ShellError
from kustos.metadata.inspection.shown import field_text
from kustos.metadata.inspection.sources import DirectorySource, FileSource, ImageSource, PastSource
from kustos.metadata.inspection.timeline import LoggedChange, Passage, StateAt, Timeline
from kustos.metadata.inspection.tree import tree_of
from kustos.metadata.inspection.verification import Verification, verify

__all__ = [
    "AdminEvent",
    "AuditTrailError",
    "DirectorySource",
    "DumpedBatch",
    "DumpedRecord",
    "FileSource",
    "ImageSource",
    "LoggedChange",
    "MetadataFile",
    "MetadataShell",
    "Moment",
    "Passage",
    "PastSource",
    "RequestedBy",
    "Requesters",
    "ShellError",
    "StateAt",
    "Timeline",
    "TornBytes",
    "Verification",
    "admin_events",
    "dump_file",
    "field_text",
    "files_of",
    "metadata_directory",
    "moment_text",
    "tree_of",
    "verify",
]
