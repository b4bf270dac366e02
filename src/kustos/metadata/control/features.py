"""Changing finalized feature levels: a pure function of an image, after `FeatureControlManager`.

The one feature of this log is metadata.version (KIP-584, KIP-778). It can be raised, and lowered as long as
no record kind is lost; Kafka 4 offers no lossy downgrade either. If one update fails, all fail.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from kustos.metadata.control.results import ApiError, ControlResult
from kustos.metadata.features import (
    LATEST_LEVEL,
    METADATA_VERSION_FEATURE,
    MINIMUM_LEVEL,
    changes_metadata,
)
from kustos.metadata.image import MetadataImage
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord
from kustos.wire import ErrorCode

FeatureRange = tuple[int, int]
"""The lowest and the highest level."""

SUPPORTED_FEATURES: Final[Mapping[str, FeatureRange]] = {
    METADATA_VERSION_FEATURE: (MINIMUM_LEVEL, LATEST_LEVEL)
}


@unique
class UpgradeType(IntEnum):
    """The allowed direction of a change (`FeatureUpdate.UpgradeType`)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3

    @classmethod
    def from_code(cls, code: int) -> "UpgradeType":
        """Return the type of a code, UNKNOWN for an unassigned code."""
        return cls(code) if code in cls._value2member_map_ else cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """One feature, its new level, and the allowed direction."""

    feature: str
    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class FeatureUpdates:
    """Set feature levels, all or none; the last update of a feature counts."""

    node_id: int
    updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class FeaturesResult:
    """The result of the whole request: done, or the first error."""

    error: ApiError | None = None


def update_features(image: MetadataImage, request: FeatureUpdates) -> ControlResult[FeaturesResult]:
    """Return the records of the updates and the one result; with an error there are no records."""
    last = {update.feature: update for update in request.updates}
    records: list[MetadataRecord] = []
    for update in last.values():
        error = _update_error(image, update, request.node_id)
        if error is not None:
            return ControlResult((), (FeaturesResult(error),))
        records.append(FeatureLevelRecord(update.feature, update.level))
    return ControlResult(() if request.validate_only else tuple(records), (FeaturesResult(),))


def _update_error(image: MetadataImage, update: FeatureUpdate, node_id: int) -> ApiError | None:
    why = _support_error(update, f"Local controller {node_id}")
    if why is None:
        why = _direction_error(image.metadata_version, update)
    if why is not None:
        text = f"Invalid update version {update.level} for feature {update.feature}. {why}"
        return ApiError(ErrorCode.invalid_update_version, text)
    current = image.metadata_version
    if update.level < current and changes_metadata(current, update.level):
        return _downgrade_error(current, update)
    return None


def _support_error(update: FeatureUpdate, what: str) -> str | None:
    lowest, highest = SUPPORTED_FEATURES.get(update.feature, (0, 0))
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if not lowest <= update.level <= highest:
        can = (
            "does not support this feature." if highest == 0 else f"only supports versions {lowest}-{highest}"
        )
        return f"{what} {can}"
    # an unknown feature is at level 0 already, but cannot be set to it either
    return None if highest else f"Feature {update.feature} not found."


def _direction_error(current: int, update: FeatureUpdate) -> str | None:
    is_upgrade = update.upgrade_type is UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None


def _downgrade_error(current: int, update: FeatureUpdate) -> ApiError:
    why = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.upgrade_type is UpgradeType.UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    return ApiError(
        ErrorCode.invalid_update_version,
        f"Unsupported metadata.version downgrade from {current} to {update.level}. {why}",
    )
