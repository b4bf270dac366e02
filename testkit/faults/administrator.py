"""Changes while all of that goes on: ACLs that come and go, topics that are made, changed and deleted."""

import random
import threading
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from kustos.acl import AclBinding
from testkit.faults.observers import Timeline
from testkit.guarded.cluster import Op, Type, acl
from testkit.guarded.raw_client import RawClient
from testkit.late_passage.fields import create_acls, delete_acls
from testkit.tap.frames import code

CREATE_ACLS, DELETE_ACLS = 30, 31
REQUEST_TIMED_OUT: Final = 7
PAUSES_S: Final = (0.2, 2.0)
CALL_S: Final = 30.0

COMING_AND_GOING: Final = (
    acl("erin", Op.WRITE, Type.TOPIC, "changing", allow=False),
    acl("erin", Op.READ, Type.TOPIC, "changing", allow=False),
    acl("jane", Op.READ, Type.TOPIC, "changing", allow=False),
    acl("carol", Op.DESCRIBE, Type.TOPIC, "changing"),
)


class AclChanges:
    """One change after the other, each asked for again until it is acknowledged."""

    def __init__(self, bootstrap: str, password: str, timeline: Timeline) -> None:
        self._bootstrap = bootstrap
        self._password = password
        self._timeline = timeline
        self.acknowledged = 0
        self.asked_again = 0
        self.problems: list[str] = []

    def run(self, seed: int, ends: threading.Event) -> None:
        """Make changes until the event."""
        chance = random.Random(seed)
        while not ends.wait(chance.uniform(*PAUSES_S)):
            self._toggle(chance.choice(COMING_AND_GOING), ends)

    def _toggle(self, binding: AclBinding, ends: threading.Event) -> None:
        now = self._timeline.acls
        there = binding in now
        self._timeline.begin([each for each in now if each != binding] if there else [*now, binding])
        while not self._made(binding, there):
            self.asked_again += 1
            # a round that ends waits: what nobody acknowledged would stay unknown
            ends.wait(PAUSES_S[0])
        self._timeline.acknowledge()
        self.acknowledged += 1

    def _made(self, binding: AclBinding, there: bool) -> bool:
        """Ask for a change; return whether it was acknowledged."""
        try:
            with RawClient(self._bootstrap, "admin:acls") as client:
                client.log_in("admin", self._password)
                if there:
                    [result] = client.ask(DELETE_ACLS, 3, **delete_acls(binding)).filter_results
                else:
                    [result] = client.ask(CREATE_ACLS, 3, **create_acls(binding)).results
        except (EOFError, OSError):
            return False
        # the change is in force, but a broker does not say whether it still has what it forbids
        if code(result) not in {0, REQUEST_TIMED_OUT}:
            self.problems.append(f"a change of {binding} was answered {code(result)}")
        return code(result) == 0


class TopicChanges:
    """Topics that `adam` makes, changes and deletes; what a fault spoils is tried with the next."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.done = 0
        self.spoilt = 0

    def run(self, seed: int, prefix: str, ends: threading.Event) -> None:
        """Go on until the event."""
        chance = random.Random(seed)
        admin = AdminClient(self._settings)
        number = 0
        while not ends.wait(chance.uniform(*PAUSES_S)):
            number += 1
            for change in ("make", "alter", "describe", "delete"):
                try:
                    self._change(admin, change, f"{prefix}-{number}")
                    self.done += 1
                except KafkaException:
                    self.spoilt += 1

    @staticmethod
    def _change(admin: AdminClient, change: str, topic: str) -> None:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        futures: dict[Any, Any]
        match change:
            case "make":
                futures = admin.create_topics([NewTopic(topic, 1, 3)], request_timeout=CALL_S)
            case "alter":
                resource.add_incremental_config(
                    ConfigEntry("retention.ms", "100000", incremental_operation=AlterConfigOpType.SET)
                )
                futures = admin.incremental_alter_configs([resource], request_timeout=CALL_S)
            case "describe":
                futures = admin.describe_configs([resource], request_timeout=CALL_S)
            case _:
                futures = admin.delete_topics([topic], request_timeout=CALL_S)
        for future in futures.values():
            future.result(2 * CALL_S)
