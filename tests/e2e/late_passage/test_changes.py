"""After a change that takes rights was acknowledged no broker works on what was sent before it."""

from collections.abc import Callable

import pytest

from testkit.late_passage.fields import FETCH, METADATA, PRODUCE, metadata
from testkit.late_passage.stage import AFTER, LATE, Stage, records_of, refusal
from tests.e2e.late_passage.line import HEADS, Line

CHANGES: dict[str, Callable[[Stage], list[int]]] = {
    "DeleteAcls": lambda stage: stage.delete(),
    "CreateAcls of a DENY": lambda stage: stage.deny(),
}


@pytest.mark.parametrize("api", HEADS)
def test_without_a_change_what_waits_behind_is_worked_on(line: Line, stage: Stage, api: str) -> None:
    head = line.head(api, stage)
    stage.send(head.frame, *stage.behind())
    stage.wait_handed_over(head.api_key)
    head.release()
    [_, (_, produced), (_, fetched)] = stage.answers(head.api_key, PRODUCE, FETCH)
    assert [refusal(PRODUCE, produced), refusal(FETCH, fetched)] == [0, 0]
    assert LATE in records_of(fetched)
    assert LATE in stage.log()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("api", HEADS)
def test_nothing_behind_a_waiting_request_is_worked_on_after_an_acknowledged_change(
    line: Line, stage: Stage, api: str, change: str
) -> None:
    head = line.head(api, stage)
    stage.send(head.frame, *stage.behind())
    stage.wait_handed_over(head.api_key)
    assert CHANGES[change](stage) == [0, 0]
    stage.write(AFTER)
    head.release()
    # the request that waited is allowed still, so it is answered
    [_, *behind] = stage.answers(head.api_key, PRODUCE, FETCH)
    stage.assert_nothing_late(behind)


def test_a_produce_that_awaits_no_answer_is_not_worked_on_either(line: Line, stage: Stage) -> None:
    head = line.head("JoinGroup", stage)
    marker = stage.request(METADATA, **metadata(stage.topic))
    stage.send(head.frame, stage.behind(acks=0)[0], marker)
    stage.wait_handed_over(head.api_key)
    assert stage.delete() == [0, 0]
    stage.write(AFTER)
    head.release()
    # a refusal cannot be answered, so the connection ends, as Kafka's does
    [_, *behind] = stage.answers(head.api_key, METADATA)
    stage.assert_nothing_late(behind)


@pytest.mark.parametrize("api", HEADS)
def test_a_waiting_request_that_would_be_denied_now_is_cut_off(line: Line, stage: Stage, api: str) -> None:
    head = line.head(api, stage)
    stage.send(head.frame)
    stage.wait_handed_over(head.api_key)
    # the broker answers none of them for minutes: nobody lets it
    assert set(stage.delete(*head.right)) == {0}
    assert stage.client.is_closed()
    head.release()
