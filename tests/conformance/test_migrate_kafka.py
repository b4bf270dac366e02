"""`kustos migrate` from a real cluster into a directory that a node then serves, and into live ones."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from kustos.acl import AclBinding
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.client.admin.client import AdminClient as OwnAdminClient
from kustos.client.settings import ClientSettings
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import InitialScramUser, format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.features import CIDR_ACL_LEVEL
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.wire import request_codec
from kustos.wire.api_keys import ApiKey
from testkit import versions
from testkit.cli import login
from testkit.equality.sides import Side
from testkit.equality.stories import message_of
from testkit.kafka import SASL_PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings, make_topics
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosNode, KustosSettings
from testkit.migration import NAMES, OPERATIONS, Migrate, binding, random_binding
from testkit.waiting import wait_until

SEED = 430
USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
KEY = "a secret of some length"
TOPICS = [name for name in NAMES if name.isascii() and name != "!"]
WAIT_S = 60.0
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
A_RANGE = binding("TOPIC", "t", "LITERAL", "User:x", "10.0.0.0/8", "READ", "DENY")
SETTINGS = NodeSettings(
    listeners=(SASL_PLAINTEXT,),
    users=USERS,
    authorizer=STANDARD_AUTHORIZER,
    super_users=("User:admin",),
    properties={"delegation.token.secret.key": KEY},
)


@pytest.fixture(scope="module")
def made() -> list[AclBinding]:
    chance = random.Random(SEED)
    hosts = ("*", "*", "*", "127.0.0.1", "10.0.0.1")
    found = {random_binding(chance, hosts) for _ in range(80)}
    found |= {
        binding("TOPIC", chance.choice(TOPICS), "LITERAL", user, chance.choice(hosts), operation, "ALLOW")
        for user in ("User:alice", "User:bob")
        for operation in OPERATIONS
        if chance.random() < 0.7
    }
    return sorted(found, key=str)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, made: list[AclBinding]) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path_factory.mktemp("kafka"), SETTINGS) as node:
        make_topics([node], *(NewTopic(name, 1, 1) for name in TOPICS))
        assert asyncio.run(created(node.bootstrap, made)) == [None] * len(made)
        wait_for_acls(node.bootstrap, set(made))
        yield node


@pytest.fixture
def ranged(tmp_path: Path) -> Path:
    """A metadata directory with the DENY of a range of addresses."""
    format_directory(tmp_path / "ranged", acls=[A_RANGE], metadata_version=CIDR_ACL_LEVEL)
    return tmp_path / "ranged"


@pytest.fixture
def migrate(capsys: pytest.CaptureFixture[str]) -> Migrate:
    return Migrate(capsys)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("config") / "admin.properties"
    write_properties(file, login("admin", USERS["admin"]))
    return file


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "node" / "metadata")
    return tmp_path / "node" / "metadata"


def admin(bootstrap: str, user: str = "admin", mechanism: str = "SCRAM-SHA-256") -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": USERS[user],
        }
    )


async def created(bootstrap: str, bindings: list[AclBinding]) -> list[Any]:
    settings = ClientSettings.from_properties(bootstrap, login("admin", USERS["admin"]))
    async with OwnAdminClient(settings) as client:
        return list(await client.create_acls(bindings))


async def acls(bootstrap: str) -> set[AclBinding]:
    settings = ClientSettings.from_properties(bootstrap, login("admin", USERS["admin"]))
    async with OwnAdminClient(settings) as client:
        return set(await client.describe_acls())


def wait_for_acls(bootstrap: str, expected: set[AclBinding]) -> None:
    """Return once a broker has read these ACLs, and only these, from the log."""
    wait_until(lambda: asyncio.run(acls(bootstrap)), holds=expected.__eq__, what="the broker has the ACLs")


async def tokens(bootstrap: str) -> set[str]:
    settings = ClientSettings.from_properties(bootstrap, login("admin", USERS["admin"]))
    async with OwnAdminClient(settings) as client:
        return {token.token_id for token in await client.describe_delegation_tokens()}


def allowed(bootstrap: str, user: str, mechanism: str) -> dict[str, set[str] | None]:
    """Topic -> all that the user may do there, as decided by whoever answers; None: not even see it."""
    client = admin(bootstrap, user, mechanism)
    asked = client.describe_topics(TopicCollection(TOPICS), include_authorized_operations=True)
    found: dict[str, set[str] | None] = {}
    for name, future in asked.items():
        try:
            found[name] = {operation.name for operation in future.result(WAIT_S).authorized_operations}
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_AUTHORIZATION_FAILED":
                raise
            found[name] = None
    return found


def guard(directory: Path, upstream: KafkaNode) -> KustosNode:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    properties = {
        "kustos.upstream.security.protocol": "SASL_PLAINTEXT",
        "kustos.upstream.sasl.mechanism": "SCRAM-SHA-256",
        "kustos.upstream.sasl.jaas.config": f'{module} required username="admin" '
        f'password="{USERS["admin"]}";',
        "delegation.token.secret.key": KEY,
    }
    return KustosNode(directory, upstream.bootstrap, KustosSettings(properties=properties))


def test_without_a_snapshot_users_need_new_passwords_and_acls_come(
    broker: KafkaNode, migrate: Migrate, config: Path, directory: Path, made: list[AclBinding]
) -> None:
    arguments = (f"kafka://{broker.bootstrap}", directory, "--source-config", config)
    dry = migrate(*arguments)
    needed = {(each["user"], each["mechanism"]) for each in dry.document["users"]["need_password"]}
    assert needed == {(user, mechanism) for user in USERS for mechanism in MECHANISMS}
    assert (dry.exit_code, read_image(directory).acls) == (ExitCode.NO, {})
    assert migrate(*arguments, "--apply").exit_code == ExitCode.NO
    image = read_image(directory)
    assert set(image.acls.values()) == set(made)
    assert image.scram_credentials == {}
    again = migrate(*arguments, "--acls-only")
    assert (again.exit_code, again.document["acls"]["make"], again.document["users"]["need_password"]) == (
        0,
        [],
        [],
    )


def test_with_a_snapshot_everything_comes_and_a_node_then_decides_as_the_broker_does(
    broker: KafkaNode, migrate: Migrate, config: Path, directory: Path, made: list[AclBinding]
) -> None:
    token = token_of_alice(broker)
    snapshot = broker.log_dir
    wait_until(
        lambda: (
            token in read_image(snapshot).delegation_tokens and token in asyncio.run(tokens(broker.bootstrap))
        ),
        what="the token is kept, and the broker knows it",
    )
    arguments = (f"kafka://{broker.bootstrap}", directory, "--source-config", config, "--snapshot", snapshot)
    done = migrate(*arguments, "--apply")
    assert (done.exit_code, done.document["complete"], done.stderr) == (ExitCode.OK, True, "")
    assert done.document["tokens"]["make"] == [token]
    again = migrate(*arguments, "--apply")
    assert (again.exit_code, again.document["acls"]["make"], again.document["users"]["make"]) == (0, [], [])
    assert again.document["tokens"] == {"present": 1, "make": []}
    with guard(directory.parent, broker) as node:
        answers: set[str] = set()
        for user in ("alice", "bob"):
            for mechanism in MECHANISMS:
                theirs = allowed(broker.bootstrap, user, mechanism)
                assert allowed(node.bootstrap, user, mechanism) == theirs
                answers |= set(map(str, theirs.values()))
        assert len(answers) > 4, "few answers say little"
        assert asyncio.run(cluster_id(node.bootstrap, token_login(token)))
        assert asyncio.run(acls(node.bootstrap)) == set(made)


def token_of_alice(broker: KafkaNode) -> str:
    fields: dict[str, Any] = {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": [],
        "max_lifetime": -1,
    }
    codec = request_codec(ApiKey.CREATE_DELEGATION_TOKEN, 3)
    with Side("Kafka", broker.bootstrap, USERS) as side:
        message = message_of(codec.root, fields, lambda value: value)
        answer = side.ask("alice", ApiKey.CREATE_DELEGATION_TOKEN, codec, message)
    assert answer is not None
    token_id: str = answer.token_id
    return token_id


def token_login(token_id: str) -> dict[str, str]:
    password = TokenSecret(KEY.encode()).password(token_id)
    properties = login(token_id, password)
    jaas = properties["sasl.jaas.config"].replace(";", ' tokenauth="true";')
    return properties | {"sasl.jaas.config": jaas}


async def cluster_id(bootstrap: str, properties: dict[str, str]) -> str | None:
    async with OwnAdminClient(ClientSettings.from_properties(bootstrap, properties)) as client:
        return (await client.describe_cluster()).cluster_id


def test_acls_go_into_live_clusters_and_users_there_need_new_passwords(
    broker: KafkaNode, migrate: Migrate, config: Path, directory: Path, tmp_path: Path
) -> None:
    assert migrate(broker.log_dir, directory, "--apply").exit_code == 0
    other = tmp_path / "other"
    carol = scram_credential(ScramMechanism.SCRAM_SHA_256, "carol-secret", b"salt", 4096)
    fresh = [
        binding("TOPIC", "fresh", "LITERAL", "User:carol", "*", "READ", "ALLOW"),
        binding("TOPIC", "fre", "PREFIXED", "User:carol", "*", "WRITE", "DENY"),
    ]
    user = InitialScramUser("carol", ScramMechanism.SCRAM_SHA_256, carol)
    format_directory(other, acls=fresh, scram_users=[user])
    password = tmp_path / "password"
    password.write_text("another-secret")
    with guard(directory.parent, broker) as node:
        for bootstrap in (broker.bootstrap, node.bootstrap):
            before = asyncio.run(acls(bootstrap))
            live = (f"kafka://{bootstrap}", "--command-config", config)
            done = migrate(other, *live, "--apply")
            assert (done.exit_code, done.stderr) == (ExitCode.NO, "")
            [needed] = done.document["users"]["need_password"]
            assert (needed["user"], needed["mechanism"]) == ("carol", "SCRAM-SHA-256")
            wait_for_acls(bootstrap, before | set(fresh))
            cluster = ("--bootstrap-server", bootstrap, "--command-config", config)
            assert run(["users", "add", "carol", *map(str, cluster), "--password-file", str(password)]) == 0
            # a broker answers before it has read of the user
            again = wait_until(
                lambda live=live: migrate(other, *live, "--apply"),  # type: ignore[misc]
                holds=lambda outcome: (
                    (outcome.exit_code, outcome.document["complete"]) == (ExitCode.OK, True)
                ),
                what="carol has her password",
            )
            assert again.document["acls"] == {"present": 2, "only_in_target": len(before), "make": []}


def test_where_a_denial_is_refused_no_allowance_is_sent(
    broker: KafkaNode, migrate: Migrate, tmp_path: Path
) -> None:
    looks = binding("CLUSTER", "kafka-cluster", "LITERAL", "User:bob", "*", "DESCRIBE", "ALLOW")
    before = asyncio.run(acls(broker.bootstrap))
    assert asyncio.run(created(broker.bootstrap, [looks])) == [None]
    wait_for_acls(broker.bootstrap, before | {looks})
    other, file = tmp_path / "other", tmp_path / "bob.properties"
    write_properties(file, login("bob", USERS["bob"]))
    allow = binding("TOPIC", "t", "LITERAL", "User:x", "*", "READ", "ALLOW")
    format_directory(other, acls=[allow, binding("TOPIC", "t", "LITERAL", "User:x", "*", "WRITE", "DENY")])
    live = (f"kafka://{broker.bootstrap}", "--command-config", file)
    outcome = migrate(other, *live, "--apply")
    assert outcome.exit_code == ExitCode.NOT_AUTHORIZED
    assert outcome.error_code == "CLUSTER_AUTHORIZATION_FAILED"
    assert outcome.document["acls"]["make"] == []
    assert ["not sent" in each["reason"] for each in outcome.document["refused"]] == [False, True]
    assert allow not in asyncio.run(acls(broker.bootstrap))


def test_the_directory_of_a_running_kafka_is_not_written_to(
    broker: KafkaNode, migrate: Migrate, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    format_directory(other, acls=[binding("TOPIC", "new", "LITERAL", "User:x", "*", "READ", "DENY")])
    outcome = migrate(other, broker.log_dir, "--apply")
    assert (outcome.exit_code, outcome.error_code) == (ExitCode.FAILED, "LOCKED")


def test_ranges_of_addresses_are_not_sent_to_a_kafka_that_takes_them_for_texts(
    migrate: Migrate, config: Path, ranged: Path, tmp_path: Path
) -> None:
    earlier = replace(SETTINGS, release_version=versions.PREVIOUS)
    with KafkaNode(tmp_path / "kafka", earlier) as node:
        outcome = migrate(ranged, f"kafka://{node.bootstrap}", "--command-config", config, "--apply")
    assert (outcome.exit_code, outcome.error_code) == (ExitCode.NO, "REFUSED")
    [refused] = outcome.document["refused"]
    assert "metadata version 4.4-IV1" in refused["reason"]


def test_a_cluster_that_refuses_says_so(
    broker: KafkaNode, migrate: Migrate, directory: Path, tmp_path: Path
) -> None:
    file = tmp_path / "alice.properties"
    write_properties(file, login("alice", USERS["alice"]))
    outcome = migrate(f"kafka://{broker.bootstrap}", directory, "--source-config", file)
    assert (outcome.exit_code, outcome.error_code) == (
        ExitCode.NOT_AUTHORIZED,
        "CLUSTER_AUTHORIZATION_FAILED",
    )
    nowhere = migrate(broker.bootstrap, directory)
    assert (nowhere.exit_code, nowhere.error_code) == (ExitCode.USAGE, "USAGE")


def test_ranges_of_addresses_are_sent_to_a_kafka_that_knows_them(
    broker: KafkaNode, migrate: Migrate, config: Path, ranged: Path
) -> None:
    outcome = migrate(ranged, f"kafka://{broker.bootstrap}", "--command-config", config, "--apply")
    assert outcome.exit_code == ExitCode.OK
    assert A_RANGE in asyncio.run(acls(broker.bootstrap))
