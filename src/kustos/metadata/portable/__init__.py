"""Metadata as lines of JSON, to be carried from one cluster to another: written, read, taken in."""

from kustos.metadata.portable.lines import (
    Export,
    LocatedRecord,
    PortableError,
    export_lines,
    read_export,
)
from kustos.metadata.portable.taking_in import take_in

__all__ = ["Export", "LocatedRecord", "PortableError", "export_lines", "read_export", "take_in"]
