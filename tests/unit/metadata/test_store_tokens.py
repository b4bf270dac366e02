"""Delegation tokens in the store: found by requests that share a batch, swept in passes, gone for good."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import parse_super_users
from kustos.metadata.control import (
    ApiError,
    ConfigAlteration,
    ConfigChange,
    ConfigOperation,
    ConfigRules,
    FeatureUpdate,
    FeatureUpdates,
    ResourceChanges,
    TokenCreation,
    TokenExpiry,
    TokenRenewal,
    TokenRules,
)
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import RecordError
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.store.store import MetadataStore, SweepTokens
from kustos.wire import ErrorCode
from testkit.clocks import ManualClock

ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")
RULES = TokenRules(TokenSecret(b"s3cret"), max_lifetime_ms=1000, expiry_time_ms=100)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[MetadataStore]:
    format_directory(tmp_path / "meta")
    store = MetadataStore.open(tmp_path / "meta", clock=clock, token_rules=RULES)
    yield store
    store.close()


def test_settings_and_levels_are_kept_in_the_log_too(store: MetadataStore, tmp_path: Path) -> None:
    changes = (ConfigChange("super.users", ConfigOperation.SET, "User:root"),)
    rules = ConfigRules(1, {"super.users": parse_super_users}, frozenset())
    altered, raised = store.append_many(
        [
            ConfigAlteration((ResourceChanges(4, "", changes),), rules),
            FeatureUpdates(1, (FeatureUpdate("metadata.version", 31),)),
        ]
    )
    assert [result.error for result in (*altered, *raised)] == [None, None]
    for image in (store.image, read_image(tmp_path / "meta")):
        assert image.configs_of(4, "") == {"super.users": "User:root"}
        assert image.metadata_version == 31


def made(store: MetadataStore, count: int = 1) -> list[tuple[DelegationTokenRecord, bytes]]:
    answers = store.append_many([TokenCreation(ALICE, BOB)] * count)
    return [(result.token, result.hmac) for (result,) in answers]


def test_a_token_lives_in_the_log_and_its_hmac_does_not(store: MetadataStore, tmp_path: Path) -> None:
    ((token, hmac),) = made(store)
    assert dict(store.image.delegation_tokens) == {token.token_id: token}
    assert (token.issue_timestamp_ms, token.expiration_timestamp_ms, token.max_timestamp_ms) == (
        1000,
        1100,
        2000,
    )
    assert read_image(tmp_path / "meta").same_state(store.image)
    for path in (tmp_path / "meta").rglob("*"):
        assert path.is_dir() or (hmac not in path.read_bytes() and b"s3cret" not in path.read_bytes())


def test_requests_of_one_batch_see_the_tokens_of_those_before_them(
    store: MetadataStore, clock: ManualClock
) -> None:
    ((_, hmac),) = made(store)
    gone = ApiError(ErrorCode.delegation_token_not_found)
    clock.now_ms = 1050
    answers = store.append_many(
        [
            TokenRenewal(BOB, hmac),
            TokenExpiry(BOB, hmac, 7),
            TokenExpiry(BOB, hmac, -1),
            TokenRenewal(BOB, hmac),
        ]
    )
    assert [(result.expiry_timestamp_ms, result.error) for (result,) in answers] == [
        (1150, None),
        (1057, None),
        (1050, None),
        (0, gone),
    ]
    assert dict(store.image.delegation_tokens) == {}


def test_a_store_opened_anew_finds_its_tokens(
    store: MetadataStore, tmp_path: Path, clock: ManualClock
) -> None:
    ((token, hmac),) = made(store)
    store.close()
    again = MetadataStore.open(tmp_path / "meta", clock=clock, token_rules=RULES)
    try:
        ((result,),) = again.append_many([TokenRenewal(BOB, hmac, 50)])
        assert result.expiry_timestamp_ms == 1050
        assert again.image.delegation_tokens[token.token_id].expiration_timestamp_ms == 1050
    finally:
        again.close()


def test_what_could_not_be_written_neither_made_nor_ended_a_token(
    store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((_, hmac),) = made(store)

    def unfit(batches: object) -> list[tuple[int, bytes]]:
        raise RecordError("a record does not fit")

    with monkeypatch.context() as patched:
        patched.setattr(store._writer, "append_values", unfit)
        with pytest.raises(RecordError):
            store.append_many([TokenExpiry(BOB, hmac, -1), TokenCreation(ALICE, ALICE)])
    ((result,),) = store.append_many([TokenRenewal(BOB, hmac, 50)])
    assert result.error is None
    assert len(store.image.delegation_tokens) == len(store._tokens._digests) == 1


def test_without_rules_there_are_no_tokens(tmp_path: Path) -> None:
    format_directory(tmp_path / "other")
    store = MetadataStore.open(tmp_path / "other")
    try:
        ((result,),) = store.append_many([TokenCreation(ALICE, ALICE)])
        assert result.error == ApiError(ErrorCode.delegation_token_auth_disabled)
    finally:
        store.close()


def test_sweeps_take_expired_tokens_until_none_is_left(store: MetadataStore, clock: ManualClock) -> None:
    made(store, 1001)
    clock.now_ms = 1050
    kept = made(store, 2)
    clock.now_ms = 1101
    offset = store.last_offset
    answers = store.append_many([SweepTokens(), SweepTokens(), SweepTokens()])
    assert answers == [(True,), (False,), (False,)]
    assert store.last_offset == offset + 1001
    assert set(store.image.delegation_tokens) == {token.token_id for token, _ in kept}
