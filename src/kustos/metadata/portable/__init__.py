"""Metadata as lines of JSON, for transfer between clusters: export, parsing, import."""

from kustos.metadata.portable.lines import (
    Export,
    LocatedRecord,
    PortableError,
    export_lines,
    left_out,
    read_export,
)
from kustos.metadata.portable.taking_in import take_in

__all__ = [
    "Export",
    "LocatedRecord",
    "PortableError",
    "export_lines",
    "left_out",
    "read_export",
    "take_in",
]
