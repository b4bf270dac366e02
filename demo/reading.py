"""Consumers: prefixes, groups, a DENY, and an ACL that goes away under a running one."""

from demo import clients
from demo.answers import PYTHON_DENIED
from demo.cast import (
    EU_RECORDS,
    JAVA_RECORDS,
    LATE_RECORDS,
    ORDER_COUNT,
    ORDERS,
    ORDERS_EU,
    PAYROLL,
    PYTHON_RECORDS,
)
from demo.programs import Said
from demo.stage import Call, Program, Stage


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
            shown="aiokafka as bob, group bob-live: orders-eu, until it is refused",
            expected=f"{len(LATE_RECORDS)} record, then {PYTHON_DENIED}",
            do=do,
        )
    )
    if cut:
        late_ms = cut[0].late_ms
        when = f"{late_ms:.0f} ms after" if late_ms > 0 else "before"
        stage.say.note(f"the consumer heard of it {when} the command had ended")
