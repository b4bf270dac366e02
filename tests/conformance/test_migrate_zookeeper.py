"""`kustos migrate` from a real ZooKeeper that Kafka 2.8.2's own classes wrote."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.migrate import zookeeper_client
from kustos.client.admin.client import AdminClient, ClusterDescription
from kustos.client.errors import AuthenticationFailedError
from kustos.client.settings import ClientSettings
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.scram import ScramMechanism, credential_from_salted_password, salted_password
from kustos.metadata.store.store import MetadataStore
from testkit.cli import login
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.migration import (
    HOSTS,
    Migrate,
    binding,
    decisions,
    random_binding,
    random_question,
)
from testkit.waiting import wait_until
from tests.conformance.tls_stores import Stores, make_stores
from tests.conformance.zookeeper_probe import SASL_PASSWORD, SASL_USER, ZooKeeperProbe, running

SEED = 504
WORLDS = 16
QUESTIONS = 120
KEY_PASSWORD = "key-secret"
CREATE_SESSION, CLOSE_SESSION = -10, -11

ALICE_READS = binding("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW")
NOBODY_WRITES = binding("TOPIC", "or", "PREFIXED", "User:*", "*", "WRITE", "DENY")
A_RANGE = binding("TOPIC", "orders", "LITERAL", "User:alice", "10.0.0.0/8", "WRITE", "ALLOW")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("tls"), KEY_PASSWORD)


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory, stores: Stores) -> Iterator[ZooKeeperProbe]:
    with running(tmp_path_factory.mktemp("zookeeper"), stores) as probe:
        yield probe


@pytest.fixture
def migrate(capsys: pytest.CaptureFixture[str]) -> Migrate:
    return Migrate(capsys)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "meta")
    return tmp_path / "meta"


def files(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("everyone", [False, True])
def test_after_a_migration_decisions_are_those_of_kafkas_own_authorizer(
    zookeeper: ZooKeeperProbe, migrate: Migrate, tmp_path: Path, everyone: bool
) -> None:
    chance = random.Random(SEED + everyone)
    # a resource whose only ACL is one that nobody matches counts as one with ACLs, until that is left out
    hosts = ("*", "*", "*", *HOSTS, "::1", *(() if everyone else ("10.0.0.0/8",)))
    allowed = 0
    for number in range(WORLDS // 2):
        chroot = f"/world-{everyone}-{number}"
        made = [random_binding(chance, hosts) for _ in range(chance.randint(1, 25))]
        zookeeper.open(chroot, everyone=everyone)
        assert all(zookeeper.create(made))
        target = tmp_path / f"meta-{number}"
        format_directory(target)
        arguments = (f"zookeeper://{zookeeper.connect(chroot)}", target)
        outcome = migrate(*arguments, "--apply", "--skip-refused")
        ranges = {each for each in made if "/" in each.entry.host}
        assert outcome.exit_code == (ExitCode.NO if ranges else ExitCode.OK), outcome
        assert len(outcome.document["refused"]) == len(ranges)
        migrated = set(read_image(target).acls.values())
        assert migrated == set(made) - ranges
        questions = [random_question(chance) for _ in range(QUESTIONS)]
        theirs = [zookeeper.ask(*question) for question in questions]
        assert decisions(migrated, questions, everyone=everyone) == theirs
        allowed += theirs.count(True)
    assert min(allowed, WORLDS // 2 * QUESTIONS - allowed) > 100


def test_nothing_is_written_to_zookeeper_and_a_second_run_plans_nothing(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    zookeeper.open("/twice")
    zookeeper.create([ALICE_READS, NOBODY_WRITES])
    zookeeper.add_scram("alice", "SCRAM-SHA-256=[iterations=8192,password=alice-secret]")
    tree, zxid, untouched = zookeeper.tree(), zookeeper.zxid(), files(directory)
    arguments = (f"zookeeper://{zookeeper.connect('/twice')}", directory)
    dry = migrate(*arguments)
    assert (dry.exit_code, dry.stderr, files(directory)) == (ExitCode.OK, "", untouched)
    assert [acl["permission_type"] for acl in dry.document["acls"]["make"]] == ["DENY", "ALLOW"]
    assert dry.document["users"]["make"] == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192}
    ]
    done = migrate(*arguments, "--apply")
    assert (done.exit_code, done.stderr) == (ExitCode.OK, "")
    assert done.document == dry.document | {"applied": True}
    made = files(directory)
    assert made != untouched
    again = migrate(*arguments, "--apply")
    assert again.exit_code == ExitCode.OK
    assert (again.document["acls"]["make"], again.document["users"]["make"]) == ([], [])
    assert (again.document["acls"]["present"], again.document["users"]["present"]) == (2, 1)
    assert files(directory) == made
    assert zookeeper.tree() == tree
    assert set(zookeeper.transactions(zxid)) == {CREATE_SESSION, CLOSE_SESSION}


def test_users_come_with_the_keys_that_kafkas_tool_made(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    zookeeper.open("/users")
    names = {"al/ice": "pass-1%", "zoë €*+ %2f": "pass-ü", "bob": "pass-b"}
    for name, password in names.items():
        both = [f"{each.mechanism_name}=[iterations=4097,password={password}]" for each in ScramMechanism]
        zookeeper.add_scram(name, *both, "producer_byte_rate=10")
    zookeeper.configure(
        "--alter", "--entity-type", "users", "--entity-default", "--add-config", "request_percentage=50"
    )
    zookeeper.configure(
        "--alter", "--entity-type", "users", "--entity-name", "bob", "--entity-type", "clients",
        "--entity-name", "c", "--add-config", "consumer_byte_rate=10",
    )  # fmt: skip
    outcome = migrate(f"zookeeper://{zookeeper.connect('/users')}", directory, "--apply")
    assert outcome.exit_code == ExitCode.OK, outcome
    counts = {each["what"]: each["count"] for each in outcome.document["left"]}
    assert counts == {
        "settings `producer_byte_rate`": 3,
        "settings `consumer_byte_rate`": 1,
        "settings `request_percentage`": 1,
    }
    kept = read_image(directory).scram_credentials
    assert set(kept) == {(name, int(mechanism)) for name in names for mechanism in ScramMechanism}
    for (user, code), credential in kept.items():
        mechanism = ScramMechanism(code)
        salted = salted_password(mechanism, names[user].encode(), credential.salt, 4097)
        assert credential == credential_from_salted_password(mechanism, salted, credential.salt, 4097)
        assert names[user] not in outcome.stdout


def test_migrated_users_log_in_with_the_passwords_that_they_have(
    zookeeper: ZooKeeperProbe, migrate: Migrate, kafka: KafkaNode, tmp_path: Path
) -> None:
    zookeeper.open("/logins")
    node = KustosNode(tmp_path / "node", kafka.bootstrap, KustosSettings())
    format_directory(node.metadata_directory)
    for mechanism in ScramMechanism:
        user = f"z,o=e {mechanism.value}"
        zookeeper.add_scram(user, f"{mechanism.mechanism_name}=[password=pass-{mechanism.value}]")
    zookeeper.create([binding("CLUSTER", "kafka-cluster", "LITERAL", "User:*", "*", "DESCRIBE", "ALLOW")])
    arguments = (f"zookeeper://{zookeeper.connect('/logins')}", node.metadata_directory)
    assert migrate(*arguments, "--apply").exit_code == ExitCode.OK
    with node:
        for mechanism in ScramMechanism:
            user, password = f"z,o=e {mechanism.value}", f"pass-{mechanism.value}"
            found = cluster_of(node, user, password, mechanism)
            assert found.cluster_id == kafka.cluster_id
            with pytest.raises(AuthenticationFailedError):
                cluster_of(node, user, "wrong", mechanism)


def cluster_of(node: KustosNode, user: str, password: str, mechanism: ScramMechanism) -> ClusterDescription:
    properties = login(user, password, mechanism.mechanism_name)
    settings = ClientSettings.from_properties(node.bootstrap, properties)

    async def ask() -> ClusterDescription:
        async with AdminClient(settings) as client:
            return await client.describe_cluster()

    return asyncio.run(ask())


def test_trees_without_bounds_are_not_read(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zookeeper.open("/large")
    arguments = (f"zookeeper://{zookeeper.connect('/large')}", directory)
    assert migrate(*arguments).exit_code == ExitCode.OK
    for limit, value in (("NODES_MAX", 5), ("TREE_BYTES_MAX", 5)):
        with monkeypatch.context() as patched:
            patched.setattr(zookeeper_client, limit, value)
            outcome = migrate(*arguments)
            assert (outcome.exit_code, outcome.error_code) == (ExitCode.FAILED, "TOO_LARGE")
    zookeeper.node("/config/users" + "/a" * 17, "")
    outcome = migrate(*arguments)
    assert (outcome.exit_code, outcome.error_code) == (ExitCode.FAILED, "TOO_LARGE")
    assert migrate(*arguments, "--acls-only").exit_code == ExitCode.OK


def test_what_is_refused_stops_everything_unless_it_may_be_left_out(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    zookeeper.open("/refused")
    zookeeper.create([ALICE_READS, A_RANGE])
    untouched = files(directory)
    arguments = (f"zookeeper://{zookeeper.connect('/refused')}", directory, "--apply")
    stopped = migrate(*arguments)
    assert (stopped.exit_code, stopped.error_code) == (ExitCode.NO, "REFUSED")
    assert (stopped.document["applied"], files(directory)) == (False, untouched)
    [refused] = stopped.document["refused"]
    assert refused["where"] == "/kafka-acl/Topic/orders"
    assert "10.0.0.0/8" in refused["what"]
    left_out = migrate(*arguments, "--skip-refused")
    assert (left_out.exit_code, left_out.document["applied"]) == (ExitCode.NO, True)
    assert set(read_image(directory).acls.values()) == {ALICE_READS}


def test_a_name_with_a_slash_is_refused_since_kafka_itself_forgets_it(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    outer, inner = (
        binding("GROUP", name, "LITERAL", "User:alice", "*", "READ", "ALLOW") for name in ("a", "a/b")
    )
    question = ("User:alice", "10.0.0.1", "READ", "GROUP")
    zookeeper.open("/slash-made")
    # one by one: Kafka can only make the node of the second below that of the first
    assert [zookeeper.create([each]) for each in (outer, inner)] == [[True], [True]]
    assert zookeeper.ask(*question, "a/b")
    # another world, where no notification of a change is left to be worked off
    zookeeper.open("/slash")
    zookeeper.create([outer])
    entry = '{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"}'
    zookeeper.node("/kafka-acl/Group/a/b", f'{{"version":1,"acls":[{entry}]}}')
    zookeeper.open("/slash")
    assert [zookeeper.ask(*question, name) for name in ("a", "a/b")] == [True, False]
    outcome = migrate(f"zookeeper://{zookeeper.connect('/slash')}", directory)
    assert [each["where"] for each in outcome.document["refused"]] == ["/kafka-acl/Group/a/b"]
    assert [each["resource_name"] for each in outcome.document["acls"]["make"]] == ["a"]


def test_what_kafka_skips_is_refused_by_name(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    zookeeper.open("/odd")
    entry = '{"principal":"User:alice","permissionType":"Allow","operation":"%s","host":"*"}'
    document = f'{{"version":1,"acls":[{entry % "Read"},{entry % "Fly"}]}}'
    for path in ("/kafka-acl/Topic/a", "/kafka-acl/topic/b", "/kafka-acl/Flight/c"):
        zookeeper.node(path, document)
    zookeeper.open("/odd")
    theirs = {line for line in zookeeper.acls() if " UNKNOWN " not in line}
    assert theirs == {"TOPIC a LITERAL User:alice * READ ALLOW"}
    plan = migrate(f"zookeeper://{zookeeper.connect('/odd')}", directory).document
    assert [each["resource_name"] for each in plan["acls"]["make"]] == ["a"]
    assert [(each["where"], each["what"]) for each in plan["refused"]] == [
        ("/kafka-acl/Flight/c", "the node"),
        ("/kafka-acl/Topic/a", "ACL 2"),
        ("/kafka-acl/topic/b", "the node"),
    ]


def test_the_tree_of_the_draft_counts_where_no_release_left_another(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    zookeeper.open("/draft")
    entry = (
        '{"principals":["user:alice","bob"],"permissionType":"ALLOW",'
        '"operations":["READ","WRITE"],"hosts":["host1","host2"]}'
    )
    zookeeper.node("/kafka-acls/orders", f'{{"version":1,"acls":[{entry}]}}')
    arguments = (f"zookeeper://{zookeeper.connect('/draft')}", directory)
    plan = migrate(*arguments).document
    assert len(plan["acls"]["make"]) == 8
    zookeeper.create([ALICE_READS])
    assert len(migrate(*arguments).document["acls"]["make"]) == 1
    assert [each["where"] for each in migrate(*arguments).document["left"]] == ["/kafka-acls"]
    assert len(migrate(*arguments, "--kip-11").document["acls"]["make"]) == 9


def test_a_log_in_is_needed_where_zookeeper_asks_for_one(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path, tmp_path: Path
) -> None:
    module = "org.apache.zookeeper.server.auth.DigestLoginModule"
    config = tmp_path / "zookeeper.properties"
    sasl = f'kustos.zookeeper.sasl.jaas.config={module} required username="{SASL_USER}" password="%s";\n'
    secret = '{"version":1,"config":{"consumer_byte_rate":"1"}}'
    # of `reader:reader-secret`, as ZooKeeper's DigestAuthenticationProvider makes it
    digest = "reader:r3momIr/NzOJDioepMt66iA7KrM="
    for scheme, reader, text in (
        ("sasl", SASL_USER, sasl % SASL_PASSWORD),
        ("digest", digest, "kustos.zookeeper.digest=reader:reader-secret\n"),
    ):
        chroot = f"/guarded-{scheme}"
        zookeeper.open(chroot)
        zookeeper.create([ALICE_READS])
        zookeeper.node("/config/users/alice", secret, scheme, reader)
        arguments = (f"zookeeper://{zookeeper.connect(chroot)}", directory)
        refused = migrate(*arguments)
        assert (refused.exit_code, refused.error_code) == (ExitCode.NOT_AUTHORIZED, "NO_AUTH")
        assert migrate(*arguments, "--acls-only").exit_code == ExitCode.OK
        config.write_text(text + "zookeeper.connection.timeout.ms=60000\n")
        assert migrate(*arguments, "--source-config", config).document["left"] != []
    config.write_text(sasl % "wrong-secret" + "zookeeper.connection.timeout.ms=3000\n")
    # a server that needs longer than that to refuse it is only one that does not answer
    wrong = wait_until(
        lambda: migrate(*arguments, "--source-config", config),
        holds=lambda outcome: outcome.error_code == "AUTHENTICATION_FAILED",
        what="the login is refused",
    )
    assert wrong.exit_code == ExitCode.UNREACHABLE
    assert "wrong-secret" not in wrong.stderr


def test_over_tls_both_sides_show_their_certificates(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path, tmp_path: Path, stores: Stores
) -> None:
    zookeeper.open("/tls")
    zookeeper.create([ALICE_READS])
    config = tmp_path / "zookeeper.properties"
    trust = (
        "zookeeper.ssl.client.enable=true\n"
        "zookeeper.ssl.truststore.type=PEM\nzookeeper.ssl.truststore.location={}\n"
    )
    own = (
        f"zookeeper.ssl.keystore.type=PEM\nzookeeper.ssl.keystore.location={stores.client}\n"
        f"zookeeper.ssl.keystore.password={KEY_PASSWORD}\n"
    )
    connect = f"127.0.0.1:{zookeeper.tls_port}/tls"
    arguments = (f"zookeeper://{connect}", directory, "--source-config", config)
    config.write_text(trust.format(stores.authority) + own + "zookeeper.connection.timeout.ms=60000\n")
    outcome = migrate(*arguments)
    assert (outcome.exit_code, len(outcome.document["acls"]["make"])) == (ExitCode.OK, 1)
    for broken in (trust.format(stores.authority), trust.format(stores.client) + own):
        config.write_text(broken + "zookeeper.connection.timeout.ms=2000\n")
        refused = migrate(*arguments)
        assert (refused.exit_code, refused.error_code) == (ExitCode.UNREACHABLE, "CANNOT_CONNECT")
        assert KEY_PASSWORD not in refused.stderr


def test_a_directory_that_is_in_use_is_left_alone(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    zookeeper.open("/locked")
    zookeeper.create([ALICE_READS])
    store = MetadataStore.open(directory)
    try:
        arguments = (f"zookeeper://{zookeeper.connect('/locked')}", directory)
        outcome = migrate(*arguments, "--apply")
        assert (outcome.exit_code, outcome.error_code) == (ExitCode.FAILED, "LOCKED")
        assert store.image.acls == {}
    finally:
        store.close()


def test_a_wrong_chroot_is_no_empty_kafka(
    zookeeper: ZooKeeperProbe, migrate: Migrate, directory: Path
) -> None:
    outcome = migrate(f"zookeeper://{zookeeper.connect('/nowhere')}", directory)
    assert (outcome.exit_code, outcome.error_code) == (ExitCode.FAILED, "NO_KAFKA")
