"""Only items that the steps of a row allow are served, and a row cannot be built otherwise."""

from typing import Any

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.protocol import TABLE
from kustos.protocol.common import GROUP_OPERATIONS
from kustos.protocol.exchange import Check
from kustos.protocol.interpreter import handle
from kustos.protocol.perform import served
from kustos.protocol.shapes import Items
from kustos.protocol.steps import Gate, Row, ServeLocally, Step, Strip
from kustos.wire import ApiKey
from testkit.gateway.sessions import request
from testkit.protocol.driver import Driver
from testkit.protocol.random_requests import allow, model

DESCRIBE_GROUP = Check(AclOperation.DESCRIBE, ResourceType.GROUP)
GATE = Gate(DESCRIBE_GROUP, lambda asked: asked.groups)
STRIP = Strip(Items("groups", "groups", (("", "group_id"),)), DESCRIBE_GROUP, "")
REFUSAL = TABLE[ApiKey.DESCRIBE_GROUPS].refusal


@pytest.mark.parametrize(
    "steps",
    [
        (STRIP, ServeLocally()),
        (GATE, STRIP, ServeLocally()),
        (ServeLocally(), STRIP),
        (ServeLocally(), GATE),
        (ServeLocally(), ServeLocally()),
        (GATE, GROUP_OPERATIONS, ServeLocally()),
        (STRIP, STRIP),
    ],
)
def test_a_row_with_ineffective_steps_is_rejected(steps: tuple[Step, ...]) -> None:
    with pytest.raises(ValueError, match="a row"):
        Row(ApiKey.DESCRIBE_GROUPS, REFUSAL, steps)


def made_nevertheless(*steps: Step) -> Row:
    row = Row(ApiKey.DESCRIBE_GROUPS, REFUSAL)
    object.__setattr__(row, "steps", steps)
    return row


def opened() -> Any:
    driver = Driver(model(), [allow(ResourceType.GROUP, "mine", AclOperation.DESCRIBE)])
    return driver.guard.open(request(ApiKey.DESCRIBE_GROUPS, 5, 1, groups=["mine", "other"]))


def test_the_interpreter_serves_only_items_that_the_steps_kept() -> None:
    """No valid row has these steps; even with such a row denied items are not served."""
    exchange = opened().exchange
    handler = handle(exchange, made_nevertheless(STRIP, ServeLocally()))
    handler.send(None)
    assert exchange.request.groups == ["mine"]


def test_the_interpreter_forwards_no_item_that_an_earlier_strip_denied() -> None:
    none_denied = Strip(STRIP.items, DESCRIBE_GROUP, "", unless_cluster=AclOperation.DESCRIBE)
    exchange = opened().exchange
    handler = handle(exchange, made_nevertheless(STRIP, none_denied))
    effect: Any = handler.send(None)
    assert effect.message.groups == ["mine"]


def test_the_whole_request_is_restored_after_a_part_is_served() -> None:
    exchange = opened().exchange
    whole = exchange.request
    part = whole.replace(groups=["mine"])
    serving = served(exchange, part)
    next(serving)
    assert exchange.request is part
    with pytest.raises(StopIteration) as stopped:
        serving.send(part)
    assert stopped.value.value is part
    assert exchange.request is whole
