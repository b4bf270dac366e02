"""Theorems about the budget for responses: connections reserve, hold and release it in any order."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.session.answer_budget import FLOOR_BYTES, SHARE_OF_FREE, AnswerBudget
from kustos.protocol import Guard, Opened, limit_answer
from kustos.wire import codec_versions, read_request_header, request_codec
from kustos.wire.api_keys import ApiKey
from testkit.protocol.driver import OFFERED, GatewayAddresses, context_of
from testkit.protocol.random_requests import frame_of, model, random_request

CONNECTIONS = 8
TOTALS = st.integers(0, 2**28)
INT32 = st.integers(-(2**31), 2**31 - 1)
STEPS = st.lists(
    st.tuples(
        st.integers(0, CONNECTIONS - 1),
        st.tuples(st.just("reserve"), INT32) | st.tuples(st.just("hold"), st.integers(0, 2**30)),
    ),
    max_size=40,
)
FETCH_VERSIONS = codec_versions(ApiKey.FETCH) or (0, -1)


@given(total=TOTALS, steps=STEPS)
def test_the_used_budget_equals_the_bytes_held_by_connections_and_is_released(
    total: int, steps: list[tuple[int, tuple[str, int]]]
) -> None:
    budget = AnswerBudget(total)
    shares = [budget.share() for _ in range(CONNECTIONS)]
    for which, (step, size) in steps:
        if step == "reserve":
            shares[which].reserve(size)
        else:
            shares[which].hold(size)
        assert all(share.held_bytes >= 0 for share in shares)
        assert budget.used_bytes == sum(share.held_bytes for share in shares)
    for share in shares:
        share.hold(0)
    assert budget.used_bytes == 0


@given(total=TOTALS, steps=STEPS)
def test_a_request_gets_its_share_between_the_floor_and_its_wanted_bytes(
    total: int, steps: list[tuple[int, tuple[str, int]]]
) -> None:
    budget = AnswerBudget(total)
    shares = [budget.share() for _ in range(CONNECTIONS)]
    for which, (step, size) in steps:
        if step == "hold":
            shares[which].hold(size)
            continue
        free = total - (budget.used_bytes - shares[which].held_bytes)
        granted = shares[which].reserve(size)
        assert min(size, FLOOR_BYTES) <= granted <= size
        assert granted <= max(FLOOR_BYTES, free // SHARE_OF_FREE)


@given(total=TOTALS, wanted=st.lists(INT32, max_size=200))
def test_reservations_alone_exceed_the_total_by_their_floors_at_most(total: int, wanted: list[int]) -> None:
    budget = AnswerBudget(total)
    for each in wanted:
        budget.share().reserve(each)
    assert budget.used_bytes <= total + len(wanted) * FLOOR_BYTES


@pytest.mark.parametrize("version", range(FETCH_VERSIONS[0], FETCH_VERSIONS[1] + 1))
@given(seed=st.integers(0, 2**32), granted=INT32)
def test_a_limited_fetch_differs_only_in_its_maximum_bytes(version: int, seed: int, granted: int) -> None:
    request = random_request(ApiKey.FETCH, version, Random(seed), model())
    expected = request.replace(max_bytes=granted)
    opened = opened_from(frame_of(ApiKey.FETCH, version, request))
    seen: list[int] = []

    def grant(wanted: int) -> int:
        seen.append(wanted)
        return granted

    limit_answer(opened, grant)
    assert seen == [request.max_bytes]
    assert opened.exchange.request == expected
    assert opened.frame == frame_of(ApiKey.FETCH, version, expected)
    codec = request_codec(ApiKey.FETCH, version)
    header = read_request_header(opened.frame, codec.flexible)
    assert codec.decode(opened.frame, header.body_offset).message == expected


def opened_from(frame: bytes) -> Opened:
    class NoDecider:
        """A decider that is never used: no handler runs here."""

        version = None

    opened = Guard(NoDecider(), context_of, GatewayAddresses(), OFFERED).open(frame)  # type: ignore[arg-type]
    assert isinstance(opened, Opened)
    return opened
