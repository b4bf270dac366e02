"""The first chapters: Kafka, kustos before it, users, topics, ACLs."""

from demo import clients
from demo.acls import ACL_COUNT, compare_lists, kafka_acls_lines, names_of_users
from demo.cast import (
    TOPICS,
    USERS,
)
from demo.programs import NO_ERROR
from demo.stage import Call, Program, Stage
from testkit.jars import KAFKA


def start_kafka(stage: Stage) -> None:
    """Start Kafka; it tells itself that nothing guards it."""
    kafka = stage.place.kafka

    def start() -> str:
        kafka.start()
        authorizer = clients.broker_setting(kafka.bootstrap, "authorizer.class.name")
        return f"serves, authorizer.class.name={authorizer!r}"

    stage.step(
        f"Apache Kafka {KAFKA.version}: one node, no authorizer",
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
