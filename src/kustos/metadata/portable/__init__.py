"""Metadata as lines of JSON, for transfer between clusters: export, parsing, import."""

from kustos.metadata.portable.importer import apply_export
from kustos.metadata.portable.lines import (
    Export,
    LocatedRecord,
    PortableError,
    export_lines,
    left_out,
    read_export,
)

__all__ = [
    "Export",
    "LocatedRecord",
    "PortableError",
    "apply_export",
    "export_lines",
    "left_out",
    "read_export",
]
