"""In cluster mode, too, no broker works after an acknowledged change on what was sent before it."""

from collections.abc import Iterator
from itertools import count

import pytest

from testkit.late_passage.fields import FETCH, JOIN_GROUP, PRODUCE
from testkit.late_passage.stage import AFTER, Stage
from testkit.late_passage.waiting_requests import joining, wait_joining
from testkit.ports import LOOPBACK
from testkit.quorum.controllers import BROKER_ID
from testkit.quorum.nodes import PASSWORDS
from tests.quorum.world import World

CHANGES = {"DeleteAcls": Stage.delete, "CreateAcls of a DENY": Stage.deny}

_NUMBERS = count(1)


@pytest.fixture
def stage(world: World) -> Iterator[Stage]:
    """A stage at the first node; the change is asked for there, and made by the controllers."""
    node, broker = world.nodes[0], world.quorum.broker
    assert broker is not None
    with Stage(
        f"quorum-{next(_NUMBERS)}",
        user="ann",
        passwords=PASSWORDS,
        guard=f"{LOOPBACK}:{node.first_broker_port + BROKER_ID}",
        admin=node.bootstrap,
        direct=broker.bootstrap,
        broker=BROKER_ID,
    ) as made:
        yield made


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_behind_a_waiting_request_is_worked_on_after_an_acknowledged_change(
    stage: Stage, change: str
) -> None:
    head = joining(stage)
    stage.send(head.frame, *stage.behind())
    wait_joining(stage)
    assert CHANGES[change](stage) == [0, 0]
    stage.write(AFTER)
    head.release()
    # the request that waited is allowed still, so it is answered
    [_, *behind] = stage.answers(JOIN_GROUP, PRODUCE, FETCH)
    stage.assert_nothing_late(behind)


def test_a_waiting_request_that_would_be_denied_now_is_cut_off(stage: Stage) -> None:
    head = joining(stage)
    stage.send(head.frame)
    wait_joining(stage)
    assert stage.delete(*head.right) == [0]
    assert stage.client.is_closed()
    head.release()
