"""A listing of any number of topics is read and decided in turns, and shows only visible topics."""

from typing import Any

import pytest

from kustos.acl import AclOperation, PatternType, ResourceType
from kustos.gateway.session.answers import read_answer
from kustos.protocol import Ask, GiveWay, Reply, UpstreamAnswer
from kustos.protocol.exchange import ITEMS_PER_TURN
from kustos.wire import ApiKey, request_codec, response_codec
from testkit.guarded.cluster import acl
from testkit.protocol.cluster_model import Model
from testkit.protocol.driver import Driver
from testkit.protocol.random_requests import frame_of

TOPICS, VISIBLE = 3_500, 120
SEES = acl("alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "seen-", PatternType.PREFIXED)


@pytest.mark.parametrize("version", [0, 3, 9, 12])
def test_a_listing_is_read_and_decided_in_turns(version: int) -> None:
    model = Model()
    step = TOPICS // VISIBLE
    names = [f"{'seen' if number % step == 0 else 'hidden'}-{number}" for number in range(TOPICS)]
    for name in names:
        model.create(name)
    driver = Driver(model, [SEES])
    codec = request_codec(ApiKey.METADATA, version)
    listing = codec.root.fit(topics=[] if version == 0 else None)
    opened = driver.guard.open(frame_of(ApiKey.METADATA, version, listing))
    assert not isinstance(opened, bytes)
    result: Any = None
    answer: UpstreamAnswer | None = None
    turns: list[int] = []
    while True:
        try:
            effect = opened.handler.send(result)
        except StopIteration as stop:
            outcome = stop.value
            break
        finally:
            turns.append(len(opened.exchange.decided))
            opened.exchange.decided = []
        result = None
        if isinstance(effect, Ask):
            frame = model.answer(opened.upstream_frame(effect.message, effect.api_version)[4:])
            assert frame is not None
            result = answer = read_answer(opened, frame, effect)
        else:
            assert isinstance(effect, GiveWay)
            assert answer is not None
            assert answer.items is not None
            if len(turns) < TOPICS // ITEMS_PER_TURN:
                assert not answer.items.is_done, "the whole answer was read before the first turn ended"
    assert max(turns) <= ITEMS_PER_TURN
    assert sum(turns) == TOPICS
    assert isinstance(outcome, Reply)
    assert isinstance(outcome.content, bytes)
    shown = response_codec(ApiKey.METADATA, version).decode(outcome.content).message.topics
    seen = [name for name in names if name.startswith("seen-")]
    assert sorted(topic.name for topic in shown) == sorted(seen)
