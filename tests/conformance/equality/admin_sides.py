"""Both sides where controllers listen: Kafka's own controller, and the admin listener of kustos."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from kustos.metadata.features import LATEST_LEVEL
from kustos.wire.api_keys import ApiKey
from testkit.equality.sides import GrowingLog, Side
from testkit.kafka import SASL_PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kafka.listeners import plain_jaas
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port
from testkit.waiting import wait_until
from tests.conformance.equality import cases_tokens, normal, world
from tests.conformance.equality.both_sides import SETTLES_WITHIN_S, WRITES_ALL, BothSides

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


@contextmanager
def admin_sides(directory: Path) -> Iterator[tuple[BothSides, KustosNode]]:
    """Start both sides and give them their ACLs; kustos stands before the very Kafka it is held against."""
    users = world.PASSWORDS
    reference = KafkaNode(
        directory / "reference",
        NodeSettings(
            listeners=(SASL_PLAINTEXT,),
            users=users,
            authorizer=STANDARD_AUTHORIZER,
            super_users=(f"User:{world.SUPER}",),
            authorizer_log_level="TRACE",
            properties={
                **cases_tokens.SECRET,
                "listener.name.controller.plain.sasl.jaas.config": plain_jaas(users),
                "connections.max.idle.ms": "700000",
            },
        ),
    )
    with ExitStack() as stack:
        stack.callback(reference.kill)
        reference.start()
        node, address = _kustos(directory / "kustos", reference, users)
        stack.enter_context(node)
        theirs = stack.enter_context(Side("Kafka", reference.controller_address, dict(users)))
        ours = stack.enter_context(Side("kustos", address, dict(users)))
        made = BothSides(theirs, ours, GrowingLog(reference.authorizer_log))
        made.rules = normal.Rules(normal.RULES + normal.CONTROLLER_RULES)
        theirs.cluster_id, ours.cluster_id = reference.cluster_id, _cluster_id(made, ours)
        for side in made.sides:
            made.must(side, ApiKey.CREATE_ACLS, 3, {"creations": world.creations()})
            wait_until(
                lambda side=side: _acl_count(made, side) == len(world.ACLS),  # type: ignore[misc]
                timeout_s=SETTLES_WITHIN_S,
                what=f"ACLs at {side.name}",
            )
        yield made, node


def _kustos(directory: Path, upstream: KafkaNode, users: Mapping[str, str]) -> tuple[KustosNode, str]:
    """Return a node with an admin listener that bears the name of Kafka's, and where that is."""
    node = KustosNode(
        directory, upstream.bootstrap, KustosSettings(users=users, metadata_version=LATEST_LEVEL)
    )
    address = f"{LOOPBACK}:{free_port()}"
    given = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    login = f'username="{world.SUPER}" password="{users[world.SUPER]}"'
    properties = {
        **cases_tokens.SECRET,
        **WRITES_ALL,
        "listeners": f"SASL_PLAINTEXT://{node.bootstrap},CONTROLLER://{address}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "listener.name.controller.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {given};",
        "connections.max.idle.ms": "700000",
        "kustos.upstream.security.protocol": "SASL_PLAINTEXT",
        "kustos.upstream.sasl.mechanism": "PLAIN",
        "kustos.upstream.sasl.jaas.config": f"{PLAIN_MODULE} required {login};",
    }
    node.settings = replace(node.settings, properties=properties)
    return node, address


def _cluster_id(stage: BothSides, side: Side) -> str:
    fields = {"endpoint_type": 2}
    cluster_id: str = stage.must(side, ApiKey.DESCRIBE_CLUSTER, 1, fields).cluster_id
    return cluster_id


def _acl_count(stage: BothSides, side: Side) -> int:
    answer = stage.must(side, ApiKey.DESCRIBE_ACLS, 3, world.EVERY_ACL)
    return sum(len(resource.acls) for resource in answer.resources)
