"""What a broker that stands still has received from those that are gone: a client, and a node."""

from testkit.guarded.workers import wait_connections
from testkit.late_passage.fields import PRODUCE, produce
from testkit.late_passage.stage import AFTER, LATE, REQUEST_TIMED_OUT, Stage
from testkit.processes import frozen
from testkit.waiting import wait_until
from tests.e2e.late_passage.line import FOLLOWER, IMPATIENT, Line

GONE_TIMEOUT_S = 120.0
"""More than a node keeps an upstream connection for a client that is gone."""


def hand_over(stage: Stage) -> None:
    """Have the broker receive a Produce."""
    stage.send(stage.request(PRODUCE, **produce(stage.topic, LATE)))
    stage.wait_handed_over(PRODUCE)


def assert_nothing_written_from_now_on(stage: Stage) -> None:
    """Assert that the change is acknowledged at last, and that nothing is written after that."""
    wait_until(lambda: stage.delete() == [0, 0], what="the broker is known to be done")
    stage.write(AFTER)
    assert LATE not in stage.log().partition(AFTER)[2]


def test_a_client_that_left_long_ago_is_not_forgotten_while_a_broker_may_yet_write_for_it(line: Line) -> None:
    with line.guard("left", **IMPATIENT) as node, line.stage("left", node, FOLLOWER) as stage:
        with frozen(line.node(FOLLOWER).pid):
            hand_over(stage)
            stage.client.socket.close()
            # nobody but the administrator counts as connected
            wait_connections(node, 1, GONE_TIMEOUT_S)
            assert REQUEST_TIMED_OUT in stage.delete()
        assert_nothing_written_from_now_on(stage)


def test_a_node_that_was_killed_acknowledges_nothing_that_a_broker_may_yet_outlive(line: Line) -> None:
    with line.guard("killed", **IMPATIENT) as node, line.stage("killed", node, FOLLOWER) as stage:
        with frozen(line.node(FOLLOWER).pid):
            hand_over(stage)
            node.kill()
            node.start()
            stage.connect_admin()
            assert REQUEST_TIMED_OUT in stage.delete()
        assert_nothing_written_from_now_on(stage)
