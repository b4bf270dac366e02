"""Features brought to other levels: how far metadata.version may go, and in which words it may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.metadata.control import FeatureUpdate, FeatureUpdates, UpgradeType, update_features
from kustos.metadata.features import (
    DELEGATION_TOKEN_LEVEL,
    LATEST_LEVEL,
    MINIMUM_LEVEL,
    SCRAM_LEVEL,
    changes_metadata,
)
from kustos.metadata.image import image_of, records_at
from kustos.metadata.records import (
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from kustos.wire import ErrorCode

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
LEVELS = st.integers(MINIMUM_LEVEL, LATEST_LEVEL)
MV = "metadata.version"


def updated(
    current: int, *updates: FeatureUpdate, validate_only: bool = False
) -> tuple[tuple[MetadataRecord, ...], str | None]:
    image = image_of([FeatureLevelRecord(MV, current)])
    outcome = update_features(image, FeatureUpdates(1, updates, validate_only))
    (result,) = outcome.results
    if result.error is None:
        return outcome.records, None
    assert result.error.code is ErrorCode.invalid_update_version
    return outcome.records, result.error.message


def test_the_metadata_version_is_raised() -> None:
    assert updated(30, FeatureUpdate(MV, 33)) == ((FeatureLevelRecord(MV, 33),), None)


def test_codes_of_directions_that_nobody_knows_are_unknown() -> None:
    assert [UpgradeType.from_code(code) for code in (1, 2, 3)] == [UP, SAFE, UNSAFE]
    assert {UpgradeType.from_code(code) for code in (0, 4, -1, 127)} == {UpgradeType.UNKNOWN}


def test_who_only_validates_raises_nothing() -> None:
    assert updated(30, FeatureUpdate(MV, 33), validate_only=True) == ((), None)


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (
            FeatureUpdate(MV, 34),
            "Invalid update version 34 for feature metadata.version. Local controller 1 only supports "
            "versions 7-33",
        ),
        (
            FeatureUpdate(MV, 0, SAFE),
            "Invalid update version 0 for feature metadata.version. Local controller 1 only supports "
            "versions 7-33",
        ),
        (
            FeatureUpdate(MV, -1),
            "Invalid update version -1 for feature metadata.version. A feature version cannot be "
            "less than 0.",
        ),
        (
            FeatureUpdate(MV, 33, UpgradeType.UNKNOWN),
            "Invalid update version 33 for feature metadata.version. The controller does not support "
            "the given upgrade type.",
        ),
        (
            FeatureUpdate(MV, 29),
            "Invalid update version 29 for feature metadata.version. Can't downgrade the version of this "
            "feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            FeatureUpdate(MV, 31, SAFE),
            "Invalid update version 31 for feature metadata.version. Can't downgrade to a newer version.",
        ),
        (
            FeatureUpdate(MV, 29, SAFE),
            "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the "
            "requested downgrade because it might delete metadata information.",
        ),
        (
            FeatureUpdate(MV, 29, UNSAFE),
            "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is "
            "not supported in this version.",
        ),
        (
            FeatureUpdate("group.version", 1),
            "Invalid update version 1 for feature group.version. Local controller 1 does not support this "
            "feature.",
        ),
        (
            FeatureUpdate("group.version", 0, SAFE),
            "Invalid update version 0 for feature group.version. Feature group.version not found.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_kafka(update: FeatureUpdate, why: str) -> None:
    assert updated(30, update) == ((), why)


def test_one_update_that_fails_fails_all() -> None:
    records, why = updated(30, FeatureUpdate(MV, 33), FeatureUpdate("share.version", 1))
    assert records == ()
    assert why is not None


def test_of_two_updates_of_one_feature_the_last_counts() -> None:
    assert updated(30, FeatureUpdate(MV, 34), FeatureUpdate(MV, 31)) == ((FeatureLevelRecord(MV, 31),), None)


def test_a_level_may_be_lowered_where_no_record_can_be_lost() -> None:
    assert updated(29, FeatureUpdate(MV, 24, SAFE)) == ((FeatureLevelRecord(MV, 24),), None)
    assert updated(31, FeatureUpdate(MV, 30, UNSAFE)) == ((FeatureLevelRecord(MV, 30),), None)


@given(LEVELS, LEVELS, st.sampled_from([UP, SAFE, UNSAFE]))
def test_no_update_ever_loses_a_record(current: int, level: int, upgrade_type: UpgradeType) -> None:
    records, _ = updated(current, FeatureUpdate(MV, level, upgrade_type))
    assert not records or level >= current or not changes_metadata(current, level)


@given(LEVELS, LEVELS)
def test_every_upgrade_is_taken(current: int, level: int) -> None:
    low, high = sorted((current, level))
    assert updated(low, FeatureUpdate(MV, high)) == ((FeatureLevelRecord(MV, high),), None)


@given(LEVELS, LEVELS, LEVELS)
def test_what_is_lost_on_a_part_of_the_way_is_lost_on_the_whole(one: int, two: int, three: int) -> None:
    low, middle, high = sorted((one, two, three))
    assert changes_metadata(high, low) == (changes_metadata(high, middle) or changes_metadata(middle, low))


@given(LEVELS, LEVELS, st.sampled_from([SAFE, UNSAFE]), st.booleans(), st.booleans())
def test_what_stands_in_a_log_can_stand_in_it_after_every_downgrade(
    current: int, level: int, upgrade_type: UpgradeType, has_users: bool, has_tokens: bool
) -> None:
    """Of an image whose records its level allows, a level that it may be lowered to holds all."""
    written: list[MetadataRecord] = [
        FeatureLevelRecord(MV, current),
        ConfigRecord(4, "1", "super.users", "User:a"),
    ]
    if has_users and current >= SCRAM_LEVEL:
        written.append(UserScramCredentialRecord("bob", 1, b"1", b"2", b"3", 4096))
    if has_tokens and current >= DELEGATION_TOKEN_LEVEL:
        written.append(DelegationTokenRecord("User:a", "User:a", (), 1, 3, 2, "token"))
    image = image_of(written)
    asked = FeatureUpdates(1, (FeatureUpdate(MV, level, upgrade_type),))
    lost: list[str] = []
    kept = image_of(records_at(image, level, lost.append))
    if update_features(image, asked).records:
        assert lost == []
        assert (kept.scram_credentials, kept.delegation_tokens, kept.configs) == (
            image.scram_credentials,
            image.delegation_tokens,
            image.configs,
        )
