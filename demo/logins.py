"""Failed logins, and what an admin client is told."""

from demo import clients
from demo.answers import BAD_LOGIN, PYTHON_DENIED
from demo.cast import (
    NOBODY,
)
from demo.stage import Call, Program, Stage


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
