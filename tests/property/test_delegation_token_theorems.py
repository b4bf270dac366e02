"""Theorems about delegation tokens in the image."""

from hypothesis import given
from hypothesis import strategies as st

from kustos.metadata.features import DELEGATION_TOKEN_LEVEL
from kustos.metadata.image import ImageBuilder, image_of, records_at
from kustos.metadata.records import (
    DelegationTokenRecord,
    MetadataRecord,
    RemoveDelegationTokenRecord,
    decode_record,
    encode_record,
)

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
    """Tokens made, renewed and removed, and those that are left."""
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
