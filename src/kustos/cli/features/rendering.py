"""Output of feature levels."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from kustos.cli.output import Column, Columns, OutputFormat, print_rows

Levels = Mapping[str, tuple[int, int, int]]
"""The lowest and highest supported levels and the current one, by feature."""

_Row = dict[str, str]

FEATURES: Final[Columns[_Row]] = Columns(
    (
        Column("feature", itemgetter("feature")),
        Column("supported_min_version", itemgetter("supported_min_version"), title="supported from"),
        Column("supported_max_version", itemgetter("supported_max_version"), title="supported to"),
        Column("finalized_version_level", itemgetter("finalized_version_level"), title="finalized"),
    ),
    lambda row: (row["feature"],),
    "the features",
)


def print_levels(levels: Levels, output: OutputFormat) -> None:
    """Print the features by name; levels of metadata.version have their own names."""
    rows = [
        {
            "feature": name,
            "supported_min_version": _level(name, lowest),
            "supported_max_version": _level(name, highest),
            "finalized_version_level": _level(name, level),
        }
        for name, (lowest, highest, level) in sorted(levels.items())
    ]
    print_rows(FEATURES, rows, output, document=lambda: {"features": rows})


def _level(name: str, level: int) -> str:
    from kustos.metadata import METADATA_VERSION_FEATURE, metadata_version_name

    return metadata_version_name(level) if name == METADATA_VERSION_FEATURE else str(level)
