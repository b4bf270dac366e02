"""Sessions at upstream that end soon (KIP-368): links log in again, and clients notice nothing."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from kustos.client import ClientSettings, connect
from kustos.wire import request_codec
from kustos.wire.api_keys import ApiKey
from testkit.bearer_tokens import without_signature
from testkit.kafka import KafkaNode, Listener, NodeSettings, make_topics
from testkit.kdc import Kdc, client_keys, jaas
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK
from testkit.tap import Tap
from testkit.tap.proxy import TappedConnection
from testkit.waiting import let_pass, wait_until

pytestmark = pytest.mark.slow

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
PACKAGE = "org.apache.kafka.common.security"
OAUTH_MODULE = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"
SESSION_MS = 15_000
"""A link logs in again in the last twentieth of it at the latest, which a busy machine may be late by. So it
is long, and all mechanisms are tried at the same time."""

RENEWALS = 3
PATIENCE_S = 180.0
"""For `RENEWALS` of such sessions, and for the start of a node for each mechanism."""

PACE_S = 0.1
"""Between rounds of requests: a hundred of them for each login, and time for others."""

TOPIC = "renewed"
USERS = {"admin": "admin-secret"}


class Upstream:
    """A broker whose sessions end soon, behind a tap."""

    def __init__(self, directory: Path, kdc: Kdc, tap: Tap) -> None:
        self.tap = tap
        self.svc_keytab = kdc.keytab("svc")
        token = without_signature({"sub": "svc", "iat": int(time.time()), "exp": int(time.time()) + 3600})
        self.token = directory / "token"
        self.token.write_text(token)
        listener = Listener(
            name="LOGIN",
            protocol="SASL_PLAINTEXT",
            mechanisms=MECHANISMS,
            properties={
                "connections.max.reauth.ms": str(SESSION_MS),
                "gssapi.sasl.jaas.config": jaas("kafka/localhost", kdc.keytab("kafka/localhost")),
                "sasl.kerberos.service.name": "kafka",
                # without a handler a broker believes tokens without a signature
                "oauthbearer.sasl.jaas.config": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="b";',
            },
        )
        self.kafka = KafkaNode(
            directory / "kafka", NodeSettings(listeners=(listener,), users={"svc": "svc-secret"})
        )
        port = tap.relay((LOOPBACK, self.kafka.ports["LOGIN"]))
        self.address = self.kafka.advertised["LOGIN"] = f"{LOOPBACK}:{port}"

    def keys(self, mechanism: str) -> dict[str, str]:
        """Return the keys of a client with this mechanism."""
        if mechanism == "GSSAPI":
            return client_keys("svc", self.svc_keytab)
        keys = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
        if mechanism == "OAUTHBEARER":
            url = self.token.as_uri()
            return keys | {
                "sasl.jaas.config": f"{OAUTH_MODULE} required;",
                "sasl.oauthbearer.token.endpoint.url": url,
                "org.apache.kafka.sasl.oauthbearer.allowed.urls": url,
            }
        module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        login = f'{PACKAGE}.{module}LoginModule required username="svc" password="svc-secret";'
        return keys | {"sasl.jaas.config": login}

    def links(self, since: int, mechanism: str) -> list[TappedConnection]:
        """Return the connections since then that logged in by this mechanism."""

        def first_login(connection: TappedConnection) -> bytes:
            logins = (each for each in connection.exchanges if each.api_key == ApiKey.SASL_HANDSHAKE)
            return next((each.request for each in logins), b"")

        return [each for each in self.tap.connections[since:] if mechanism.encode() in first_login(each)]

    def producing(self, since: int, mechanism: str) -> list[TappedConnection]:
        """Return those of them on which something was produced."""
        return [each for each in self.links(since, mechanism) if each.count(ApiKey.PRODUCE)]


def logins_of(link: TappedConnection) -> int:
    """Return how often a connection has logged in."""
    return link.count(ApiKey.SASL_HANDSHAKE)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    with ExitStack() as stack:
        kdc = stack.enter_context(Kdc(tmp_path_factory.mktemp("kdc")))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        made = Upstream(tmp_path_factory.mktemp("upstream"), kdc, stack.enter_context(Tap()))
        stack.enter_context(made.kafka)
        make_topics([made.kafka], NewTopic(TOPIC, 1, 1))
        yield made


def guarded(directory: Path, upstream: Upstream, mechanism: str) -> KustosNode:
    given = upstream.keys(mechanism)
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
    keys = {key if key == allowed else f"kustos.upstream.{key}": value for key, value in given.items()}
    return KustosNode(directory, upstream.address, KustosSettings(users=USERS, properties=keys))


def test_producers_stay_connected_while_their_links_log_in_again(tmp_path: Path, upstream: Upstream) -> None:
    with ThreadPoolExecutor(len(MECHANISMS)) as threads:
        played = [
            threads.submit(produce_on, tmp_path / mechanism, upstream, mechanism) for mechanism in MECHANISMS
        ]
    for each in played:
        each.result()


def produce_on(directory: Path, upstream: Upstream, mechanism: str) -> None:
    """Produce through a node of its own that logs in by this mechanism, until its link has renewed often."""
    since = len(upstream.tap.connections)
    errors: list[object] = []
    acknowledged = 0

    def delivered(error: object, _: object) -> None:
        nonlocal acknowledged
        acknowledged += 1
        if error is not None:
            errors.append(error)

    with guarded(directory, upstream, mechanism) as node:
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": USERS["admin"],
                "error_cb": errors.append,
                "linger.ms": 0,
            }
        )
        sent = 0

        def is_renewed() -> bool:
            nonlocal sent
            for _ in range(20):
                producer.produce(TOPIC, b"1", on_delivery=delivered)
                sent += 1
                producer.poll(0)
            # none before the first message has arrived
            return any(logins_of(link) > RENEWALS for link in upstream.producing(since, mechanism))

        wait_until(
            is_renewed, timeout_s=PATIENCE_S, what=f"the link has logged in several times by {mechanism}"
        )
        assert producer.flush(60) == 0
        assert (errors, acknowledged) == ([], sent)
        # one connection carried all of it, and it is open
        [link] = upstream.producing(since, mechanism)
        assert link.is_open
    assert "could not be prolonged" not in (directory / "kustos.log").read_text()


async def test_our_own_connections_log_in_again_between_requests(upstream: Upstream) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(ask_on(upstream, mechanism) for mechanism in MECHANISMS))


async def ask_on(upstream: Upstream, mechanism: str) -> None:
    """Ask on a connection that logged in by this mechanism, until it has renewed its session often."""
    since = len(upstream.tap.connections)
    settings = ClientSettings.from_properties(upstream.address, upstream.keys(mechanism))
    async with await connect(settings.bootstrap_servers[0], settings) as connection:
        question = request_codec(ApiKey.METADATA, 12).root.fit(topics=[])

        async def asked() -> None:
            # several at once: those that wait for the login go behind it
            answers = await asyncio.gather(
                *(connection.send(ApiKey.METADATA, 12, question) for _ in range(5))
            )
            assert {broker.node_id for answer in answers for broker in answer.brokers} == {1}

        [link] = upstream.links(since, mechanism)
        while logins_of(link) <= RENEWALS:
            await asked()
            await let_pass(PACE_S)
        assert connection.is_open
    assert upstream.links(since, mechanism) == [link]
