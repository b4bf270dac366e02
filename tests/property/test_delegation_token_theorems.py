"""Theorems about delegation tokens in the image and in the store."""

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import KafkaPrincipal
from kustos.metadata.control import TokenCreation, TokenExpiry, TokenRenewal, TokenRules, is_expired
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.features import DELEGATION_TOKEN_LEVEL
from kustos.metadata.image import (
    DelegationTokenRemoved,
    DelegationTokenSet,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    image_of,
    records_at,
)
from kustos.metadata.records import (
    DelegationTokenRecord,
    MetadataRecord,
    RemoveDelegationTokenRecord,
    decode_record,
    encode_record,
)
from kustos.metadata.store.store import MetadataStore, StoreRequest, SweepTokens
from testkit.clocks import ManualClock

int64 = st.integers(-(2**63), 2**63 - 1)
principals = st.sampled_from(["User:a", "User:ö", "Group:a:b", ":", "User:"])
token_ids = st.sampled_from(["t1", "t2", "t3", "", "ü"])
tokens = st.builds(
    DelegationTokenRecord,
    principals,
    principals,
    st.lists(principals, max_size=3).map(tuple),
    int64,
    int64,
    int64,
    token_ids,
)
State = dict[str, DelegationTokenRecord]


@st.composite
def token_logs(draw: st.DrawFn) -> tuple[list[MetadataRecord], State]:
    """Draw records that create, renew and remove tokens, and the tokens that remain."""
    state: State = {}
    records: list[MetadataRecord] = []
    for token in draw(st.lists(st.none() | tokens, max_size=12)):
        if token is not None:
            state[token.token_id] = token
            records.append(token)
        elif state:
            gone = draw(st.sampled_from(sorted(state)))
            del state[gone]
            records.append(RemoveDelegationTokenRecord(gone))
    return records, state


@given(token_logs(), st.data())
def test_the_tokens_of_a_log_are_the_fold_of_its_records(
    log: tuple[list[MetadataRecord], State], data: st.DataObject
) -> None:
    records, expected = log
    cut = data.draw(st.integers(0, len(records)))
    first = image_of(records[:cut])
    before = dict(first.delegation_tokens)
    builder = ImageBuilder(first)
    builder.replay_all(decode_record(encode_record(record)) for record in records[cut:])
    assert dict(builder.build(0, 0).delegation_tokens) == expected
    assert dict(first.delegation_tokens) == before


@given(token_logs(), st.integers(1, 33))
def test_tokens_survive_every_level_that_has_them_and_no_other(
    log: tuple[list[MetadataRecord], State], level: int
) -> None:
    image = image_of(log[0])
    told: list[str] = []
    again = image_of(records_at(image, level, told.append))
    assert again.metadata_version == level
    has_them = level >= DELEGATION_TOKEN_LEVEL
    assert dict(again.delegation_tokens) == (log[1] if has_them else {})
    assert len(told) == (0 if has_them or not log[1] else 1)


class Follower:
    """A subscriber that knows only the published changes."""

    def __init__(self) -> None:
        self.tokens: State = {}

    def publish_snapshot(self, image: MetadataImage) -> None:
        self.tokens = dict(image.delegation_tokens)

    def publish_delta(self, delta: MetadataDelta) -> None:
        for change in delta.changes:
            match change:
                case DelegationTokenSet(token):
                    self.tokens[token.token_id] = token
                case DelegationTokenRemoved(token_id):
                    del self.tokens[token_id]
                case _:
                    raise AssertionError(change)


USERS = [KafkaPrincipal("User", name) for name in "abc"]
RULES = TokenRules(TokenSecret(b"s3cret"), max_lifetime_ms=1000, expiry_time_ms=100)
users = st.sampled_from(USERS)
periods = st.sampled_from([-1, 0, 1, 50, 100, 5000])
steps = st.one_of(
    st.builds(TokenCreation, users, users, st.lists(users, max_size=2).map(tuple), periods),
    st.tuples(st.sampled_from([TokenRenewal, TokenExpiry]), users, st.integers(0, 20), periods),
    st.just(SweepTokens()),
)


@settings(max_examples=25, deadline=None)  # each example syncs the disk many times
@given(st.lists(st.tuples(st.integers(0, 120), st.lists(steps, max_size=5)), max_size=8))
def test_whatever_is_asked_the_log_the_index_and_those_told_agree(
    groups: list[tuple[int, list[object]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        format_directory(Path(folder) / "meta")
        clock, hmacs = ManualClock(1000), [b"no token"]
        store = MetadataStore.open(Path(folder) / "meta", clock=clock, token_rules=RULES)
        try:
            follower = Follower()
            store.add_publisher(follower)
            for passed_ms, group in groups:
                clock.now_ms += passed_ms
                before = dict(store.image.delegation_tokens)
                for (answer,) in store.append_many([asked(step, hmacs) for step in group]):
                    hmacs += [answer.hmac] if getattr(answer, "hmac", b"") else []
                now = dict(store.image.delegation_tokens)
                assert follower.tokens == now
                assert_lawful(before, now, clock.now_ms)
                found = [token for each in hmacs if (token := store._tokens.find(store.image, each))]
                assert {token.token_id: token for token in found} == now
            assert read_image(Path(folder) / "meta").same_state(store.image)
        finally:
            store.close()


def asked(step: object, hmacs: list[bytes]) -> StoreRequest:
    """Return a step as a request; one that changes a token picks an existing one, if there is any."""
    if isinstance(step, tuple):
        kind, caller, which, period_ms = step
        request: StoreRequest = kind(caller, hmacs[which % len(hmacs)], period_ms)
        return request
    assert isinstance(step, TokenCreation | SweepTokens)
    return step


def assert_lawful(before: State, now: State, now_ms: int) -> None:
    """Check that only a token's expiry changes, never past its maximum lifetime, and that none comes back."""
    for token_id, token in now.items():
        assert token.expiration_timestamp_ms <= token.max_timestamp_ms <= token.issue_timestamp_ms + 1000
        old = before.get(token_id)
        if old is None:
            assert token.issue_timestamp_ms == now_ms
        else:
            assert replace(token, expiration_timestamp_ms=0) == replace(old, expiration_timestamp_ms=0)
            assert token == old or not is_expired(old, now_ms)
