"""What a broker has received and does not work on yet: it stands still, or it makes a client wait."""

from collections.abc import Callable

import pytest
from kio.schema.alter_client_quotas.v1.request import EntityData, EntryData, OpData
from kio.static.primitive import f64

from testkit.guarded.raw_client import RawClient
from testkit.kustos import KustosNode
from testkit.late_passage.fields import FETCH, METADATA, PRODUCE, VERSIONS, metadata, produce
from testkit.late_passage.stage import (
    AFTER,
    LATE,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    Stage,
    refusal,
)
from testkit.processes import frozen
from testkit.tap.frames import read_request, read_response
from testkit.waiting import wait_until
from tests.e2e.late_passage.line import FOLLOWER, Line, Staged

ALTER_CLIENT_QUOTAS = 49
QUOTA_BYTES_PER_S = 1_000.0
THROTTLED_BYTES = 16_000
"""Six seconds' worth above the quota, as Kafka counts over its window of ten."""


def tell_quota(stage: Stage, client: RawClient) -> None:
    """Have the broker throttle what is written under the client's id; this connection was told so."""
    entry = EntryData(
        entity=(EntityData(entity_type="client-id", entity_name=stage.client_id),),
        ops=(OpData(key="producer_byte_rate", value=f64(QUOTA_BYTES_PER_S), remove=False),),
    )
    answer = stage.kafka.ask(ALTER_CLIENT_QUOTAS, 1, entries=(entry,), validate_only=False)
    assert [int(each.error_code) for each in answer.entries] == [0]
    small = produce(stage.topic, b"x" * 2_000)
    # it applies a quota after it was acknowledged
    wait_until(
        lambda: stage.ask(client, PRODUCE, **small).throttle_time.total_seconds() > 0,
        what="the broker throttles",
    )


def throttled_answer(stage: Stage) -> None:
    """Take an answer to a Produce of the client's, which the broker throttled."""
    answer = read_response(stage.client.receive(), PRODUCE, VERSIONS[PRODUCE])[1]
    assert refusal(PRODUCE, answer) == 0
    assert answer.throttle_time.total_seconds() > 0


def test_nothing_lies_at_the_broker_behind_an_answer_that_throttles(stage: Stage) -> None:
    """A broker answers at once and reads on from that client only later (KIP-219)."""
    tell_quota(stage, stage.client)
    large = stage.request(PRODUCE, **produce(stage.topic, b"x" * THROTTLED_BYTES))
    stage.send(large, *stage.behind())
    throttled_answer(stage)
    assert stage.delete() == [0, 0]
    stage.write(AFTER)
    stage.assert_nothing_late(stage.answers(PRODUCE, FETCH))


def test_what_lies_behind_the_first_throttled_answer_is_waited_for(
    staged: Staged, impatient: KustosNode
) -> None:
    """It was handed over before anybody knew of the quota, and is read when the time is over."""
    stage = staged(node=impatient)
    tell_quota(stage, stage.connect())
    large = stage.request(PRODUCE, **produce(stage.topic, b"x" * THROTTLED_BYTES))
    stage.send(large, *stage.behind())
    throttled_answer(stage)
    assert REQUEST_TIMED_OUT in stage.delete()
    assert LATE not in stage.log()
    assert_known_to_be_done(stage)


def leave_alone(_stage: Stage) -> None:
    """Let the client wait for its answer."""


def close(stage: Stage) -> None:
    """Let the client go away: what the broker has received of it is read all the same."""
    stage.client.socket.close()


@pytest.mark.parametrize("meanwhile", [leave_alone, close])
@pytest.mark.parametrize("acks", [1, 0])
def test_a_change_is_not_acknowledged_while_a_broker_that_stands_still_may_yet_write(
    line: Line, staged: Staged, impatient: KustosNode, acks: int, meanwhile: Callable[[Stage], None]
) -> None:
    stage = staged(broker=FOLLOWER, node=impatient)
    with frozen(line.node(FOLLOWER).pid):
        stage.send(stage.request(PRODUCE, **produce(stage.topic, LATE, acks=acks)))
        stage.wait_handed_over(PRODUCE)
        meanwhile(stage)
        # asked again, it finds nothing more to delete, and the Produce is as open as before
        assert REQUEST_TIMED_OUT in stage.delete()
        assert REQUEST_TIMED_OUT in stage.delete()
    assert_known_to_be_done(stage)


def assert_known_to_be_done(stage: Stage) -> None:
    """Assert that the change is acknowledged, and that nothing is written from then on."""
    wait_until(lambda: stage.delete() == [0, 0], what="the broker is known to be done")
    stage.write(AFTER)
    client = stage.connect()
    answer = stage.ask(client, PRODUCE, **produce(stage.topic, LATE))
    assert refusal(PRODUCE, answer) == TOPIC_AUTHORIZATION_FAILED
    before, _, after = stage.log().partition(AFTER)
    assert before.count(LATE) <= 1
    assert LATE not in after


def test_a_produce_that_awaits_no_answer_is_known_to_be_done(line: Line, stage: Stage) -> None:
    stage.send(
        stage.request(PRODUCE, **produce(stage.topic, LATE, acks=0)),
        stage.request(METADATA, **metadata(stage.topic)),
    )
    # the client gets no answer to the first
    [(_, answer)] = stage.answers(METADATA)
    assert answer.topics[0].name == stage.topic
    [passed] = [
        each
        for each in line.upstream.exchanges
        if (each.api_key, each.client_id) == (PRODUCE, stage.client_id)
    ]
    assert passed.answer is not None
    assert read_request(passed.request).body.acks == 1
    assert LATE in stage.log()
