"""Sessions that are renewed (KIP-368): two clients produce on over one connection while theirs expire."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from testkit.kafka import KafkaNode, KafkaTools, make_topics
from testkit.login_keys import MODULES
from testkit.waiting import wait_until
from tests.e2e.login_scene import LIFE_MS, PREFIX, PROTOCOLS, USERS, LoginScene, login_scene

pytestmark = pytest.mark.slow

RENEWALS = 3
"""How often a session of a client is renewed at least: each time a little before its end."""

CONNECTIONS_MAX = 2
"""Of a client: that to the bootstrap address, and that to the broker."""

RATE = 20
"""Records a second."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, kafka: KafkaNode) -> Iterator[LoginScene]:
    make_topics([kafka], NewTopic(f"{PREFIX}renewed", 1, 1))
    with login_scene(tmp_path_factory.mktemp("renewed"), kafka) as made:
        yield made


def librdkafka(scene: LoginScene, protocol: str, user: str, seconds: float) -> int:
    """Produce for so long; return how many records were taken, each without an error."""
    errors: list[object] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": scene.bootstrap(protocol),
        "security.protocol": protocol,
        "ssl.ca.location": str(scene.trust),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": USERS[user],
        "error_cb": errors.append,
    }
    producer = Producer(settings)
    taken: list[object] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        producer.produce(f"{PREFIX}renewed", b"x", on_delivery=lambda error, _: taken.append(error))
        # a turn of the loop lasts until the record is there, at least as long as the rate says
        producer.flush(30)
        producer.poll(1 / RATE)
    assert errors == []
    assert set(taken) == {None}
    return len(taken)


def java(scene: LoginScene, protocol: str, user: str, seconds: float) -> int:
    """Produce for so long with Kafka's VerifiableProducer; return how many records were taken."""
    scram = f'{MODULES}.scram.ScramLoginModule required username="{user}" password="{USERS[user]}";'
    records = int(seconds * RATE)
    said = (
        KafkaTools()
        .run(
            "VerifiableProducer",
            *("--bootstrap-server", scene.bootstrap(protocol), "--topic", f"{PREFIX}renewed"),
            *("--max-messages", str(records), "--throughput", str(RATE)),
            client_properties={
                "security.protocol": protocol,
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": scram,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(scene.trust),
                "retries": "0",
            },
            timeout_s=10 * seconds,
        )
        .require()
    )
    told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [each for each in told if each["name"] == "producer_send_error"] == []
    return int(told[-1]["acked"] if "acked" in told[-1] else told[-2]["acked"])


Client = Callable[[LoginScene, str, str, float], int]
CLIENTS: tuple[tuple[Client, str], ...] = ((librdkafka, "alice"), (java, "admin"))


@pytest.mark.behaviour("B251")
def test_clients_produce_on_over_several_renewals(scene: LoginScene) -> None:
    # at the same time, as sessions are long; each client is a user of its own, to be told apart
    plays = [(client, user, protocol) for client, user in CLIENTS for protocol in PROTOCOLS]
    with ThreadPoolExecutor(len(plays)) as threads:
        played = [threads.submit(produce_on, scene, *play) for play in plays]
    for each in played:
        each.result()


def produce_on(scene: LoginScene, client: Client, user: str, protocol: str) -> None:
    """Let a client produce while its sessions expire, and look at what the audit log says of it."""
    is_it = {"mechanism": "SCRAM-SHA-256", "security_protocol": protocol, "principal_name": user}

    def count(kind: str, **fields: str) -> int:
        return scene.logins(**is_it, event_type=kind, **fields)

    logins, renewals = count("LOGIN"), count("REAUTHENTICATION", result="SUCCESS")
    taken = client(scene, protocol, user, (RENEWALS + 1) * LIFE_MS / 1000)
    assert taken >= RENEWALS
    wait_until(
        lambda: count("REAUTHENTICATION", result="SUCCESS") - renewals >= RENEWALS,
        what="the renewals are in the audit log",
    )
    assert 1 <= count("LOGIN") - logins <= CONNECTIONS_MAX
    assert count("REAUTHENTICATION", result="FAILURE") == 0
