"""The story: a guarded Kafka from the first start to the report on who did what."""

from collections.abc import Callable

from demo import clients
from demo.acls import ACL_COUNT, compare_lists, kafka_acls_lines, names_of_users
from demo.audit import play_audit
from demo.cast import (
    EU_RECORDS,
    JAVA_RECORDS,
    LATE_RECORDS,
    NOBODY,
    ORDERS,
    ORDERS_EU,
    PAYROLL,
    PAYROLL_RECORDS,
    PYTHON_RECORDS,
    TOPICS,
    USERS,
)
from demo.programs import NO_ERROR, Said
from demo.stage import Call, Program, Stage
from testkit.jars import KAFKA

JAVA_DENIED = "TopicAuthorizationException"
PYTHON_DENIED = "TopicAuthorizationFailedError"
LIBRDKAFKA_DENIED = "TOPIC_AUTHORIZATION_FAILED"
BAD_LOGIN = (
    "SaslAuthenticationException: Authentication failed during authentication due to invalid credentials "
    "with SASL mechanism SCRAM-SHA-256"
)
ORDER_COUNT = len(JAVA_RECORDS) + len(PYTHON_RECORDS)


def play(stage: Stage) -> None:
    """Play all of it. Raises `DemoError` where a step that others stand on fails."""
    chapters: tuple[tuple[str, tuple[Callable[[Stage], None], ...]], ...] = (
        ("A Kafka that guards nothing, and kustos before it", (start_kafka, start_kustos)),
        ("Users, topics, ACLs", (add_users, create_topics, add_acls, list_acls)),
        (
            "What each client gets to hear",
            (write, write_elsewhere, fill, read_by_prefix, read_by_java, deny_overrules),
        ),
        ("Logins, changes, administration", (log_in_wrongly, revoke, administer)),
        ("What was written down", (play_audit,)),
    )
    for title, steps in chapters:
        stage.say.chapter(title)
        for step in steps:
            step(stage)


def start_kafka(stage: Stage) -> None:
    """Start Kafka; it tells itself that nothing guards it."""
    kafka = stage.place.kafka

    def start() -> str:
        kafka.start()
        authorizer = clients.broker_setting(kafka.bootstrap, "authorizer.class.name")
        return f"serves, authorizer.class.name={authorizer!r}"

    version = KAFKA.name.removeprefix("kafka-")
    stage.step(
        f"Apache Kafka {version}: one node, no authorizer",
        Call(
            shown=f"StorageTool format, kafka.Kafka {kafka.configuration_file}",
            expected="serves, authorizer.class.name=''",
            do=start,
        ),
        vital=True,
    )


def start_kustos(stage: Stage) -> None:
    """Format the node with its first user, and run it."""
    place = stage.place
    stage.step("The node's properties, all of them")
    stage.say.block(place.write_properties())
    file = str(place.properties_file)
    scram = f"SCRAM-SHA-256=[name=admin,password-file={place.password_file('admin')}]"
    stage.step(
        "kustos: format the metadata log with a first user, then serve",
        Program(
            words=["kustos", "storage", "format", "-t", "random", "-c", file, "--add-scram", scram],
            expected=NO_ERROR,
        ),
        vital=True,
    )
    stage.say.blank()
    stage.play(
        Call(shown=f"kustos serve {file}", expected="/ready answers 200", do=place.start_kustos), vital=True
    )


def add_users(stage: Stage) -> None:
    """Add the users, then list them."""
    added = [
        Program(
            words=stage.as_admin(
                "kustos", "users", "add", name, "--password-file", str(stage.place.password_file(name))
            ),
            expected=NO_ERROR,
        )
        for name in USERS
    ]
    stage.step("Four users, their passwords from files", *added, vital=True)
    stage.say.blank()
    stage.play(
        Program(
            words=stage.as_admin("kustos", "users", "list", "--output", "json"),
            expected=", ".join(sorted(["admin", *USERS])),
            heard=names_of_users,
        )
    )


def create_topics(stage: Stage) -> None:
    """Create the topics as the super user."""
    stage.step(
        "Three topics, by the super user",
        Call(
            shown=f"confluent-kafka as admin: create {', '.join(TOPICS)}",
            expected=f"created {', '.join(TOPICS)}",
            do=lambda: clients.create_topics(stage.place.login("admin"), TOPICS),
        ),
        vital=True,
    )


def add_acls(stage: Stage) -> None:
    """Add ACLs with Kafka's tool and with ours."""
    java = (
        "--operation Write --topic orders --allow-principal User:alice",
        "--consumer --topic * --group * --allow-principal User:carol",
    )
    stage.step(
        "ACLs with Kafka's own tool: alice one literal topic, carol every topic",
        *(
            Program(words=stage.as_admin("kafka-acls", "--add", *each.split()), expected=NO_ERROR)
            for each in java
        ),
        vital=True,
    )
    ours = (
        "--consumer --topic orders --group bob --resource-pattern-type prefixed --allow-principal User:bob",
        "--operation Read --topic payroll --deny-principal User:carol",
    )
    stage.step(
        "ACLs with kustos: bob whatever begins with orders, carol not payroll",
        *(
            Program(words=stage.as_admin("kustos", "acls", "add", *each.split()), expected=NO_ERROR)
            for each in ours
        ),
        vital=True,
    )


def _command(stage: Stage, command: str, arguments: str) -> Program:
    words = stage.as_admin(*command.split(), *arguments.split())
    return Program(words=words, expected=NO_ERROR)


def list_acls(stage: Stage) -> None:
    """List the ACLs with both tools and compare."""
    table = stage.as_admin("kustos", "acls", "list")
    stage.step("Both tools list the same ACLs")
    stage.say.command(table)
    stage.say.block(stage.quiet(*table).stdout.rstrip().splitlines())
    stage.say.blank()
    ours = stage.as_admin("kustos", "acls", "list", "--output", "json")
    stage.play(
        Program(
            words=stage.as_admin("kafka-acls", "--list"),
            expected=f"the same {ACL_COUNT} ACLs",
            heard=lambda said: compare_lists(kafka_acls_lines(said.stdout), stage.quiet(*ours).stdout),
        )
    )


def _console_producer(stage: Stage, user: str, topic: str, expected: str) -> Program:
    words = stage.as_user(user, "kafka-console-producer", "--topic", topic)
    return Program(words=words, typed=JAVA_RECORDS, expected=expected)


def write(stage: Stage) -> None:
    """One who may write, one who may not."""
    stage.step(
        "Java producers: alice may write orders, mallory may nothing",
        _console_producer(stage, "alice", ORDERS, NO_ERROR),
        _console_producer(stage, "mallory", ORDERS, JAVA_DENIED),
    )


def write_elsewhere(stage: Stage) -> None:
    """A literal ACL is for that very name."""
    alice, records = stage.place.login("alice"), PYTHON_RECORDS

    def into(topic: str, expected: str) -> Call:
        return Call(
            shown=f"confluent-kafka as alice: {len(records)} records to {topic}",
            expected=f"{len(records)} {expected}",
            do=lambda: clients.produce(alice, topic, records),
        )

    stage.step(
        "A literal ACL: orders is not orders-eu",
        into(ORDERS, "acknowledged"),
        into(ORDERS_EU, LIBRDKAFKA_DENIED),
    )


def fill(stage: Stage) -> None:
    """The super user writes what others will try to read."""
    admin = stage.place.login("admin")
    stage.step(
        "The super user needs no ACL",
        *(
            Call(
                shown=f"confluent-kafka as admin: {len(records)} records to {topic}",
                expected=f"{len(records)} acknowledged",
                do=lambda topic=topic, records=records: clients.produce(admin, topic, records),  # type: ignore[misc]
            )
            for topic, records in ((ORDERS_EU, EU_RECORDS), (PAYROLL, PAYROLL_RECORDS))
        ),
    )


def read_by_prefix(stage: Stage) -> None:
    """A prefixed ACL covers both orders topics and nothing else."""
    bob = stage.place.login("bob")
    stage.step(
        "A prefixed ACL: bob reads orders and orders-eu, not payroll",
        Call(
            shown="aiokafka as bob, group bob-aio: orders, orders-eu",
            expected=f"{ORDER_COUNT} records from {ORDERS}, {len(EU_RECORDS)} from {ORDERS_EU}",
            do=lambda: clients.consume_async(
                bob, "bob-aio", [ORDERS, ORDERS_EU], ORDER_COUNT + len(EU_RECORDS)
            ),
        ),
        Call(
            shown="aiokafka as bob, group bob-aio: payroll",
            expected=PYTHON_DENIED,
            do=lambda: clients.consume_async(bob, "bob-aio", [PAYROLL], 1),
        ),
    )


def read_by_java(stage: Stage) -> None:
    """Java consumers: a group that may, a group that may not."""

    def heard(said: Said) -> str:
        lines = said.stdout.splitlines()
        texts = [*JAVA_RECORDS, *PYTHON_RECORDS]
        received = sum(lines.count(text) for text in texts)
        return said.outcome if said.java_error else f"{received} records"

    def consumer(group: str, expected: str) -> Program:
        words = stage.as_user("bob", "kafka-console-consumer", "--topic", ORDERS, "--group", group)
        limits = ["--from-beginning", "--max-messages", str(ORDER_COUNT), "--timeout-ms", "20000"]
        return Program(words=[*words, *limits], expected=expected, heard=heard)

    stage.step(
        "Groups are guarded too: bob's own, and one of others",
        consumer("bob-java", f"{ORDER_COUNT} records"),
        consumer("accounting", "GroupAuthorizationException"),
    )


def deny_overrules(stage: Stage) -> None:
    """A DENY is stronger than any ALLOW, and `explain` tells so."""
    carol = stage.place.login("carol")
    stage.step(
        "A DENY overrules a wildcard ALLOW: carol and payroll",
        Call(
            shown="kafka-python as carol, group carol: orders",
            expected=f"{ORDER_COUNT} records from {ORDERS}",
            do=lambda: clients.consume(carol, "carol", [ORDERS], ORDER_COUNT),
        ),
        Call(
            shown="kafka-python as carol, group carol-2: payroll",
            expected=PYTHON_DENIED,
            do=lambda: clients.consume(carol, "carol-2", [PAYROLL], 1),
        ),
    )
    why = stage.as_admin(
        *("kustos", "explain", "--principal", "User:carol", "--operation", "Read", "--topic", PAYROLL)
    )
    stage.say.blank()
    told: list[str] = []

    def heard(said: Said) -> str:
        told.extend(said.stdout.rstrip().splitlines())
        return told[0].partition(":")[0] if told else said.outcome

    stage.play(Program(words=why, expected="DENIED", heard=heard))
    stage.say.block(told)


def log_in_wrongly(stage: Stage) -> None:
    """A wrong password and an unknown user hear the same."""

    def attempt(file: str) -> Program:
        return Program(
            words=stage.as_user(file, "kafka-topics", "--list"),
            expected=BAD_LOGIN,
            heard=lambda said: said.java_error[1] if said.java_error else said.outcome,
        )

    stage.step(
        "A wrong password and an unknown user get the same answer",
        attempt("alice-wrong"),
        attempt(NOBODY),
    )


def revoke(stage: Stage) -> None:
    """Take an ACL away from a running consumer."""
    place = stage.place
    bob, admin = place.login("bob"), place.login("admin")
    remove = stage.as_admin(
        *("kustos", "acls", "remove", "--force", "--topic", ORDERS, "--resource-pattern-type", "prefixed")
    )
    cut: list[clients.CutOff] = []

    def do() -> str:
        cut.append(
            clients.consume_until_revoked(
                bob,
                "bob-live",
                ORDERS_EU,
                feed=lambda: clients.produce(admin, ORDERS_EU, LATE_RECORDS),
                revoke=lambda: stage.quiet(*remove),
            )
        )
        return f"{cut[0].records} record, then {cut[0].error}"

    stage.step("An ACL is taken away while a consumer runs")
    stage.say.command(remove)
    stage.play(
        Call(
            shown="aiokafka as bob, group bob-live: orders-eu, until it is told",
            expected=f"{len(LATE_RECORDS)} record, then {PYTHON_DENIED}",
            do=do,
        )
    )
    if cut:
        late_ms = cut[0].late_ms
        when = f"{late_ms:.0f} ms after" if late_ms > 0 else "before"
        stage.say.note(f"the consumer heard of it {when} the command had ended")


def administer(stage: Stage) -> None:
    """Clients are only ever told kustos' own address; creating topics needs an ACL."""
    place = stage.place
    stage.step(
        "kafka-python's admin client: the address of kustos, never Kafka's",
        Call(
            shown="kafka-python as admin: describe the cluster",
            expected=f"broker 1 at 127.0.0.1:{place.first_broker_port + 1}",
            do=lambda: clients.describe_cluster(place.login("admin")),
        ),
        Call(
            shown="kafka-python as mallory: create the topic loot",
            expected=PYTHON_DENIED,
            do=lambda: clients.create_topic_as(place.login("mallory"), "loot"),
        ),
    )
