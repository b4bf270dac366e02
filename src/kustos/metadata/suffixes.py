"""How the names of a metadata log's files end; by itself, so that telling one by its name loads nothing."""

from typing import Final

SNAPSHOT_SUFFIX: Final = ".checkpoint"
SEGMENT_SUFFIX: Final = ".log"
METADATA_SUFFIXES: Final = frozenset({SNAPSHOT_SUFFIX, SEGMENT_SUFFIX})
