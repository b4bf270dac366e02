"""A month of Kafka's authorizer log, made up for the notebooks: give them your own folder instead."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2026, 10, 1, tzinfo=UTC)
DAYS = 30
ORDERS = [f"orders.{country}" for country in ("at", "be", "ch", "de", "dk", "es", "fr", "it", "nl", "pl")]


def rule(principal: str, topic: str, operation: str, pattern: str = "LITERAL") -> str:
    """Return an ACL as the log names the one that decided."""
    return (
        f"MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName={topic}, patternType={pattern}, "
        f"principal={principal}, host=*, operation={operation}, permissionType=ALLOW])"
    )


def line(time: datetime, principal: str, operation: str, topic: str, decided_by: str) -> str:
    """Return a line of the log."""
    is_denied = decided_by == "DefaultDeny"
    level, result = ("INFO", "Denied") if is_denied else ("DEBUG", "Allowed")
    request = "Produce" if operation == "WRITE" else "Fetch"
    return (
        f"[{time:%Y-%m-%d %H:%M:%S},000] {level} Principal = {principal} is {result} operation = {operation} "
        f"from host = 10.0.0.7 on resource = Topic:LITERAL:{topic} for request = {request} with "
        f"resourceRefCount = 1 based on rule {decided_by} (kafka.authorizer.logger)"
    )


def write_log(folder: Path) -> Path:
    """Write the log below a folder and return its own folder.

    A shop writes to all topics by a wildcard, billing reads orders by a prefix, a migration ended after two
    days, and an intern is denied the payments now and then.
    """
    chance = random.Random(7)  # noqa: S311  nothing secret
    lines = []
    for hour in range(DAYS * 24):
        time = BEGIN + timedelta(hours=hour, minutes=chance.randrange(60))
        written, read = chance.choice(ORDERS), chance.choice(ORDERS)
        lines.append(line(time, "User:shop", "WRITE", written, rule("User:shop", "*", "WRITE")))
        by_prefix = rule("User:billing", "orders.", "READ", "PREFIXED")
        lines.append(line(time, "User:billing", "READ", read, by_prefix))
        if hour < 48:
            by_name = rule("User:migration", "payments", "READ")
            lines.append(line(time, "User:migration", "READ", "payments", by_name))
        if chance.random() < 0.02:
            lines.append(line(time, "User:intern", "READ", "payments", "DefaultDeny"))
    audit = folder / "audit"
    audit.mkdir()
    (audit / "kafka-authorizer.log").write_text("\n".join([*lines, ""]))
    return audit
