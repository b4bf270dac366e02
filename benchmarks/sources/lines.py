"""Lines of Kafka's authorizer log and events of kustos, as many as asked for, the same for the same seed."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from kustos.authorizer.audit import AUDIT_FIELDS

PRINCIPALS, RESOURCES, HOSTS = 2_000, 5_000, 500
BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
DRAWN_AT_ONCE = 10_000


def _zipf(rng: random.Random, count: int) -> list[int]:
    return rng.choices(range(count), weights=[1 / (rank + 1) for rank in range(count)], k=DRAWN_AT_ONCE)


def kafka_lines(
    count: int, seed: int = 1, every: timedelta = timedelta(milliseconds=37), begin: datetime = BEGIN
) -> Iterator[str]:
    """Yield lines as StandardAuthorizer of 4.x writes them; a tenth is denied, half is decided by an ACL."""
    rng = random.Random(seed)
    moment = begin
    for start in range(0, count, DRAWN_AT_ONCE):
        drawn = zip(*(_zipf(rng, size) for size in (PRINCIPALS, RESOURCES, HOSTS)), strict=True)
        for at, (principal, resource, host) in enumerate(drawn, start):
            if at == count:
                return
            moment += every
            denied, by_acl = at % 10 == 0, at % 2
            rule = "DefaultDeny" if denied else "SuperUser"
            if by_acl:
                rule = (
                    f"MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=topic-{resource % 97}, "
                    f"patternType=PREFIXED, principal=User:service-{principal}, host=*, operation=READ, "
                    "permissionType=ALLOW])"
                )
            level, result = ("INFO", "Denied") if denied else ("DEBUG", "Allowed")
            yield (
                f"[{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}] {level} "
                f"Principal = User:service-{principal} is {result} operation = READ "
                f"from host = 10.0.{host // 250}.{host % 250} on resource = Topic:LITERAL:topic-{resource} "
                "for request = Fetch with resourceRefCount = 1 "
                f"based on rule {rule} (kafka.authorizer.logger)"
            )


def _template() -> str:
    nested: dict[str, object] = {}
    values = {"string": "x", "int": 1, "long": 1, "boolean": True, "timestamp_ms": 0}
    told = {"schema_version": 1, "decision": "ALLOWED", "access": "ACCESS", "operation": "READ"}
    told |= {"resource_type": "TOPIC", "principal_type": "User", "rule.kind": "SuperUser"}
    for field in AUDIT_FIELDS:
        value = told.get(field.name, None if field.nullable else values[field.kind])
        target = nested
        *path, last = field.name.split(".")
        for part in path:
            target = target.setdefault(part, {})  # type: ignore[assignment]
        target[last] = value
    marks = {"event_id": "@id@", "time_ms": "@time@", "principal_name": "@principal@", "host": "@host@"}
    return json.dumps({**nested, **marks, "resource_name": "@resource@"}).replace('"@time@"', "@time@")


_PARTS = _template()


def event(number: int, time_ms: int, rng: random.Random) -> str:
    """Return an audit event of kustos as its JSON line."""
    # a power of a uniform number falls off about as Zipf's law does, at the cost of none of its tables
    principal, resource = (int(size ** rng.random()) for size in (PRINCIPALS, RESOURCES))
    return (
        _PARTS.replace("@id@", f"{number:08x}-0000-4000-8000-{number:012x}")
        .replace("@time@", str(time_ms))
        .replace("@principal@", f"service-{principal}")
        .replace("@resource@", f"topic-{resource}")
        .replace("@host@", f"10.0.0.{number % 250}")
    )
