"""Logs of three clusters in each format, and what their lines say, read without the pipeline."""

import gzip
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.pipeline.events import event_line, login_line
from tests.pipeline.plain_entitlements import ACL_NAMES, Acl, holds, is_for, operations
from tests.pipeline.rich_oddities import DAYS, TOPICS, Told, at, told

CLUSTERS = ("east", "lkc-1", "west")
ZONES = {
    "broker-1": "Europe/Berlin", "broker-2": "America/New_York", "strimzi": "UTC", "legacy": "UTC",
}  # fmt: skip
FILES = 14
"""What the two runs read; each of the two files in Strimzi's zip is one."""
START = datetime(2026, 10, 20, tzinfo=UTC)
"""Clocks change on October 25 in Berlin, and on November 1 in New York."""
PRINCIPALS = ("alice", "bob", "CN=x,OU=y")
OPERATIONS = ("READ", "WRITE", "DESCRIBE")


def moment(random: Random) -> datetime:
    """Return a time to the millisecond, in no hour that a clock shows twice."""
    found = START + timedelta(milliseconds=random.randrange(25 * 86_400_000))
    is_twice = (found.month, found.day) in {(10, 25), (11, 1)} and found.hour < 8
    return found + timedelta(hours=8) if is_twice else found


def drawn_rule(random: Random, acls: Sequence[Acl], told: Told, result: str) -> Acl | str:
    """Return an ACL that decides a question so, or the kind of another rule."""
    name = told.topic
    if told.is_super or result == "ERROR":
        return "SuperUser" if told.is_super else "DefaultDeny"
    found: list[Acl | str] = [
        one
        for one in acls
        if name is not None
        and holds(one, "TOPIC", name)
        and is_for(one, told.who, told.host)
        and (one[6] == "ALLOW") == told.is_allowed
        and told.operation in operations(one)
        and (told.is_allowed or one[5] in (told.operation, "ALL"))
    ]
    others = ["DefaultAllow"] if told.is_allowed else ["DefaultDeny"]
    if told.is_allowed and told.is_super is None:
        others.append("SuperUser")
    return random.choice([*found, *others])


def kafka_text(random: Random, time: datetime, broker: str, acls: Sequence[Acl]) -> str:
    """Return a line of something as a broker writes it."""
    level, result = random.choice(
        [("DEBUG", "Allowed"), ("INFO", "Denied"), ("TRACE", "Allowed"), ("TRACE", "Denied")]
    )
    who, host = f"User:{random.choice(PRINCIPALS)}", f"10.0.0.{random.randrange(3)}"
    told = Told(
        time, who, host, random.choice(OPERATIONS), random.choice(TOPICS), result == "Allowed", is_super=None
    )
    return told_by_kafka(random, told, broker, acls, level)


def told_by_kafka(random: Random, told: Told, broker: str, acls: Sequence[Acl], level: str) -> str:
    """Return a line of a decision.

    That of `strimzi` is in its layout, that of `legacy` by AclAuthorizer, which names no rule.
    """
    local = told.time.astimezone(ZoneInfo(ZONES[broker])).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    operation, result = told.operation, "Allowed" if told.is_allowed else "Denied"
    if broker == "legacy":
        words, rule = f"Operation = {operation.capitalize()}", ""
    else:
        is_upper = broker == "broker-1" or "_" in operation
        words = f"operation = {operation if is_upper else operation.capitalize()}"
        found = drawn_rule(random, acls, told, result.upper())
        rule = f" based on rule {found if isinstance(found, str) else rule_text(found)}"
    text = (
        f"Principal = {told.who} is {result} {words} from host = {told.host} on resource = "
        f"Topic:LITERAL:{told.topic} for request = Fetch with resourceRefCount = {random.randrange(1, 5)}"
        f"{rule}"
    )
    if broker == "strimzi":
        return f"{local} {level} {text} (kafka.authorizer.logger) [data-plane-kafka-request-handler-3]"
    return f"[{local}] {level} {text} (kafka.authorizer.logger)"


def rule_text(acl: Acl) -> str:
    kind, name, pattern, who, host, operation, permission = acl
    return (
        f"MatchingAcl(acl=StandardAcl(resourceType={kind}, resourceName={name}, patternType={pattern}, "
        f"principal={who}, host={host}, operation={operation}, permissionType={permission}))"
    )


def kustos_line(random: Random, number: int, time: datetime, acls: Sequence[Acl]) -> str:
    """Return a line of something as kustos writes it."""
    decision = random.choice(["ALLOWED", "ALLOWED", "DENIED", "ERROR"])
    who, host = f"User:{random.choice(PRINCIPALS)}", f"10.1.0.{random.randrange(3)}"
    operation, topic = random.choice(OPERATIONS), random.choice([*TOPICS, None])
    told = Told(time, who, host, operation, topic, decision == "ALLOWED", is_super=None)
    return told_by_kustos(
        random, number, told, acls, decision=decision, access=random.choice(["ACCESS", "ACCESS", "LISTING"]),
        log_if_denied=random.choice([True, False]),
    )  # fmt: skip


def told_by_kustos(random: Random, number: int, told: Told, acls: Sequence[Acl], **more: Any) -> str:
    """Return a line of a decision, with other values in it."""
    decision = more.pop("decision", "ALLOWED" if told.is_allowed else "DENIED")
    found = drawn_rule(random, acls, told, decision)
    if isinstance(found, str):
        rule = {"rule__kind": found}
    else:
        rule = dict(zip((f"rule__{each}" for each in ACL_NAMES), found, strict=True))
        rule["rule__kind"] = "MatchingAcl"
    return event_line(
        number, time_ms=round(told.time.timestamp() * 1000), cluster_id="west", decision=decision,
        principal_name=told.who.removeprefix("User:"), host=told.host, operation=told.operation,
        resource_name=told.topic, reference_count=random.randrange(1, 5), **rule, **more,
    )  # fmt: skip


def confluent_line(random: Random, number: int, time: datetime) -> str:
    """Return an event of something as Confluent's brokers write it."""
    who, host = f"User:{random.choice(PRINCIPALS)}", f"10.2.0.{random.randrange(3)}"
    is_allowed = random.choice([True, False])
    told = Told(time, who, host, random.choice(OPERATIONS), random.choice(TOPICS), is_allowed)
    return told_by_confluent(number, told)


def told_by_confluent(number: int, told: Told) -> str:
    """Return an event of a decision."""
    operation = "".join(word.capitalize() for word in told.operation.split("_"))
    info = {"granted": told.is_allowed, "operation": operation}
    info |= {"resourceType": "Topic", "resourceName": told.topic, "patternType": "LITERAL"}
    data: dict[str, Any] = {"methodName": "kafka.Fetch", "authorizationInfo": info}
    data |= {"authenticationInfo": {"principal": told.who}}
    data |= {"requestMetadata": {"client_address": f"/{told.host}"}}
    head = {"specversion": "1.0", "id": f"confluent-{number}", "source": "crn:///kafka=lkc-1"}
    head |= {
        "type": "io.confluent.kafka.server/authorization",
        "time": told.time.isoformat(timespec="milliseconds"),
    }
    return json.dumps(head | {"data": data})


SPRAYER, GUESSER = "10.9.9.1", "10.9.9.2"


def attacked_logins(day_ms: int) -> list[str]:
    """Return logins of a day: two passwords tried on twelve names, and one of a name guessed at last."""
    tried = [(f"name-{n % 12}", SPRAYER, "FAILURE", 1 + n % 2) for n in range(24)]
    tried += [("carol", GUESSER, "FAILURE", 1 + n % 3) for n in range(25)]
    tried += [("carol", GUESSER, "SUCCESS", 1)]
    return [
        login_line(100 + n, cluster_id="west", claimed_name=name, host=host, result=result,
                   attempt_count=count, time_ms=day_ms + n * 60_000, first_time_ms=day_ms + n * 60_000 - 500,
                   failure="invalid client credentials" if result == "FAILURE" else None)
        for n, (name, host, result, count) in enumerate(tried)
    ]  # fmt: skip


def drawn_logins(random: Random) -> list[str]:
    """Return logins of names whose passwords are guessed, changed or mistyped, about the limits."""
    lines: list[str] = []
    for name in ("dora", "emil", "fay"):
        days = random.sample(range(20, DAYS), k=random.randrange(1, 9))
        hosts = random.sample(["10.9.1.1", "10.9.1.2", "10.9.2.1", "10.99.0.1"], k=random.randrange(1, 4))
        for day in days:
            for host in hosts:
                for _ in range(random.choice((1, 5, 12, 22))):
                    time = round(at(random, day, random.randrange(24)).timestamp() * 1000)
                    result = "SUCCESS" if random.random() < 0.08 else "FAILURE"
                    lines.append(
                        login_line(
                            1000 + len(lines), cluster_id="west", claimed_name=name, host=host, result=result,
                            attempt_count=1 if result == "SUCCESS" else random.randrange(1, 4), time_ms=time,
                            first_time_ms=time - random.randrange(1000),
                            failure="invalid client credentials" if result == "FAILURE" else None,
                        )
                    )  # fmt: skip
    return lines


Acls = Mapping[str, Sequence[Acl]]
"""By cluster the ACLs that rules name."""


def write_first(folder: Path, random: Random, acls: Acls) -> None:
    """Write what the first run reads."""
    odd: dict[str, list[Told]] = {}
    for one in told(random):
        odd.setdefault(random.choice(("broker-1", "broker-2")), []).append(one)
    for broker in ZONES:
        place = folder / "east" / broker
        place.mkdir(parents=True)
        times = [moment(random) for _ in range(120 if broker in ("strimzi", "legacy") else 240)]
        timed = [(time, kafka_text(random, time, broker, acls["east"])) for time in times]
        timed += [
            (
                one.time,
                told_by_kafka(random, one, broker, acls["east"], "DEBUG" if one.is_allowed else "INFO"),
            )
            for one in odd.get(broker, ())
        ]
        lines = [line for _, line in sorted(timed)]
        half = len(lines) // 2
        if broker == "strimzi":
            with zipfile.ZipFile(place / "collected.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("kafka.log.1", "\n".join(["===> a banner", *lines[:half], ""]))
                archive.writestr("kafka.log", "\n".join([*lines[half:], ""]))
            continue
        if broker == "legacy":
            note = f"{lines[0].partition(']')[0]}] {SUPER_USER_NOTE}"
            (place / "kafka-authorizer.log").write_text("\n".join([note, *lines, ""]))
            continue
        (place / "kafka-authorizer.log.1").write_text("\n".join([*lines[:half], ""]))
        (place / "kafka-authorizer.log").write_text("\n".join([*lines[half:], lines[-1], "junk", ""]))
        packed = place / "old" / "kafka-authorizer.log.2.gz"
        packed.parent.mkdir()
        packed.write_bytes(gzip.compress((place / "kafka-authorizer.log.1").read_bytes()))
    others = folder / "others"
    others.mkdir()
    lines = [kustos_line(random, number, moment(random), acls["west"]) for number in range(300)]
    day = datetime(2026, 11, 12, 3, tzinfo=UTC)
    lines += [
        event_line(1000 + n, time_ms=round(day.timestamp() * 1000) + n * 500, cluster_id="west",
                   principal_name="mallory", operation="READ", resource_name=f"secret-{n % 40}",
                   decision="DENIED", rule__kind="DefaultDeny")
        for n in range(120)
    ]  # fmt: skip
    lines += [
        login_line(n, cluster_id="west", claimed_name=random.choice(["alice", "bob"]),
                   time_ms=(time := round(moment(random).timestamp() * 1000)), first_time_ms=time,
                   host=f"10.3.0.{n % 4}", result=random.choice(["SUCCESS", "FAILURE"]),
                   attempt_count=random.randrange(1, 4))
        for n in range(60)
    ]  # fmt: skip
    lines += attacked_logins(round(day.timestamp() * 1000))
    lines += drawn_logins(random)
    lines += [told_by_kustos(random, 10_000 + n, one, acls["west"]) for n, one in enumerate(told(random))]
    lines += [confluent_line(random, number, moment(random)) for number in range(150)]
    lines += [told_by_confluent(10_000 + n, one) for n, one in enumerate(told(random))]
    random.shuffle(lines)
    (others / "a.jsonl").write_text("\n".join([*lines[:400], "{", ""]))
    (others / "b.jsonl").write_text("\n".join([*lines[380:], ""]))  # holds 20 lines of the first
    forged = kustos_line(random, 5000, START, acls["west"])
    (folder / "east" / "broker-1" / "forged.jsonl").write_text(f"{forged}\n")


def write_second(folder: Path, random: Random, acls: Acls) -> None:
    """Write what the second run reads, too: a log that grew, an export of its end, and late events."""
    log = folder / "east" / "broker-1" / "kafka-authorizer.log"
    later = [
        kafka_text(random, START + timedelta(days=26, seconds=n), "broker-1", acls["east"]) for n in range(30)
    ]
    log.write_text(log.read_text() + "\n".join([*later, ""]))
    more = kafka_text(random, START + timedelta(days=27), "broker-1", acls["east"])
    (log.parent / "export.txt").write_text("\n".join([*later[-12:], more, ""]))
    late = [
        kustos_line(random, 2000 + n, START - timedelta(days=9, minutes=n), acls["west"]) for n in range(40)
    ]
    (folder / "others" / "late.jsonl").write_text("\n".join([*late, ""]))


SUPER_USER_NOTE = (
    "DEBUG principal = User:root is a super user, allowing operation without checking acls. "
    "(kafka.authorizer.logger)"
)
TEXT = re.compile(
    r"\[?(?P<time>[-0-9]+ [0-9:]+),(?P<ms>\d{3})\]? (?P<level>\w+) Principal = (?P<principal>User:.*?) is "
    r"(?P<result>Allowed|Denied) [oO]peration = (?P<operation>\w+) from host = (?P<host>\S+) on resource = "
    r"Topic:LITERAL:(?P<name>\S+) for request = \w+ with resourceRefCount = (?P<count>\d+)"
    r"(?: based on rule (?P<rule>\w+)(?:\(acl=StandardAcl\((?P<acl>.*)\)\))?)? \(kafka"
)
ACL_TEXT = re.compile(
    r"resourceType=(\w+), resourceName=(.*), patternType=(\w+), principal=(.*), host=(.*), operation=(\w+), "
    r"permissionType=(\w+)"
)


def acl_key(acl: Sequence[str | None]) -> str:
    """Return an ACL as one text."""
    return "|".join(str(text) for text in acl)


def texts_in(path: Path) -> Iterator[str]:
    """Yield what a file has, or each file that is packed in it."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name).decode() for name in archive.namelist())
    else:
        content = path.read_bytes()
        yield (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def rows_of_text(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the decisions in Kafka's text: a line of a broker as often as one of its files has it."""
    for broker, zone in ZONES.items():
        most: dict[str, int] = {}
        for path in (folder / "east" / broker).rglob("*"):
            if path.is_dir() or path.suffix == ".jsonl":
                continue
            for text in texts_in(path):
                lines = text.splitlines()
                for line in set(lines):
                    most[line] = max(most.get(line, 0), lines.count(line))
        for line, count in most.items():
            found = TEXT.match(line)
            if found is None:
                continue
            local = datetime.strptime(found["time"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=ZoneInfo(zone))
            row = {
                "cluster": "east", "time_ms": round(local.timestamp()) * 1000 + int(found["ms"]),
                "principal": found["principal"], "host": found["host"],
                "operation": found["operation"].upper(),
                "resource_name": found["name"], "decision": found["result"].upper(),
                "access": "LISTING" if found["level"] == "TRACE" else "ACCESS",
                "reference_count": int(found["count"]), "rule": found["rule"],
                "rule_acl": None if found["acl"] is None else acl_key(ACL_TEXT.findall(found["acl"])[0]),
            }  # fmt: skip
            yield from [row] * count


def rows_of_json(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the decisions and the logins of the files of JSON, each id once."""
    seen: set[str] = set()
    for path in (folder / "others").iterdir():
        for line in path.read_text().splitlines():
            try:
                values = json.loads(line)
            except ValueError:
                continue
            if (key := values.get("event_id") or values["id"]) in seen:
                continue
            seen.add(key)
            if "specversion" in values:
                yield "decisions", _of_confluent(values)
            elif values["schema_version"] == 2:
                names = (
                    "claimed_name",
                    "host",
                    "result",
                    "failure",
                    "attempt_count",
                    "time_ms",
                    "first_time_ms",
                )
                yield "logins", {"cluster": values["cluster_id"]} | {name: values[name] for name in names}
            else:
                is_probe = values["decision"] == "DENIED" and not values["log_if_denied"]
                is_probe &= values["access"] == "ACCESS" and values["resource_name"] is not None
                same = ("time_ms", "host", "operation", "resource_name", "decision", "reference_count")
                yield "decisions", {name: values[name] for name in same} | {
                    "cluster": values["cluster_id"], "principal": f"User:{values['principal_name']}",
                    "access": "PROBE" if is_probe else values["access"], "rule": values["rule"]["kind"],
                    "rule_acl": (
                        acl_key([values["rule"][name] for name in ACL_NAMES])
                        if values["rule"]["kind"] == "MatchingAcl" else None
                    ),
                }  # fmt: skip


def _of_confluent(values: dict[str, Any]) -> dict[str, Any]:
    info = values["data"]["authorizationInfo"]
    return {
        "cluster": values["source"].removeprefix("crn:///kafka="),
        "time_ms": round(datetime.fromisoformat(values["time"]).timestamp() * 1000),
        "principal": values["data"]["authenticationInfo"]["principal"],
        "host": values["data"]["requestMetadata"]["client_address"].removeprefix("/"),
        "operation": re.sub(r"(?<!^)(?=[A-Z])", "_", info["operation"]).upper(),
        "resource_name": info["resourceName"],
        "decision": "ALLOWED" if info["granted"] else "DENIED", "access": "ACCESS", "reference_count": None,
        "rule": None if info["granted"] else "DefaultDeny", "rule_acl": None,
    }  # fmt: skip
