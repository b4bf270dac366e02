"""A principal builder of one's own before a real Kafka: ACLs and audit name what it builds."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from kustos.acl import AclBinding
from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.guarded.raw_client import RawClient
from testkit.kustos import KustosSettings
from testkit.paths import ROOT

USERS = {name: f"{name}-secret" for name in ("admin", "alice", "mallory")}
PATIENCE_S = 60.0


def of_team(team: str, name: str) -> AclBinding:
    binding = acl("x", Op.ALL, Type.TOPIC, name, PREFIXED)
    return replace(binding, entry=replace(binding.entry, principal=f"Team:{team}"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    settings = KustosSettings(
        users=USERS,
        acls=[of_team("payments", "payments.")],
        properties={
            "principal.builder.class": "tests.e2e.builders.TeamPrincipals",
            "super.users": "Team:admins",
        },
    )
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        topics = ("payments.orders", "stock.items")
        yield stack.enter_context(
            GuardedCluster(tmp_path_factory.mktemp("scene"), settings, topics=topics, taps_clients=False)
        )


def produced(scene: GuardedCluster, user: str, topic: str) -> int | None:
    codes: list[int | None] = []
    producer = Producer(scene.librdkafka(user))
    producer.produce(topic, b"x", on_delivery=lambda error, _: codes.append(error.code() if error else None))
    assert producer.flush(PATIENCE_S) == 0
    [code] = codes
    return code


@pytest.mark.slow
@pytest.mark.behaviour("B338")
def test_acls_are_for_the_principals_that_the_class_builds(scene: GuardedCluster) -> None:
    assert produced(scene, "alice", "payments.orders") is None
    assert produced(scene, "alice", "stock.items") == 29  # TOPIC_AUTHORIZATION_FAILED
    assert produced(scene, "admin", "stock.items") is None


@pytest.mark.slow
@pytest.mark.behaviour("B338")
def test_a_login_that_the_class_raises_for_is_refused(scene: GuardedCluster) -> None:
    with RawClient(scene.bootstrap, "mallory") as client:
        with pytest.raises(PermissionError, match="invalid credentials with SASL mechanism PLAIN"):
            client.log_in("mallory", USERS["mallory"])
        assert client.is_closed()
    with RawClient(scene.bootstrap, "alice") as client:
        client.log_in("alice", USERS["alice"])
