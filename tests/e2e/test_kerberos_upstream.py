"""kustos logs in by Kerberos itself: commands, gateways and followers of a quorum, to Kafka's own servers."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kustos.acl import AclPermissionType
from kustos.client import AuthenticationFailedError, ClientSettings, connect
from kustos.server.main import EXIT_UNREACHABLE
from testkit.certificates import Authority
from testkit.kafka import STANDARD_AUTHORIZER, KafkaNode, Listener, NodeSettings
from testkit.kafka.tools import write_properties
from testkit.kdc import MODULE, REALM, Kdc, client_keys, jaas
from testkit.kustos import KustosNode, KustosSettings
from testkit.processes import ChildError
from testkit.quorum.controllers import Quorum
from testkit.quorum.nodes import DENIED, UNKNOWN_TOPIC, create_acls, kraft_node, logged_in, topic_error
from testkit.quorum.nodes import ann as ann_of
from testkit.waiting import wait_until

pytestmark = pytest.mark.slow

USERS = {"admin": "admin-secret"}
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
WAIT_S = 60
SOON = {
    "sasl.kerberos.ticket.renew.window.factor": "0.2",
    "sasl.kerberos.ticket.renew.jitter": "0",
    "sasl.kerberos.min.time.before.relogin": "0",
}


class Realm:
    """A KDC, and a broker that lets in who has a ticket; only two principals may do anything.

    The tickets of `svc` last ten seconds, and whoever uses one must have renewed it by then: for the start
    of a program that may be too short. Those of `ops` last a day.
    """

    def __init__(self, directory: Path, kdc: Kdc) -> None:
        self.kdc = kdc
        self.service_keytab = kdc.keytab("kafka/localhost")
        self.svc = kdc.keytab("svc", max_life="10 seconds")
        self.ops = kdc.keytab("ops")
        authority = Authority()
        self.trust = authority.write(directory / "authority.pem")
        login = {
            "gssapi.sasl.jaas.config": jaas("kafka/localhost", self.service_keytab),
            "sasl.kerberos.service.name": "kafka",
        }
        tls = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.issue("broker").write(directory / "broker.pem")),
        }
        listeners = (
            Listener(
                name="SASL_PLAINTEXT", protocol="SASL_PLAINTEXT", mechanisms=("GSSAPI",), properties=login
            ),
            Listener(name="SASL_SSL", protocol="SASL_SSL", mechanisms=("GSSAPI",), properties=login | tls),
        )
        settings = NodeSettings(
            listeners=listeners,
            authorizer=STANDARD_AUTHORIZER,
            super_users=("User:svc", "User:ops"),
            auto_create_topics=True,
        )
        self.kafka = KafkaNode(directory / "kafka", settings)

    def keys(self, protocol: str, principal: str = "ops", keytab: Path | None = None) -> dict[str, str]:
        """Return the keys of a client of one listener."""
        trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.trust)}
        keys = client_keys(principal, keytab or self.ops, protocol)
        return keys | (trust if protocol == "SASL_SSL" else {})


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with ExitStack() as stack:
        kdc = stack.enter_context(Kdc(tmp_path_factory.mktemp("kdc")))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        made = Realm(tmp_path_factory.mktemp("realm"), kdc)
        stack.enter_context(made.kafka)
        yield made


def described(realm: Realm, directory: Path, keys: dict[str, str], protocol: str) -> tuple[int, str, str]:
    """Return how a command fares with these properties."""
    file = directory / "client.properties"
    write_properties(file, keys)
    command = [sys.executable, "-m", "kustos", "features", "describe", "--command-config", str(file)]
    done = subprocess.run(
        [*command, "--bootstrap-server", realm.kafka.address(protocol)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_command_logs_in_with_a_keytab_and_with_a_ticket_cache(
    tmp_path: Path, realm: Realm, protocol: str
) -> None:
    keys = realm.keys(protocol)
    code, told, errors = described(realm, tmp_path, keys, protocol)
    assert (code, errors, "metadata.version" in told) == (0, "", True)
    cache = realm.kdc.fill_cache(tmp_path / "tickets", "ops", realm.ops)
    keys["sasl.jaas.config"] = f'{MODULE} required useTicketCache=true ticketCache="{cache}";'
    code, told, errors = described(realm, tmp_path, keys, protocol)
    assert (code, errors, "metadata.version" in told) == (0, "", True)


@pytest.mark.behaviour("B356")
def test_a_command_without_a_usable_ticket_says_why(tmp_path: Path, realm: Realm) -> None:
    stale = realm.kdc.keytab("stale")
    realm.kdc.change_key("stale")
    keys = realm.keys("SASL_PLAINTEXT", "stale", stale)
    code, _, errors = described(realm, tmp_path, keys, "SASL_PLAINTEXT")
    assert code != 0
    assert f"cannot log in to Kerberos as `stale@{REALM}`" in errors
    keys = realm.keys("SASL_PLAINTEXT") | {"sasl.kerberos.service.name": "unknown"}
    code, _, errors = described(realm, tmp_path, keys, "SASL_PLAINTEXT")
    assert code != 0
    assert "no ticket for `unknown/localhost`" in errors
    assert "Traceback" not in errors


async def test_a_broker_that_cannot_read_the_ticket_is_no_peer(realm: Realm) -> None:
    # the KDC knows the service, the broker's keytab has no key of it
    realm.kdc.keytab("imposter/localhost")
    keys = realm.keys("SASL_PLAINTEXT") | {"sasl.kerberos.service.name": "imposter"}
    settings = ClientSettings.from_properties(realm.kafka.address("SASL_PLAINTEXT"), keys)
    with pytest.raises(AuthenticationFailedError):
        await connect(settings.bootstrap_servers[0], settings)


def guarded(directory: Path, address: str, keys: dict[str, str]) -> KustosNode:
    properties = {f"kustos.upstream.{key}": value for key, value in keys.items()}
    return KustosNode(directory, address, KustosSettings(users=USERS, properties=properties))


def deliver(node: KustosNode, topic: str) -> list[object]:
    """Produce with a client of its own; return the errors."""
    delivered: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": USERS["admin"],
        }
    )
    producer.produce(topic, b"1", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(WAIT_S) == 0
    return delivered


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_gateway_logs_in_upstream_and_renews_its_ticket_ahead_of_its_end(
    tmp_path: Path, realm: Realm, protocol: str
) -> None:
    keys = realm.keys(protocol, "svc", realm.svc) | SOON
    with guarded(tmp_path, realm.kafka.address(protocol), keys) as node:
        assert deliver(node, "by-kerberos") == [None]
        # the first ticket, and several others, have ended by then
        before = realm.kdc.logins("svc")
        wait_until(lambda: realm.kdc.logins("svc") >= before + 6, what="the ticket was renewed")
        assert deliver(node, "by-kerberos") == [None]
    assert "a Kerberos ticket was renewed" in (tmp_path / "kustos.log").read_text()


@pytest.mark.behaviour("B356")
def test_a_node_without_a_ticket_does_not_start(tmp_path: Path, realm: Realm) -> None:
    missing = realm.keys("SASL_PLAINTEXT", "ops", tmp_path / "no.keytab")
    node = guarded(tmp_path, realm.kafka.address("SASL_PLAINTEXT"), missing)
    with pytest.raises(ChildError, match=f"ended with {EXIT_UNREACHABLE}"):
        node.start()
    assert f"cannot log in to Kerberos as `ops@{REALM}`" in (tmp_path / "kustos.log").read_text()


async def test_a_node_follows_controllers_and_forwards_changes_with_a_ticket(
    tmp_path: Path, realm: Realm
) -> None:
    properties = {
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,GSSAPI",
        "listener.name.controller.gssapi.sasl.jaas.config": jaas("kafka/localhost", realm.service_keytab),
        "listener.name.controller.sasl.kerberos.service.name": "kafka",
        "super.users": "User:admin;User:broker;User:ANONYMOUS;User:ops",
    }
    keys = {f"kustos.quorum.{key}": value for key, value in realm.keys("SASL_PLAINTEXT").items()}
    with (
        Quorum(tmp_path / "quorum", count=1, properties=properties) as quorum,
        kraft_node(tmp_path / "kustos", quorum, keys) as node,
    ):
        ann = await logged_in(node, "ann")
        assert await topic_error(ann, "orders") == DENIED
        admin = await logged_in(node, "admin")
        answer = await create_acls(admin, ann_of("orders", AclPermissionType.ALLOW))
        assert [result.error_code for result in answer.results] == [0]
        assert await topic_error(ann, "orders") == UNKNOWN_TOPIC
