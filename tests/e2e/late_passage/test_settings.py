"""Who is a super user no more by a setting: what holds for ACLs holds for this change, too."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from testkit.guarded.cluster import Type
from testkit.guarded.common_settings import USERS
from testkit.guarded.raw_client import RawClient
from testkit.kustos import KustosNode
from testkit.late_passage.fields import FETCH, PRODUCE, produce
from testkit.late_passage.stage import AFTER, LATE, Stage
from testkit.late_passage.waiting_requests import joining
from testkit.ports import LOOPBACK, free_port
from testkit.processes import frozen
from testkit.tap.frames import code
from testkit.waiting import wait_until
from tests.e2e.late_passage.line import FOLLOWER, HURRIED, USER, Line

INCREMENTAL_ALTER_CONFIGS = 44
BROKER, SET = 4, 0
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def node(line: Line) -> Iterator[KustosNode]:
    """A node with an admin listener, which takes dynamic settings."""
    made = line.guard("settings")
    own = {
        "listeners": f"SASL_PLAINTEXT://{made.bootstrap},CONTROLLER://{LOOPBACK}:{free_port()}",
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN} user_admin="{USERS["admin"]}";',
    }
    made.settings = replace(made.settings, properties=own | HURRIED)
    with made:
        yield made


@pytest.fixture
def operator(node: KustosNode) -> Iterator[RawClient]:
    """The administrator at the admin listener."""
    address = node.settings.properties["listeners"].rpartition("//")[2]
    with RawClient(address, "operator") as client:
        yield client.log_in("admin", USERS["admin"])


def set_super_users(operator: RawClient, *names: str) -> int:
    """Have these be the super users; return the code of the answer."""
    value = ";".join(f"User:{name}" for name in ("admin", *names))
    change = AlterableConfig(name="super.users", config_operation=i8(SET), value=value)
    resource = AlterConfigsResource(resource_type=i8(BROKER), resource_name="1", configs=(change,))
    answer = operator.ask(INCREMENTAL_ALTER_CONFIGS, 1, resources=(resource,), validate_only=False)
    return code(answer.responses[0])


def superior(line: Line, node: KustosNode, operator: RawClient, broker: int = 1) -> Stage:
    """Return a stage whose user needs no ACL on the topic, being a super user."""
    assert set_super_users(operator, USER) == 0
    return line.stage(f"settings-{next(_NUMBERS)}", node, broker)


def test_nothing_behind_a_waiting_request_is_worked_on_for_a_super_user_of_before(
    line: Line, node: KustosNode, operator: RawClient
) -> None:
    with superior(line, node, operator) as stage:
        assert stage.delete(Type.TOPIC) == [0, 0]
        head = joining(stage)
        stage.send(head.frame, *stage.behind())
        stage.wait_handed_over(head.api_key)
        assert set_super_users(operator) == 0
        stage.write(AFTER)
        head.release()
        [_, *behind] = stage.answers(head.api_key, PRODUCE, FETCH)
        stage.assert_nothing_late(behind)


def test_the_setting_is_not_acknowledged_while_a_broker_may_yet_write(
    line: Line, node: KustosNode, operator: RawClient
) -> None:
    with superior(line, node, operator, FOLLOWER) as stage:
        assert stage.delete(Type.TOPIC) == [0, 0]
        with frozen(line.node(FOLLOWER).pid):
            stage.send(stage.request(PRODUCE, **produce(stage.topic, LATE)))
            stage.wait_handed_over(PRODUCE)
            assert set_super_users(operator) != 0
        wait_until(lambda: set_super_users(operator) == 0, what="the broker is done")
        stage.write(AFTER)
        assert LATE not in stage.log().partition(AFTER)[2]
