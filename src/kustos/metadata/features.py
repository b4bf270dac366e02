"""Feature levels, and what each metadata.version allows (`MetadataVersion` of Kafka 4.4.0)."""

from collections.abc import Mapping
from typing import Final

METADATA_VERSION_FEATURE: Final = "metadata.version"

METADATA_VERSION_NAMES: Final[dict[int, str]] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
    32: "4.4-IV1",
    33: "4.4-IV2",
}
"""Level to name; 34 and up are not in production in 4.4."""

MINIMUM_LEVEL: Final = min(METADATA_VERSION_NAMES)
LATEST_LEVEL: Final = max(METADATA_VERSION_NAMES)
DEFAULT_LEVEL: Final = 30
"""4.3-IV0: the newest that the published Kafka tools read."""

METADATA_CHANGING_LEVELS: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""Levels that added records, or fields of records, that a lower level cannot hold."""

SCRAM_LEVEL: Final = 11
DELEGATION_TOKEN_LEVEL: Final = 14
CONTROLLER_REGISTRATION_LEVEL: Final = 15
CIDR_ACL_LEVEL: Final = 32

OTHER_FEATURES_MAX: Final[Mapping[str, int]] = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}
"""Other features that a Kafka log may have finalized, with their highest production level (`Feature` of
4.4.0)."""


def unknown_level_text(name: str, level: int) -> str | None:
    """Return the error text for a feature at an unknown level, None if it is known.

    Kafka's controllers stop at such a record too: "this controller only supports versions ...".
    """
    if name == METADATA_VERSION_FEATURE:
        if level in METADATA_VERSION_NAMES:
            return None
        return f"{name} level {level} is not known here, only levels {MINIMUM_LEVEL} to {LATEST_LEVEL} are"
    highest = OTHER_FEATURES_MAX.get(name)
    if highest is None:
        return f"the feature `{name}` (at level {level}) is not known here"
    return None if level <= highest else f"{name} level {level} is not known here, only up to {highest} is"


def changes_metadata(level: int, other: int) -> bool:
    """Return whether a downgrade from the higher of two levels to the lower may lose records."""
    low, high = sorted((level, other))
    return any(low < each <= high for each in METADATA_CHANGING_LEVELS)


def metadata_version_name(level: int) -> str:
    """Return the name of a level, such as `4.3-IV0`; an unknown level is shown as its number."""
    return METADATA_VERSION_NAMES.get(level, str(level))


def metadata_version_level(name: str) -> int | None:
    """Return the level of a name such as `4.3-IV0`, or of a release such as `4.3`; None if unknown.

    A release means its newest level, as in `kafka-storage format --release-version`.
    """
    found = [
        level
        for level, known in METADATA_VERSION_NAMES.items()
        if name == known or known.startswith(f"{name}-IV")
    ]
    return max(found, default=None)
