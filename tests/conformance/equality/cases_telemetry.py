"""Metrics of clients (KIP-714): who is asked for which, and who may push them: everybody."""

from typing import Any

from kustos.wire import ZERO_UUID
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import Said, Step, Story, one
from tests.conformance.equality.world import EVERYBODY, FEW, NOBODY, SUPER

ASK, PUSH = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY
NONE, UNKNOWN = 0, 9
OWN = b"\x44" * 16
"""An instance that no broker knows."""


def push(instance: Any, subscription: Any, metrics: bytes = b"", **fields: Any) -> Step:
    """Return a PushTelemetry."""
    given = {
        "client_instance_id": instance,
        "subscription_id": subscription,
        "terminating": False,
        "compression_type": NONE,
        "metrics": metrics,
    }
    return Step(api=PUSH, fields=given | fields)


INSTANCE, SUBSCRIPTION = Said(0, ("client_instance_id",)), Said(0, ("subscription_id",))
STORIES = (
    one("of a new client", ASK, EVERYBODY, client_instance_id=ZERO_UUID),
    Story(
        title="a client's life",
        steps=(
            Step(api=ASK, fields={"client_instance_id": ZERO_UUID}),
            Step(api=ASK, fields={"client_instance_id": INSTANCE}),
            push(INSTANCE, SUBSCRIPTION, b"no metrics at all"),
            push(INSTANCE, SUBSCRIPTION, b"too soon"),
            push(INSTANCE, SUBSCRIPTION, b"the last", terminating=True),
            push(INSTANCE, SUBSCRIPTION, b"after the last", terminating=True),
        ),
        users=EVERYBODY,
    ),
    Story(title="of nobody", steps=(push(ZERO_UUID, 1, b"metrics"),), users=FEW),
    Story(title="of a stranger", steps=(push(OWN, 1, b"metrics"),), users=(SUPER,)),
    Story(
        title="in an unknown form",
        steps=(
            Step(api=ASK, fields={"client_instance_id": ZERO_UUID}),
            push(INSTANCE, SUBSCRIPTION, b"metrics", compression_type=UNKNOWN),
        ),
        users=(SUPER, NOBODY),
    ),
    Story(
        title="too much",
        steps=(
            Step(api=ASK, fields={"client_instance_id": ZERO_UUID}),
            push(INSTANCE, SUBSCRIPTION, b"x" * (1 << 20) + b"x"),
        ),
        users=(SUPER, NOBODY),
    ),
)
