"""Clients with Kerberos tickets through kustos: Kafka's Java tools with a keytab, and aiokafka."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import gssapi
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError

from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.guarded.raw_client import RawClient
from testkit.kafka import KafkaTools
from testkit.kdc import REALM, Kdc
from testkit.kustos import KustosSettings
from testkit.waiting import wait_until

pytestmark = pytest.mark.slow

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
LISTENER = "listener.name.sasl_plaintext"
USERS = {name: f"{name}-secret" for name in ("admin", "alice")}
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class Realm:
    """The realm, and a node in it."""

    def __init__(self, kdc: Kdc, scene: GuardedCluster) -> None:
        self.kdc = kdc
        self.scene = scene

    def java(self, principal: str, keytab: Path) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" '
            f'principal="{principal}@{REALM}";',
        }


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with ExitStack() as stack:
        kdc = stack.enter_context(Kdc(tmp_path_factory.mktemp("kdc")))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        keytab = kdc.keytab("kafka/localhost")
        settings = KustosSettings(
            users=USERS,
            acls=[
                acl("alice", Op.ALL, Type.TOPIC, "alices-", PREFIXED),
                acl("alice", Op.READ, Type.GROUP, "alices-", PREFIXED),
                acl("batch-jobs", Op.ALL, Type.TOPIC, "jobs"),
            ],
            properties={
                "sasl.enabled.mechanisms": "GSSAPI,PLAIN",
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-$2](batch-.*),DEFAULT",
                f"{LISTENER}.gssapi.sasl.jaas.config": f"{MODULE} required useKeyTab=true storeKey=true "
                f'keyTab="{keytab}" principal="kafka/localhost@{REALM}";',
                f"{LISTENER}.gssapi.connections.max.reauth.ms": "3000",
            },
        )
        topics = ("alices-orders", "jobs")
        scene = GuardedCluster(tmp_path_factory.mktemp("scene"), settings, topics=topics, taps_clients=False)
        yield Realm(kdc, stack.enter_context(scene))


@pytest.mark.behaviour("B292")
def test_javas_console_tools_log_in_with_a_keytab(realm: Realm, kafka_tools: KafkaTools) -> None:
    keytab = realm.kdc.keytab("alice")
    records = [f"record-{number}" for number in range(20)]
    kafka_tools.run(
        "ConsoleProducer", "--bootstrap-server", realm.scene.bootstrap, "--topic", "alices-orders",
        stdin="\n".join(records) + "\n", client_properties=realm.java("alice", keytab),
    ).require()  # fmt: skip
    read = kafka_tools.run(
        "ConsoleConsumer", "--bootstrap-server", realm.scene.bootstrap, "--topic", "alices-orders",
        "--from-beginning", "--max-messages", str(len(records)), "--group", "alices-group",
        client_properties=realm.java("alice", keytab),
    ).require()  # fmt: skip
    assert read.split() == records
    refused = kafka_tools.run(
        "ConsoleProducer", "--bootstrap-server", realm.scene.bootstrap, "--topic", "jobs",
        stdin="x\n", client_properties=realm.java("alice", keytab),
    )  # fmt: skip
    assert "TopicAuthorizationException" in refused.stdout + refused.stderr
    failed = [event for event in realm.scene.kustos.security_events() if event["result"] == "FAILURE"]
    assert failed == []
    wait_until(lambda: logins_of(realm, "alice") == {"GSSAPI"}, what="the logins are in the audit log")


def logins_of(realm: Realm, name: str) -> set[str]:
    """Return the mechanisms by which this user logged in."""
    events = realm.scene.kustos.security_events()
    return {event["mechanism"] for event in events if event["principal_name"] == name}


def aiokafka(scene: GuardedCluster) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=scene.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka",
        sasl_kerberos_domain_name="localhost",
    )


async def test_aiokafka_logs_in_and_a_rule_gives_its_name(
    realm: Realm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.kdc.keytab("batch/jobs")))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    producer = aiokafka(realm.scene)
    await producer.start()
    try:
        # only `User:batch-jobs` may
        await producer.send_and_wait("jobs", b"x")
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait("alices-orders", b"x")
    finally:
        await producer.stop()
    wait_until(lambda: logins_of(realm, "batch-jobs") == {"GSSAPI"}, what="the login is in the audit log")


@pytest.mark.behaviour("B356")
def test_a_stranger_without_a_ticket_is_refused_late(realm: Realm) -> None:
    with RawClient(realm.scene.bootstrap, "stranger") as client:
        client.ask(SASL_HANDSHAKE, 1, mechanism="GSSAPI")
        answer = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=b"no ticket")
        assert int(answer.error_code) == 58
        assert "invalid credentials with SASL mechanism GSSAPI" in answer.error_message
        assert client.is_closed()

    def is_told() -> bool:
        events = realm.scene.kustos.security_events()
        return any(event["result"] == "FAILURE" and "GSSAPI: " in event["failure"] for event in events)

    wait_until(is_told, what="the failed login is in the audit log")


def ticket(user: str, keytab: Path, service: str) -> bytes:
    """Return a client's first token."""
    store = {"client_keytab": str(keytab), "ccache": f"MEMORY:{keytab}-{service}"}
    name = gssapi.Name(f"{user}@{REALM}", gssapi.NameType.kerberos_principal)
    creds = gssapi.Credentials(usage="initiate", store=store, name=name)  # type: ignore[arg-type]
    target = gssapi.Name(f"{service}@localhost", gssapi.NameType.hostbased_service)
    token = gssapi.SecurityContext(name=target, usage="initiate", creds=creds).step()
    assert isinstance(token, bytes)
    return token


def shown(realm: Realm, token: bytes) -> tuple[int, str]:
    """Return the answer to a token: its code and its text."""
    with RawClient(realm.scene.bootstrap, "client") as client:
        client.ask(SASL_HANDSHAKE, 1, mechanism="GSSAPI")
        answer = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=token)
        if int(answer.error_code):
            assert client.is_closed()
        return int(answer.error_code), answer.error_message or ""


@pytest.mark.behaviour("B356")
def test_a_replayed_ticket_and_one_for_another_service_prove_nothing(realm: Realm) -> None:
    keytab = realm.kdc.keytab("carol")
    token = ticket("carol", keytab, "kafka")
    assert shown(realm, token) == (0, "")
    code, text = shown(realm, token)
    assert (code, "invalid credentials with SASL mechanism GSSAPI" in text) == (58, True)
    realm.kdc.keytab("other/localhost")
    assert shown(realm, ticket("carol", keytab, "other"))[0] == 58
    assert shown(realm, ticket("carol", keytab, "kafka")) == (0, "")

    def reasons() -> str:
        return str([event.get("failure") for event in realm.scene.kustos.security_events()])

    wait_until(lambda: "replay" in reasons(), what="the log says that it was a replay")


@pytest.mark.behaviour("B356")
def test_a_client_of_a_service_that_is_missing_fails_and_is_not_served(
    realm: Realm, kafka_tools: KafkaTools
) -> None:
    properties = realm.java("dan", realm.kdc.keytab("dan")) | {
        "sasl.kerberos.service.name": "nobody",
        "max.block.ms": "3000",
    }
    refused = kafka_tools.run(
        "ConsoleProducer", "--bootstrap-server", realm.scene.bootstrap, "--topic", "alices-orders",
        stdin="x\n", client_properties=properties,
    )  # fmt: skip
    assert "Exception" in refused.stdout + refused.stderr
    assert "dan" not in str(list(realm.scene.kustos.security_events()))
    # and it disturbs nobody who asks for the right one
    keytab = realm.kdc.keytab("erin")
    assert shown(realm, ticket("erin", keytab, "kafka")) == (0, "")
