"""ACLs and SCRAM users administered on kustos with Kafka's own tools; what is acknowledged is in force."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding as NewAcl
from confluent_kafka.admin._acl import AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.static.primitive import i8

from testkit.cli import kafka_acls_of
from testkit.guarded.cluster import GuardedCluster, Op, Type, acl
from testkit.guarded.common_settings import ACLS
from testkit.guarded.raw_client import Connect, RawClient
from testkit.guarded.traffic_judge import Acls
from testkit.kafka import KafkaTools
from testkit.tap.frames import code
from testkit.waiting import wait_until
from tests.e2e.test_fetch_sessions import grant
from tests.e2e.test_java_tools import Runner

METADATA, DELETE_ACLS = 3, 31
INVALID_REQUEST = 42
WAIT_S = 60.0
DAVES = (
    acl("dave", Op.READ, Type.TOPIC, "invoices"),
    acl("dave", Op.DESCRIBE, Type.TOPIC, "invoices"),
)


@pytest.fixture
def changing(world: GuardedCluster) -> Iterator[GuardedCluster]:
    """The common world, judged by the ACLs before and after."""
    yield world
    try:
        world.assert_proper(ACLS, (*ACLS, *DAVES))
    finally:
        world.begin_anew()


@pytest.fixture
def run(changing: GuardedCluster, kafka_tools: KafkaTools) -> Runner:
    return Runner(changing, kafka_tools)


@pytest.fixture
def connect(changing: GuardedCluster) -> Iterator[Connect]:
    with ExitStack() as stack:

        def login(user: str) -> RawClient:
            client = stack.enter_context(RawClient(changing.bootstrap, user))
            return client.log_in(user, changing.settings.users[user])

        yield login


def topics_of(client: RawClient) -> set[str]:
    return {str(topic.name) for topic in client.ask(METADATA, 1, topics=None).topics}


def text_of(acls: Acls) -> set[tuple[str, ...]]:
    return {
        (
            str(each.pattern.resource_type),
            each.pattern.name,
            str(each.pattern.pattern_type),
            each.entry.principal,
            each.entry.host,
            str(each.entry.operation),
            str(each.entry.permission_type),
        )
        for each in acls
    }


def test_kafka_acls_lists_adds_and_removes(run: Runner, connect: Connect) -> None:
    listed = kafka_acls_of(run("AclCommand", "admin", "--list").require())
    assert listed == text_of(ACLS)
    dave = connect("dave")
    assert topics_of(dave) == {"public-news"}
    chosen = ("--allow-principal", "User:dave", "--operation", "Read", "--topic", "invoices")
    run("AclCommand", "admin", "--add", *chosen).require()
    assert topics_of(dave) == {"public-news", "invoices"}
    run("AclCommand", "admin", "--remove", "--force", *chosen).require()
    assert topics_of(dave) == {"public-news"}
    assert kafka_acls_of(run("AclCommand", "admin", "--list").require()) == text_of(ACLS)


def test_kafka_acls_is_refused_to_those_who_may_not(run: Runner) -> None:
    chosen = ("--allow-principal", "User:bob", "--operation", "All", "--topic", "invoices")
    refused = run("AclCommand", "bob", "--add", *chosen)
    assert "ClusterAuthorizationException" in refused.stdout + refused.stderr
    refused = run("AclCommand", "bob", "--list")
    assert "ClusterAuthorizationException" in refused.stdout + refused.stderr


@pytest.mark.behaviour("B209")
def test_bad_acls_are_refused_one_by_one_through_an_admin_client(
    changing: GuardedCluster, connect: Connect
) -> None:
    """Those beside them are created, and in force."""
    admin, dave = connect("admin"), connect("dave")
    admin_client = AdminClient(changing.librdkafka("admin"))

    def binding(kind: ResourceType, name: str, principal: str = "User:dave") -> NewAcl:
        literal, read, allow = ResourcePatternType.LITERAL, AclOperation.READ, AclPermissionType.ALLOW
        return NewAcl(kind, name, literal, principal, "*", read, allow)

    good = binding(ResourceType.TOPIC, "invoices")
    bad = (
        binding(ResourceType.BROKER, "not-the-cluster"),
        binding(ResourceType.TOPIC, "payroll", "no colon"),
    )
    made = admin_client.create_acls([bad[0], good, bad[1]])
    assert made[good].result(WAIT_S) is None
    for each in bad:
        with pytest.raises(KafkaException) as caught:
            made[each].result(WAIT_S)
        assert caught.value.args[0].code() == INVALID_REQUEST
    assert "invoices" in topics_of(dave)
    assert "payroll" not in topics_of(dave)
    assert revoke_all(admin, "dave") == 1


def revoke_all(admin: RawClient, user: str) -> int:
    chosen = DeleteAclsFilter(
        resource_type_filter=i8(1),
        resource_name_filter=None,
        pattern_type_filter=i8(1),
        principal_filter=f"User:{user}",
        host_filter=None,
        operation=i8(1),
        permission_type=i8(1),
    )
    answer = admin.ask(DELETE_ACLS, 3, filters=(chosen,))
    assert code(answer.filter_results[0]) == 0
    return len(answer.filter_results[0].matching_acls)


def test_a_deleted_acl_is_not_in_force_after_its_answer_on_any_connection(
    changing: GuardedCluster, connect: Connect
) -> None:
    admin, others = connect("admin"), [connect("dave") for _ in range(8)]
    for _ in range(10):
        grant(admin, "dave", "invoices")
        assert all("invoices" in topics_of(each) for each in others)
        assert revoke_all(admin, "dave") == 1
        assert not any("invoices" in topics_of(each) for each in others)


def scram_login(scene: GuardedCluster, user: str, password: str, mechanism: str) -> set[str]:
    properties = scene.librdkafka("admin", mechanism)
    properties |= {"sasl.username": user, "sasl.password": password, "client.id": user}
    return set(AdminClient(properties).list_topics(timeout=WAIT_S).topics)


def test_a_scram_user_made_by_kafka_configs_logs_in_at_once_and_is_gone_when_deleted(
    changing: GuardedCluster, run: Runner
) -> None:
    entity = ("--entity-type", "users", "--entity-name", "zoe")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        added = f"{mechanism}=[iterations=4096,password=zoe-secret]"
        run("ConfigCommand", "admin", "--alter", "--add-config", added, *entity).require()
        assert scram_login(changing, "zoe", "zoe-secret", mechanism) == {"public-news"}
    described = run("ConfigCommand", "admin", "--describe", *entity).require()
    assert "SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=4096" in described
    assert "secret" not in described
    run("ConfigCommand", "admin", "--alter", "--delete-config", "SCRAM-SHA-256", *entity).require()
    assert scram_login(changing, "zoe", "zoe-secret", "SCRAM-SHA-512") == {"public-news"}
    told: list[str] = []
    zoe = {"sasl.username": "zoe", "sasl.password": "zoe-secret"}
    gone = AdminClient(
        changing.librdkafka("admin") | zoe | {"error_cb": lambda error: told.append(error.name())}
    )

    def is_refused() -> bool:
        gone.poll(0.1)
        return "_AUTHENTICATION" in told

    wait_until(is_refused, what="the login is refused")


def test_a_user_may_not_make_users(run: Runner) -> None:
    entity = ("--entity-type", "users", "--entity-name", "mallory")
    refused = run("ConfigCommand", "bob", "--alter", "--add-config", "SCRAM-SHA-256=[password=x]", *entity)
    assert "ClusterAuthorizationException" in refused.stdout + refused.stderr


def test_a_restart_keeps_everything_and_kafka_reads_the_log(
    changing: GuardedCluster, connect: Connect, kafka_tools: KafkaTools
) -> None:
    grant(connect("admin"), "dave", "invoices")
    assert changing.kustos.stop() == 0
    log = max((changing.kustos.metadata_directory / "__cluster_metadata-0").glob("*.log"))
    dumped = kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log)).require()
    assert '"principal":"User:dave"' in dumped
    assert '"name":"zoe"' in dumped
    changing.kustos.start()
    with RawClient(changing.bootstrap, "dave") as dave:
        dave.log_in("dave", changing.settings.users["dave"])
        assert topics_of(dave) == {"public-news", "invoices"}
    assert scram_login(changing, "zoe", "zoe-secret", "SCRAM-SHA-512") == {"public-news"}
    with RawClient(changing.bootstrap, "admin") as admin:
        admin.log_in("admin", changing.settings.users["admin"])
        assert revoke_all(admin, "dave") == 1
