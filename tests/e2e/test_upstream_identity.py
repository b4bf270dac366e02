"""Brokers see the client, not kustos: their authorizer, quotas and tokens name the user."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from kustos.acl import AclOperation, ResourceType
from kustos.client import ClientSettings
from kustos.client.admin import AdminClient
from kustos.wire.api_keys import ApiKey
from testkit.cli import login
from testkit.guarded.cluster import acl
from testkit.guarded.workers import worker_settings
from testkit.kafka import (
    SASL_PLAINTEXT,
    STANDARD_AUTHORIZER,
    KafkaNode,
    KafkaTools,
    NodeSettings,
    make_topics,
)
from testkit.kafka.listeners import INTERNAL_PASSWORD, INTERNAL_USER
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK
from testkit.tap import Tap
from testkit.tap.proxy import TappedConnection
from testkit.waiting import wait_until, whole_lines

pytestmark = pytest.mark.slow

Op, Type = AclOperation, ResourceType
USERS = {name: f"{name}-secret" for name in ("alice", "bob", "carol", "dave")}
BROKERS_USERS = {"svc": "svc-secret", "alice": "alice-at-the-broker"}
TOKENS_LAST_MS = 20_000
"""A link logs in again in the last twentieth of it at the latest, which a busy machine may be late by."""

TOPIC = "orders"
WAIT_S = 60

UPSTREAM_ACLS = (
    # as in a real installation kustos may do nothing itself but look, and create tokens for some
    acl("svc", Op.DESCRIBE, Type.TOPIC, "*"),
    acl("svc", Op.DESCRIBE_CONFIGS, Type.CLUSTER, "kafka-cluster"),
    acl("svc", Op.CREATE_TOKENS, Type.USER, "User:alice"),
    acl("svc", Op.CREATE_TOKENS, Type.USER, "User:bob"),
    acl("svc", Op.CREATE_TOKENS, Type.USER, "User:dave"),
    acl("alice", Op.WRITE, Type.TOPIC, TOPIC),
    acl("dave", Op.WRITE, Type.TOPIC, TOPIC),
)


class Scene:
    """A broker with an authorizer of its own, and kustos before it; kustos allows all users everything."""

    def __init__(self, directory: Path, tap: Tap) -> None:
        self.tap = tap
        settings = NodeSettings(
            listeners=(SASL_PLAINTEXT,),
            users=BROKERS_USERS,
            authorizer=STANDARD_AUTHORIZER,
            properties={
                "delegation.token.secret.key": "the-token-s3cret",
                "delegation.token.expiry.time.ms": str(TOKENS_LAST_MS),
                "delegation.token.expiry.check.interval.ms": "600000",
            },
        )
        self.kafka = KafkaNode(directory / "kafka", settings)
        port = tap.relay((LOOPBACK, self.kafka.ports["SASL_PLAINTEXT"]))
        self.address = self.kafka.advertised["SASL_PLAINTEXT"] = f"{LOOPBACK}:{port}"
        own = {f"kustos.upstream.{key}": value for key, value in login("svc", "svc-secret").items()}
        self.node = KustosNode(
            directory / "kustos",
            self.address,
            KustosSettings(
                users=USERS, super_users=tuple(USERS), properties=own | {"kustos.upstream.identity": "token"}
            ),
        )

    @property
    def internal(self) -> str:
        return f"{LOOPBACK}:{self.kafka.internal_port}"

    def allow(self) -> None:
        """Create the broker's ACLs, and wait until it has read them."""
        settings = ClientSettings.from_properties(
            self.internal, login(INTERNAL_USER, INTERNAL_PASSWORD, "PLAIN")
        )

        async def create() -> None:
            async with AdminClient(settings) as admin:
                assert await admin.create_acls(UPSTREAM_ACLS) == [None] * len(UPSTREAM_ACLS)

        async def count() -> int:
            async with AdminClient(settings) as admin:
                return len(await admin.describe_acls())

        asyncio.run(create())
        wait_until(lambda: asyncio.run(count()) == len(UPSTREAM_ACLS), what="the broker has its ACLs")

    def tool(self, name: str, *arguments: str, by: str = INTERNAL_USER) -> str:
        """Run one of Kafka's tools at the broker, past kustos: with every permission, or as a user there."""
        keys, address = login(INTERNAL_USER, INTERNAL_PASSWORD, "PLAIN"), self.internal
        if by in BROKERS_USERS:
            keys, address = login(by, BROKERS_USERS[by]), self.address
        done = KafkaTools().run(name, "--bootstrap-server", address, *arguments, client_properties=keys)
        return done.require()

    def tokens_of(self, user: str) -> list[str]:
        """Return the HMACs of a user's tokens, as Kafka's tool shows them."""
        text = self.tool("DelegationTokenCommand", "--describe", "--owner-principal", f"User:{user}")
        rows = [row for row in map(str.split, text.splitlines()) if f"User:{user}" in row[2:3]]
        assert all(row[3] == "User:svc" for row in rows), text
        return [row[1] for row in rows]

    def producer(self, user: str, **more: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.node.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": user,
                "sasl.password": USERS[user],
                "log_level": 0,
                "linger.ms": 0,
            }
            | more
        )

    def produce(self, user: str, **more: Any) -> list[str | None]:
        """Produce a record with a client of its own; return the names of errors."""
        errors: list[str | None] = []
        producer = self.producer(user, **more)
        producer.produce(
            TOPIC, b"1", on_delivery=lambda error, _: errors.append(None if error is None else error.name())
        )
        assert producer.flush(WAIT_S) == 0
        return errors

    def outcomes(self, outcome: str) -> float:
        """Return how many tokens were asked for with this outcome."""
        wanted = f'kustos_upstream_delegation_tokens_total{{outcome="{outcome}"}} '
        lines = self.node.metrics().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))

    def decided(self, text: str) -> int:
        """Return how many lines of the broker's authorizer have this text."""
        return self.kafka.authorizer_log.read_text().count(text)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        made = Scene(tmp_path_factory.mktemp("identity"), stack.enter_context(Tap()))
        stack.enter_context(made.kafka)
        make_topics([made.kafka], NewTopic(TOPIC, 1, 1))
        made.allow()
        stack.enter_context(made.node)
        yield made


def test_the_brokers_authorizer_decides_for_the_client(scene: Scene) -> None:
    assert scene.produce("alice") == [None]
    assert scene.decided("Principal = User:alice is Allowed operation = WRITE") > 0
    # kustos allows her, the broker does not
    assert scene.produce("bob") == ["TOPIC_AUTHORIZATION_FAILED"]
    assert scene.decided("Principal = User:bob is Denied operation = DESCRIBE") > 0
    assert scene.decided("Principal = User:svc is Allowed operation = WRITE") == 0
    assert scene.decided("Principal = User:svc is Denied operation = WRITE") == 0
    assert len(scene.tokens_of("alice")) >= 1
    assert scene.outcomes("created") >= 2
    log = (scene.node.directory / "kustos.log").read_text()
    assert not any(hmac in log for user in ("alice", "bob") for hmac in scene.tokens_of(user))


def test_a_client_without_a_token_is_turned_away_and_never_served_as_kustos(scene: Scene) -> None:
    before = len(scene.tap.connections)

    def rejected() -> list[str]:
        # on a busy machine a record may time out before its client has come so far
        assert scene.produce("carol", **{"message.timeout.ms": 3000}) == ["_MSG_TIMED_OUT"]
        lines = whole_lines(scene.node.directory / "kustos.log")
        return [line for line in lines if "no delegation token for `User:carol`" in line]

    told = wait_until(rejected, what="carol is turned away")
    assert scene.outcomes("refused") >= 1
    assert "DELEGATION_TOKEN_AUTHORIZATION_FAILED; the principal of kustos needs `CREATE_TOKENS`" in told[0]
    harmless = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    own = {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS}
    for connection in scene.tap.connections[before:]:
        assert {each.api_key for each in connection.exchanges} <= harmless | own
    assert scene.decided("Principal = User:carol") == 0


def test_each_worker_process_logs_in_as_the_client(scene: Scene, tmp_path: Path) -> None:
    settings = replace(
        scene.node.settings, properties={**scene.node.settings.properties, **worker_settings()}
    )
    with KustosNode(tmp_path, scene.address, settings) as node:
        # more connections than two workers share unless each has some
        for _ in range(8):
            assert scene.produce("alice", **{"bootstrap.servers": node.bootstrap}) == [None]
        assert scene.produce("bob", **{"bootstrap.servers": node.bootstrap}) == ["TOPIC_AUTHORIZATION_FAILED"]


def test_the_brokers_quota_of_the_user_throttles_her_and_nobody_else(scene: Scene) -> None:
    entity = ("--entity-type", "users", "--entity-name", "alice")
    scene.tool("ConfigCommand", "--alter", *entity, "--add-config", "producer_byte_rate=1000")
    throttled = {"alice": 0, "dave": 0}

    def producer_of(user: str) -> Producer:
        def count(event: Any) -> None:
            throttled[user] += event.throttle_time > 0

        return scene.producer(user, throttle_cb=count)

    try:
        alice, dave = producer_of("alice"), producer_of("dave")

        def is_throttled() -> bool:
            for producer in (alice, dave):
                producer.produce(TOPIC, bytes(20_000))
                producer.poll(0.05)
            return throttled["alice"] > 0

        wait_until(is_throttled, what="the broker throttles alice")
        assert dave.flush(WAIT_S) == 0
        assert throttled["dave"] == 0
        assert "producer_byte_rate=1000" in scene.tool("ConfigCommand", "--describe", *entity)
    finally:
        scene.tool("ConfigCommand", "--alter", *entity, "--delete-config", "producer_byte_rate")
    alice.purge()
    alice.flush(WAIT_S)


def test_a_client_outlives_its_tokens_on_one_connection(scene: Scene) -> None:
    since = len(scene.tap.connections)
    created = scene.outcomes("created")
    errors: list[object] = []
    producer = scene.producer("alice", error_cb=errors.append)

    def delivered(error: object, _: object) -> None:
        if error is not None:
            errors.append(error)

    def links() -> list[TappedConnection]:
        return [each for each in scene.tap.connections[since:] if each.count(ApiKey.PRODUCE)]

    def has_renewed() -> bool:
        producer.produce(TOPIC, b"1", on_delivery=delivered)
        producer.poll(0.05)
        # none before the first message has arrived
        return any(link.count(ApiKey.SASL_HANDSHAKE) >= 3 for link in links())

    wait_until(has_renewed, what="the link has logged in with other tokens")
    assert producer.flush(WAIT_S) == 0
    assert errors == []
    assert len(links()) == 1
    assert scene.outcomes("created") >= created + 1


def test_a_token_that_its_owner_ended_is_replaced(scene: Scene) -> None:
    assert scene.produce("alice") == [None]
    created = scene.outcomes("created")
    ended = scene.tokens_of("alice")
    for hmac in ended:
        end = ("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        scene.tool("DelegationTokenCommand", *end, by="alice")
    # another may have come meanwhile, as the last was about to end
    wait_until(lambda: not {*ended} & {*scene.tokens_of("alice")}, what="the tokens are gone")
    assert scene.produce("alice") == [None]
    assert scene.outcomes("created") >= created + 1
