"""Theorems about requests that repeat an earlier one but for their records."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.protocol.plans import memory
from kustos.protocol.plans import produce as produced
from kustos.protocol.plans.alike import AlikeAnswers
from kustos.wire import ApiKey, request_codec, request_frame, response_codec, with_length
from testkit.protocol.driver import Driver, Outcome
from testkit.protocol.random_requests import EXISTING, allow, batch, model

ALLOWED, FORBIDDEN = EXISTING[:3], EXISTING[3]
VERSIONS = st.integers(3, 13)
IDS_SINCE = 13
TRIES_MAX = 5
NOT_LEADER = 6


def acls(*, denied: str | None = None) -> list[AclBinding]:
    return [
        *(allow(ResourceType.TOPIC, name, AclOperation.WRITE) for name in ALLOWED),
        *([] if denied is None else [allow(ResourceType.TOPIC, denied, AclOperation.WRITE, deny=True)]),
    ]


def produce(
    version: int,
    correlation_id: int,
    partitions: Sequence[tuple[str, int, bytes]],
    *,
    client_id: str = "client",
    acks: int = 1,
    transaction: str | None = None,
) -> bytes:
    """Return a frame; each partition is in an item of its topic of its own."""
    codec = request_codec(ApiKey.PRODUCE, version)
    topic_type = codec.root.ELEMENTS["topic_data"]
    part_type = topic_type.ELEMENTS["partition_data"]
    ids = {name: key for key, name in model().names.items()}
    topics = [
        topic_type.fit(
            name=name, topic_id=ids[name], partition_data=[part_type(index=index, records=records)]
        )
        for name, index, records in partitions
    ]
    request = codec.root.fit(acks=acks, timeout=1000, topic_data=topics, transactional_id=transaction)
    return request_frame(codec, ApiKey.PRODUCE, correlation_id, client_id, codec.encode(request))[4:]


def records(size: int) -> bytes:
    """Return one batch, with this number of bytes after its header."""
    head = batch(length=49 + size)
    return head + bytes(size)


PARTITIONS = st.lists(st.tuples(st.sampled_from(ALLOWED), st.integers(0, 1)), min_size=1, max_size=3)
SIZES = st.integers(0, 300)
KINDS = ("same", "same", "same", "other", "transaction", "forbidden", "two", "cut")
NUMBERS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(-1, 99), st.integers(-1, 2**40)), min_size=1, max_size=3
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[int, list[tuple[bytes, bool]]]:
    """Draw frames of one connection that mostly repeat each other, and whether ACLs change before each."""
    version = draw(VERSIONS)
    partitions = draw(PARTITIONS)
    frames = []
    for number in range(draw(st.integers(2, 8))):
        kind = draw(
            st.sampled_from(["same", "same", "same", "other", "transaction", "forbidden", "two", "cut"])
        )
        named = draw(PARTITIONS) if kind == "other" else list(partitions)
        if kind == "forbidden":
            named.append((FORBIDDEN, 0))
        payloads = [records(draw(SIZES)) for _ in named]
        if kind == "transaction":
            payloads[-1] = batch(transactional=True)
        elif kind == "two":
            payloads[0] += records(draw(SIZES))
        elif kind == "cut":
            payloads[0] = payloads[0][:-1]
        client_id = draw(st.sampled_from(["client", "client", "other"]))
        whole = [(*name, payload) for name, payload in zip(named, payloads, strict=True)]
        frame = produce(version, 100 + number, whole, client_id=client_id)
        frames.append((frame, draw(st.integers(0, 4)) == 0))
    return version, frames


@given(conversations(), st.sampled_from([None, *ALLOWED]))
def test_a_connection_with_plans_behaves_like_one_without(drawn: Any, denied: str | None) -> None:
    _, frames = drawn
    remembers, forgets = (Driver(model(), acls()) for _ in range(2))
    changed = False
    for frame, changes in frames:
        if changes:
            changed = not changed
            for driver in (remembers, forgets):
                driver.replace_acls(acls(denied=denied if changed else None))
        forgets.guard.plans.produce.clear()
        one, other = remembers.checked(frame), forgets.checked(frame)
        assert one[0].seen == other[0].seen
        assert one[1] == other[1] == []


@given(VERSIONS, PARTITIONS, st.lists(SIZES, min_size=3, max_size=3))
def test_repeated_requests_and_their_answers_are_not_parsed(
    version: int, partitions: list[tuple[str, int]], sizes: list[int]
) -> None:
    driver = Driver(model(), acls())
    for number, size in enumerate(sizes):
        frame = produce(version, number, [(*name, records(size)) for name in partitions])
        outcome, found = driver.checked(frame)
        assert found == []
        assert outcome.forwarded == [frame]
        assert outcome.response is not None
        assert outcome.response[:4] == number.to_bytes(4, "big")
        assert (outcome.opened is None) == (number > 0)
    assert driver.repeats == 2, "the first answer sets the expected form"


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_only_acknowledged_requests_are_kept(acks: int) -> None:
    driver = Driver(model(), acls())
    driver.run(produce(9, 1, [(ALLOWED[0], 0, records(5))], acks=acks))
    assert bool(driver.guard.plans.produce) == (acks != 0)


def test_plans_of_requests_that_never_repeat_are_dropped() -> None:
    driver = Driver(model(), acls())
    for number in range(2 * memory.TRIES):
        driver.run(produce(9, number, [(ALLOWED[0], 0, records(5))], client_id=f"client-{number}"))
    assert f"client-{memory.TRIES - 1}".encode() in list(driver.guard.plans.produce)[-1].pieces[0]
    assert len(driver.guard.plans.produce) == memory.SHAPES_MAX


def test_reauthentication_drops_the_kept_plans() -> None:
    driver = Driver(model(), acls())
    driver.run(produce(9, 1, [(ALLOWED[0], 0, records(5))]))
    frame = produce(9, 2, [(ALLOWED[0], 0, records(7))])
    assert driver.guard.plan_of(frame) is not None
    driver.guard.renew(driver.guard.context_of, None)
    assert driver.guard.plan_of(frame) is None


def test_a_request_without_topics_is_not_kept() -> None:
    driver = Driver(model(), acls())
    for number in range(3):
        outcome = driver.run(produce(9, number, []))
        assert outcome.response is not None
    assert not driver.guard.plans.produce


def test_large_requests_are_not_kept() -> None:
    driver = Driver(model(), acls())
    driver.run(produce(9, 1, [(ALLOWED[0], 0, records(5))], client_id="c" * produced.SHAPE_BYTES_MAX))
    assert not driver.guard.plans.produce


@given(
    VERSIONS,
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-1, 99), st.integers(-1, 2**40)), min_size=1, max_size=3
    ),
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(-1, 99), st.integers(-1, 2**40)), min_size=1, max_size=3
    ),
    st.integers(0, 2**31 - 1),
    st.sampled_from([None, "text", "other"]),
)
def test_answers_that_differ_only_in_numbers_are_equivalent(
    version: int, known: list[Any], other: list[Any], throttle_ms: int, text: str | None
) -> None:
    codec = response_codec(ApiKey.PRODUCE, version)
    topic_type = codec.root.ELEMENTS["responses"]
    part_type = topic_type.ELEMENTS["partition_responses"]

    def frame(numbers: list[Any], throttle_ms: int, text: str | None) -> tuple[Any, bytes]:
        parts = [
            part_type.fit(index=index, error_code=code, base_offset=offset, error_message=text)
            for index, code, offset in numbers
        ]
        topics = [topic_type.fit(name="a", topic_id=bytes(16), partition_responses=parts)]
        message = codec.root.fit(responses=topics, throttle_time=throttle_ms)
        return message, b"\0\0\0\7" + (b"\0" if codec.flexible else b"") + codec.encode(message)

    message, first = frame(known, 0, None)
    alike = AlikeAnswers.of(codec, message, first, 5 if codec.flexible else 4)
    _, second = frame(other, throttle_ms, text)
    second = b"\1\2\3\4" + second[4:]
    has_text = text is not None and "error_message" in part_type.FIELDS
    is_alike = len(known) == len(other) and not has_text
    assert alike.pass_on(first) == (0, with_length(first))
    assert alike.pass_on(second) == ((throttle_ms, with_length(second)) if is_alike else None)


class MovingPartitions(Driver):
    """A connection whose broker says where the new leader is (KIP-951) while `has_moved`."""

    has_moved = False

    def _forward(self, frame: bytes, outcome: Outcome) -> bytes | None:
        answer = super()._forward(frame, outcome)
        if answer is None or not self.has_moved:
            return answer
        codec = response_codec(ApiKey.PRODUCE, 12)
        message = codec.decode(answer[5:]).message
        leader = codec.root.ELEMENTS["responses"].ELEMENTS["partition_responses"].ELEMENTS["current_leader"]
        responses = [
            topic.replace(
                partition_responses=[
                    each.replace(error_code=NOT_LEADER, current_leader=leader(leader_id=2, leader_epoch=7))
                    for each in topic.partition_responses
                ]
            )
            for topic in message.responses
        ]
        nodes = [codec.root.ELEMENTS["node_endpoints"](node_id=2, host="broker", port=9092)]
        return answer[:5] + codec.encode(message.replace(responses=responses, node_endpoints=nodes))

    def cold(self, moved: Iterable[bool]) -> list[bool]:
        """Send a Produce for each answer; return which of them were parsed, and check every answer."""
        found = []
        for number, self.has_moved in enumerate(moved):
            outcome = self.run(produce(12, number, [(ALLOWED[0], 0, records(number % 50))]))
            assert outcome.response is not None
            answer = response_codec(ApiKey.PRODUCE, 12).decode(outcome.response[5:]).message
            code = answer.responses[0].partition_responses[0].error_code
            assert code == (NOT_LEADER if self.has_moved else 0)
            # the client gets the gateway's address of the new leader
            assert [each.host for each in answer.node_endpoints] == ["gateway"] * self.has_moved
            found.append(outcome.opened is not None)
        return found


def test_a_moved_partition_costs_two_parsed_requests() -> None:
    cold = MovingPartitions(model(), acls()).cold(number == 10 for number in range(20))
    assert [number for number, is_cold in enumerate(cold) if is_cold] == [0, 10, 11]


@pytest.mark.parametrize("period", [3, 4, 10])
def test_partitions_that_move_repeatedly_cost_two_parsed_requests_each(period: int) -> None:
    count = 60 * period
    cold = MovingPartitions(model(), acls()).cold(number % period == 2 for number in range(count))
    assert sum(cold) <= 2 * count // period + 1


def test_requests_are_recognized_again_after_partitions_have_moved_at_every_request() -> None:
    driver = MovingPartitions(model(), acls())
    driver.cold(number % 2 == 1 for number in range(100))
    cold = driver.cold([False] * 2 * memory.TRY_AGAIN_AFTER)
    assert sum(cold) <= memory.TRY_AGAIN_AFTER
    assert not any(cold[memory.TRY_AGAIN_AFTER :])
