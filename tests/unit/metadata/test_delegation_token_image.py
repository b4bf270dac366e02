"""Delegation tokens as records and in the image; the bytes are those of Kafka 4.3.1's own classes."""

from dataclasses import replace

import pytest

from kustos.metadata.errors import ReplayError
from kustos.metadata.features import DELEGATION_TOKEN_LEVEL, SCRAM_LEVEL
from kustos.metadata.image import (
    DelegationTokenRemoved,
    DelegationTokenSet,
    ImageBuilder,
    image_of,
    records_at,
)
from kustos.metadata.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    RemoveDelegationTokenRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from tests.unit.metadata.token_worlds import ACL, TOKEN, TOKEN_ID, renewed

GOLDEN = (
    "010a0007557365723a6207557365723a610307557365723a6307557365723a64000000000000000500000000000003ed"
    "000000000000006917414b565375513557537057706d64747445496854534100"
)
GOLDEN_RENEWED = GOLDEN.replace("0000000000000069", "0000000000000037")
GOLDEN_REMOVAL = "011a0017414b565375513557537057706d64747445496854534100"
SCRAM = UserScramCredentialRecord("alice", 2, b"salt", b"stored", b"server", 4096)


@pytest.mark.behaviour("B069")
@pytest.mark.parametrize(
    ("record", "golden"),
    [
        (TOKEN, GOLDEN),
        (renewed(TOKEN, 55), GOLDEN_RENEWED),
        (RemoveDelegationTokenRecord(TOKEN_ID), GOLDEN_REMOVAL),
    ],
)
def test_a_token_is_written_and_read_as_kafka_does(
    record: DelegationTokenRecord | RemoveDelegationTokenRecord, golden: str
) -> None:
    assert encode_record(record).hex() == golden
    assert decode_record(bytes.fromhex(golden)) == record


@pytest.mark.behaviour("B068")
def test_a_renewal_replaces_and_a_removal_removes_and_old_images_stay() -> None:
    made = image_of([TOKEN])
    builder = ImageBuilder(made)
    assert builder.replay(renewed(TOKEN, 55)) == (DelegationTokenSet(renewed(TOKEN, 55)),)
    later = builder.build(1, 0)
    assert builder.replay(RemoveDelegationTokenRecord(TOKEN_ID)) == (DelegationTokenRemoved(TOKEN_ID),)
    assert dict(made.delegation_tokens) == {TOKEN_ID: TOKEN}
    assert dict(later.delegation_tokens) == {TOKEN_ID: renewed(TOKEN, 55)}
    assert dict(builder.build(2, 0).delegation_tokens) == {}


def test_a_token_that_never_was_cannot_be_removed() -> None:
    with pytest.raises(ReplayError, match="`gone`"):
        image_of([TOKEN, RemoveDelegationTokenRecord("gone")])


@pytest.mark.parametrize(
    "token",
    [replace(TOKEN, owner="b"), replace(TOKEN, requester=""), replace(TOKEN, renewers=("User:c", "d"))],
)
def test_a_token_of_what_is_no_principal_cannot_be(token: DelegationTokenRecord) -> None:
    with pytest.raises(ReplayError, match="is not a principal"):
        image_of([token])


@pytest.mark.behaviour("B060", "B068")
@pytest.mark.parametrize(
    ("level", "losses", "kept"),
    [
        (DELEGATION_TOKEN_LEVEL, [], (SCRAM, ACL, TOKEN)),
        (DELEGATION_TOKEN_LEVEL - 1, [f"DelegationTokenImage({TOKEN_ID})"], (SCRAM, ACL)),
        (SCRAM_LEVEL, [f"DelegationTokenImage({TOKEN_ID})"], (SCRAM, ACL)),
        (
            SCRAM_LEVEL - 1,
            ["ScramImage({SCRAM_SHA_512:alice},{})", f"DelegationTokenImage({TOKEN_ID})"],
            (ACL,),
        ),
    ],
)
def test_what_a_level_cannot_hold_is_told_and_left_out(
    level: int,
    losses: list[str],
    kept: tuple[UserScramCredentialRecord | AccessControlEntryRecord | DelegationTokenRecord, ...],
) -> None:
    features = (FeatureLevelRecord("metadata.version", 30), FeatureLevelRecord("x", 2))
    told: list[str] = []
    records = list(records_at(image_of([*features, SCRAM, ACL, TOKEN]), level, told.append))
    assert told == losses
    assert records == [FeatureLevelRecord("metadata.version", level), features[1], *kept]


@pytest.mark.behaviour("B060", "B068")
def test_everything_lost_is_told_by_name() -> None:
    scram = [
        replace(SCRAM, name=name, mechanism=code) for name, code in (("b", 1), ("a", 1), ("c", 2), ("d", 9))
    ]
    tokens = [replace(TOKEN, token_id=token_id) for token_id in ("t2", "t1")]
    told: list[str] = []
    assert len(list(records_at(image_of([*scram, *tokens]), 1, told.append))) == 1
    assert told == [
        "ScramImage({SCRAM_SHA_256:a, b},{SCRAM_SHA_512:c},{UNKNOWN:d},{})",
        "DelegationTokenImage(t1, t2)",
    ]


def test_nothing_to_lose_is_no_loss() -> None:
    told: list[str] = []
    assert len(list(records_at(image_of([ACL]), 1, told.append))) == 2
    assert told == []
