"""Theorems about small requests that are sent again to the byte."""

import gc
import weakref
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.protocol import TABLE, Opened
from kustos.protocol.plans import memory
from kustos.protocol.plans import plan as plans
from kustos.wire import ApiKey
from testkit.gateway.sessions import heartbeat, metadata, request
from testkit.parsing.mutations import EVERY_VERSION, drawn
from testkit.protocol.driver import OFFERED, Driver
from testkit.protocol.random_requests import EXISTING, allow, model, numbered, random_acls

REPEATABLE = [each for each in EVERY_VERSION if each[0] in OFFERED and TABLE[each[0]].repeatable]
OFTEN = [each for each in REPEATABLE if each[0] in {ApiKey.METADATA, ApiKey.HEARTBEAT, ApiKey.OFFSET_FETCH}]
TOPIC = EXISTING[0]
DESCRIBED = allow(ResourceType.TOPIC, TOPIC, AclOperation.DESCRIBE)
METADATA_VERSIONS = st.integers(*OFFERED[ApiKey.METADATA])


@dataclass(frozen=True)
class AclsChange:
    seed: int


@dataclass(frozen=True)
class TopicChange:
    """The topic is created, or deleted if it is there."""

    name: str


FRAMES = st.builds(
    lambda api, seed: drawn(Random(seed), api),
    st.sampled_from(REPEATABLE) | st.sampled_from(OFTEN),
    st.integers(0, 999),
)
STEPS = st.lists(
    st.sampled_from([0, 0, 0, 1, 1, 2])
    | st.builds(AclsChange, st.integers(0, 9))
    | st.builds(TopicChange, st.sampled_from(EXISTING)),
    min_size=2,
    max_size=12,
)


def toggle(driver: Driver, name: str) -> None:
    if driver.model.topics.pop(name, None) is None:
        driver.model.create(name)


@given(st.lists(FRAMES, min_size=3, max_size=3), STEPS, st.integers(0, 9), st.booleans())
def test_a_connection_with_plans_behaves_like_one_without(
    frames: list[bytes], steps: list[int | AclsChange | TopicChange], seed: int, auto_creates: bool
) -> None:
    remembers, forgets = drivers = [Driver(model(), random_acls(Random(seed))) for _ in range(2)]
    for driver in drivers:
        driver.model.auto_creates = driver.guard.auto_creates_topics = auto_creates
    for number, step in enumerate(steps):
        match step:
            case AclsChange(acls_seed):
                for driver in drivers:
                    driver.replace_acls(random_acls(Random(acls_seed)))
            case TopicChange(name):
                for driver in drivers:
                    toggle(driver, name)
            case which:
                forgets.guard.plans.forget()
                frame = numbered(frames[which], number)
                one, other = remembers.checked(frame), forgets.checked(frame)
                assert one[0].seen == other[0].seen
                assert one[1] == other[1] == []


@given(METADATA_VERSIONS, st.lists(st.sampled_from(EXISTING), min_size=1, max_size=3, unique=True))
def test_repeated_requests_and_their_answers_are_not_parsed(version: int, names: list[str]) -> None:
    driver = Driver(model(), [DESCRIBED])
    responses = []
    for number in range(3):
        frame = metadata(number, *names, TOPIC, version=version)
        outcome, found = driver.checked(frame)
        assert found == []
        assert (outcome.opened is None) == (number > 0)
        assert outcome.response is not None
        assert outcome.response[:4] == number.to_bytes(4, "big")
        responses.append(outcome.response[4:])
        assert outcome.seen[3] != ()
    assert responses[0] == responses[1] == responses[2]
    assert driver.repeats == 2


@given(st.integers(4, OFFERED[ApiKey.METADATA][1]), st.booleans())
def test_a_different_answer_is_parsed_and_kept(version: int, changes_acls: bool) -> None:
    driver = Driver(model(), [DESCRIBED])
    frame = metadata(7, TOPIC, version=version)
    driver.run(frame)
    if changes_acls:
        driver.replace_acls([DESCRIBED, allow(ResourceType.TOPIC, EXISTING[1], AclOperation.READ)])
    toggle(driver, TOPIC)
    reopened = driver.run(frame)
    assert reopened.opened is not None
    fresh = Driver(driver.model, driver.acls)
    assert reopened.response == fresh.run(frame).response
    assert driver.run(frame).response == reopened.response
    assert driver.repeats == 1


def test_a_different_answer_is_parsed_with_the_decisions_of_its_request() -> None:
    """The ACLs change between a plan and its answer."""
    driver = Driver(model(), [DESCRIBED])
    frame = metadata(7, TOPIC, EXISTING[1])
    driver.run(frame)
    plan = driver.guard.plan_of(frame)
    assert plan is not None
    driver.replace_acls([allow(ResourceType.TOPIC, "*", AclOperation.DESCRIBE)])
    opened, _ = driver.guard.reopen(plan, frame)
    assert [each.decision.allowed for each in plan.decided] == [True, False]
    assert opened.exchange.granted == [plan.decided[0]]
    assert opened.exchange.decided == [], "it was recorded when the plan was sent"
    assert opened.exchange.is_still_allowed()
    driver.replace_acls([])
    assert not opened.exchange.is_still_allowed()
    assert not plan.is_still_allowed()


def acls_of_group(*, deny: bool = False) -> list[AclBinding]:
    return [allow(ResourceType.GROUP, "group-one", AclOperation.READ, deny=deny)]


def test_an_answer_forwarded_as_bytes_may_differ() -> None:
    driver = Driver(model(), acls_of_group())
    driver.run(heartbeat(1))
    plan = driver.guard.plan_of(heartbeat(2))
    assert plan is not None
    for answer in (bytes.fromhex("00000002 00000005 0000"), bytes.fromhex("00000002 00000000 0019")):
        assert driver.guard.pass_on(plan, answer) == (answer[7], b"\0\0\0\x0a" + answer)


def test_a_denied_request_is_not_kept() -> None:
    driver = Driver(model(), acls_of_group(deny=True))
    for number in range(2):
        assert driver.run(heartbeat(number)).forwarded == []
    assert not driver.guard.plans.exact


@pytest.mark.parametrize("names", [[], ["missing-topic"]])
def test_a_request_is_not_kept_if_nothing_is_granted(names: list[str]) -> None:
    driver = Driver(model(), [])
    driver.run(metadata(7, *names))
    assert not driver.guard.plans.exact


def test_a_request_with_decisions_on_its_answer_is_not_kept() -> None:
    """A listing of all topics: each topic is decided after upstream returned it."""
    driver = Driver(model(), [DESCRIBED])
    driver.run(request(ApiKey.METADATA, 9, 1, topics=None, allow_auto_topic_creation=False))
    assert not driver.guard.plans.exact


def test_the_kept_plans_are_limited_to_the_last_used() -> None:
    driver = Driver(model(), [allow(ResourceType.TOPIC, "*", AclOperation.DESCRIBE)])
    first, second, third = (metadata(7, name) for name in EXISTING[:3])
    for frame in (first, second, first, third):
        driver.run(frame)
    assert driver.guard.plan_of(second) is None
    assert driver.guard.plan_of(first) is not None
    assert driver.guard.plan_of(third) is not None
    assert len(driver.guard.plans.exact) == memory.EXACT_MAX


def test_large_requests_and_large_answers_are_not_kept() -> None:
    driver = Driver(model(), [DESCRIBED])
    driver.run(metadata(7, TOPIC, "m" * memory.EXACT_REQUEST_BYTES_MAX))
    for number in range(plans.ANSWERS_BYTES_MAX // 100):
        driver.model.create(f"{'t' * 20}-{number}")
    driver.acls.append(allow(ResourceType.TOPIC, "*", AclOperation.DESCRIBE))
    driver.replace_acls(driver.acls)
    driver.run(metadata(7, *[name for name in driver.model.topics if name.startswith("t")]))
    assert not driver.guard.plans.exact


def test_many_decisions_are_not_kept() -> None:
    driver = Driver(model(), [allow(ResourceType.TOPIC, "*", AclOperation.DESCRIBE)])
    names = [f"t{number}" for number in range(plans.DECISIONS_MAX + 1)]
    for name in names:
        driver.model.create(name)
    for kept in (names, names[1:]):
        driver.run(metadata(7, *kept))
        assert bool(driver.guard.plans.exact) == (len(kept) <= plans.DECISIONS_MAX)


def test_client_bytes_are_not_printed() -> None:
    driver = Driver(model(), acls_of_group())
    first, second = (
        request(ApiKey.HEARTBEAT, 3, number, group_id="group-one", member_id="a-member") for number in (1, 2)
    )
    driver.run(first)
    plan = driver.guard.plan_of(second)
    assert plan is not None
    assert "a-member" not in repr((driver.guard.plans, plan))


def test_plans_of_requests_that_never_repeat_are_dropped() -> None:
    driver = Driver(model(), [DESCRIBED])
    for number in range(2 * memory.TRIES):
        driver.run(metadata(7, TOPIC, f"missing-{number}"))
    newest = list(driver.guard.plans.exact)[-1]
    assert f"missing-{memory.TRIES - 1}".encode() in newest


def test_reauthentication_drops_the_kept_plans() -> None:
    driver = Driver(model(), acls_of_group())
    driver.run(heartbeat(1))
    assert driver.guard.plan_of(heartbeat(2)) is not None
    driver.guard.renew(driver.guard.context_of, None)
    assert driver.guard.plan_of(heartbeat(2)) is None


def test_a_pending_request_is_freed_without_the_garbage_collector() -> None:
    """The handler holds no reference to its request."""
    driver = Driver(model(), [DESCRIBED])
    opened = driver.guard.open(metadata(7, TOPIC))
    assert isinstance(opened, Opened)
    next(opened.handler)
    handler = weakref.ref(opened.handler)
    gc.disable()
    try:
        del opened
        assert handler() is None
    finally:
        gc.enable()
