"""Clients go on when their credentials become good, and so does kustos; and logins amid large answers."""

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import KafkaError, Producer
from confluent_kafka.cimpl import NewTopic
from kio.static.primitive import i32

from kustos.client import ClientSettings
from kustos.client.admin import AdminClient, CredentialDeletion, PasswordUpsertion
from kustos.metadata import ScramMechanism
from testkit.cli import login
from testkit.guarded.raw_client import SASL_AUTHENTICATE, SASL_HANDSHAKE, RawClient
from testkit.kafka import SASL_PLAINTEXT, KafkaNode, NodeSettings, make_topics
from testkit.kafka.listeners import PLAINTEXT
from testkit.kustos import KustosNode, KustosSettings
from testkit.late_passage.fields import FETCH, VERSIONS, fetch
from testkit.tap.frames import read_response
from testkit.waiting import wait_until, whole_lines

pytestmark = pytest.mark.slow

ALICE, ALICES = "alice", "alice-secret"
TOPIC, LARGE = "orders", "large"
RECORDS, RECORD_BYTES = 14, 700_000
WAIT_S = 60
LITTLE, MUCH = 65_536, 4_194_304
"""Receive buffers in bytes."""


class Scene:
    """A broker that both clients and kustos log in to, and kustos before it."""

    def __init__(self, directory: Path) -> None:
        reauth = {"connections.max.reauth.ms": "3600000"}
        self.kafka = KafkaNode(
            directory / "kafka",
            NodeSettings(
                listeners=(SASL_PLAINTEXT, PLAINTEXT),
                users={"svc": "svc-secret", ALICE: ALICES},
                properties=reauth,
            ),
        )
        own = {f"kustos.upstream.{key}": value for key, value in login("svc", "svc-secret").items()}
        self.node = KustosNode(
            directory / "kustos",
            self.kafka.bootstrap,
            KustosSettings(
                users={"admin": "admin-secret", ALICE: ALICES},
                super_users=("admin", ALICE, "newcomer"),
                properties=own | reauth,
            ),
        )

    def alter_user(
        self, address: str, keys: dict[str, str], change: PasswordUpsertion | CredentialDeletion
    ) -> None:
        """Change a SCRAM user of kustos or of the broker."""
        upsertions = [change] if isinstance(change, PasswordUpsertion) else []
        deletions = [change] if isinstance(change, CredentialDeletion) else []

        async def alter() -> None:
            async with AdminClient(ClientSettings.from_properties(address, keys)) as admin:
                outcomes = await admin.alter_user_scram_credentials(upsertions, deletions)
                assert outcomes == {change.user: None}

        asyncio.run(alter())

    def reasons(self) -> list[str]:
        """Return why connections ended, by the log of kustos."""
        lines = whole_lines(self.node.directory / "kustos.log")
        return [json.loads(line).get("reason", "") for line in lines if line.startswith("{")]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("scene"))
    with made.kafka:
        large = NewTopic(LARGE, 1, 1, config={"max.message.bytes": "1000000"})
        make_topics([made.kafka], NewTopic(TOPIC, 1, 1), large)
        with made.node:
            yield made


def by_librdkafka(address: str, user: str, password: str) -> tuple[Producer, list[KafkaError]]:
    """Return a producer, and the errors that it is told."""
    errors: list[KafkaError] = []
    config = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        "error_cb": errors.append,
        "log_level": 0,
    }
    return Producer(config), errors


@pytest.mark.behaviour("B357")
def test_a_producer_goes_on_when_its_user_is_created(scene: Scene) -> None:
    producer, errors = by_librdkafka(scene.node.bootstrap, "newcomer", "newcomer-secret")
    delivered: list[object] = []
    producer.produce(TOPIC, b"1", on_delivery=lambda error, _: delivered.append(error))

    def is_refused() -> bool:
        producer.poll(0.05)
        return any(error.code() == KafkaError._AUTHENTICATION for error in errors)

    wait_until(is_refused, what="the login is refused")
    assert delivered == []
    upsertion = PasswordUpsertion("newcomer", ScramMechanism.SCRAM_SHA_256, b"newcomer-secret")
    scene.alter_user(scene.node.bootstrap, login("admin", "admin-secret"), upsertion)
    assert producer.flush(WAIT_S) == 0
    assert delivered == [None]


@pytest.mark.behaviour("B357")
async def test_kustos_goes_on_when_its_own_account_is_good_again(scene: Scene) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    anonymous = scene.kafka.address("PLAINTEXT")
    await asyncio.to_thread(scene.alter_user, anonymous, {}, CredentialDeletion("svc", mechanism))

    def producer() -> AIOKafkaProducer:
        return AIOKafkaProducer(
            bootstrap_servers=scene.node.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username=ALICE,
            sasl_plain_password=ALICES,
            request_timeout_ms=5_000,
        )

    def is_refused() -> bool:
        return any("cannot log in at" in reason and "`svc`" in reason for reason in scene.reasons())

    async with asyncio.timeout(WAIT_S):
        while not is_refused():
            refused = producer()
            try:
                # a broker answers the deletion before it has read it
                await refused.start()
            except AioKafkaError:
                pass
            finally:
                await refused.stop()
    restored = PasswordUpsertion("svc", mechanism, b"svc-secret")
    await asyncio.to_thread(scene.alter_user, anonymous, {}, restored)

    async def goes_on() -> bool:
        # each attempt is a short one: what is asked of a broker that stands still for so long fails
        client = producer()
        try:
            await client.start()
            await client.send_and_wait(TOPIC, b"1")
        except AioKafkaError:
            return False
        finally:
            await client.stop()
        return True

    async with asyncio.timeout(WAIT_S):
        while not await goes_on():
            continue


def fill(scene: Scene) -> None:
    """Write so much that no buffers between a broker and its client hold an answer with all of it."""
    producer = Producer({"bootstrap.servers": scene.kafka.address("PLAINTEXT")})
    for number in range(RECORDS):
        producer.produce(LARGE, bytes([number]) * RECORD_BYTES)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def fetch_all() -> dict[str, Any]:
    """Return a Fetch of all that was written."""
    fields = fetch(LARGE, max_wait_ms=0)
    [topic] = fields["topics"]
    most = i32(RECORDS * RECORD_BYTES)
    partitions = tuple(replace(each, partition_max_bytes=most) for each in topic.partitions)
    return fields | {"max_bytes": most, "topics": (replace(topic, partitions=partitions),)}


def slow_client(address: str) -> RawClient:
    """Return a client whose kernel takes little ahead of it."""
    client = RawClient(address, "slow")
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
    return client


@pytest.mark.behaviour("B246")
def test_an_answer_that_is_being_sent_is_sent_before_that_of_a_new_login(scene: Scene) -> None:
    fill(scene)
    seen: dict[str, tuple[int, int]] = {}
    for name, address in (("kafka", scene.kafka.bootstrap), ("kustos", scene.node.bootstrap)):
        with slow_client(address).log_in(ALICE, ALICES) as client:
            client.send(client.request(FETCH, VERSIONS[FETCH], **fetch_all()))
            # the answer has begun, and cannot have left as a whole
            assert client.socket.recv(1, socket.MSG_PEEK)
            client.send(client.request(SASL_HANDSHAKE, 1, mechanism="PLAIN"))
            token = f"\0{ALICE}\0{ALICES}".encode()
            client.send(client.request(SASL_AUTHENTICATE, 1, auth_bytes=token))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MUCH)
            answer = read_response(client.receive(), FETCH, VERSIONS[FETCH])[1]
            [partition] = answer.responses[0].partitions
            assert read_response(client.receive(), SASL_HANDSHAKE, 1)[1].error_code == 0
            logged_in = read_response(client.receive(), SASL_AUTHENTICATE, 1)[1]
            seen[name] = (len(partition.records), int(logged_in.error_code))
            # and it goes on
            again = client.ask(FETCH, VERSIONS[FETCH], **fetch_all())
            assert len(again.responses[0].partitions[0].records) == seen[name][0]
    assert seen["kustos"] == seen["kafka"]
    assert seen["kafka"][0] > RECORD_BYTES * RECORDS // 2
    assert seen["kafka"][1] == 0
