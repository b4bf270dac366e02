"""Producers: who may write, who may not, and what a literal name is."""

from demo import clients
from demo.answers import JAVA_DENIED, LIBRDKAFKA_DENIED
from demo.cast import (
    EU_RECORDS,
    JAVA_RECORDS,
    ORDERS,
    ORDERS_EU,
    PAYROLL,
    PAYROLL_RECORDS,
    PYTHON_RECORDS,
)
from demo.programs import NO_ERROR
from demo.stage import Call, Program, Stage


def _console_producer(stage: Stage, user: str, topic: str, expected: str) -> Program:
    words = stage.as_user(user, "kafka-console-producer", "--topic", topic)
    if expected != NO_ERROR:
        words += ["--command-property", "enable.idempotence=false"]
    return Program(words=words, typed=JAVA_RECORDS, expected=expected)


def write(stage: Stage) -> None:
    """One who may write, one who may not."""
    stage.step(
        "Java producers: alice may write orders, mallory may nothing",
        _console_producer(stage, "alice", ORDERS, NO_ERROR),
        _console_producer(stage, "mallory", ORDERS, JAVA_DENIED),
    )
    stage.say.note(
        "Without that property Kafka's producer, refused a producer id, asks for one hundreds of times: "
        "it would drown the report below."
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
