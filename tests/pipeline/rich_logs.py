"""Logs of three clusters in each format, and what their lines say, read without the pipeline."""

import gzip
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.pipeline.events import event_line, login_line

CLUSTERS = ("east", "lkc-1", "west")
ZONES = {"broker-1": "Europe/Berlin", "broker-2": "America/New_York"}
START = datetime(2026, 10, 20, tzinfo=UTC)
"""Clocks change on October 25 in Berlin, and on November 1 in New York."""
TOPICS = ("payments", "orders", "payments.retry")
PRINCIPALS = ("alice", "bob", "CN=x,OU=y")
OPERATIONS = ("READ", "WRITE", "DESCRIBE")


def moment(random: Random) -> datetime:
    """Return a time to the millisecond, in no hour that a clock shows twice."""
    found = START + timedelta(milliseconds=random.randrange(25 * 86_400_000))
    is_twice = (found.month, found.day) in {(10, 25), (11, 1)} and found.hour < 8
    return found + timedelta(hours=8) if is_twice else found


def kafka_text(random: Random, time: datetime, zone: str) -> str:
    level, result = random.choice(
        [("DEBUG", "Allowed"), ("INFO", "Denied"), ("TRACE", "Allowed"), ("TRACE", "Denied")]
    )
    local = time.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    return (
        f"[{local}] {level} Principal = User:{random.choice(PRINCIPALS)} is {result} operation = "
        f"{random.choice(OPERATIONS).capitalize()} from host = 10.0.0.{random.randrange(3)} on resource = "
        f"Topic:LITERAL:{random.choice(TOPICS)} for request = Fetch with resourceRefCount = "
        f"{random.randrange(1, 5)} based on rule {'DefaultAllow' if result == 'Allowed' else 'DefaultDeny'} "
        "(kafka.authorizer.logger)"
    )


def kustos_line(random: Random, number: int, time: datetime) -> str:
    decision = random.choice(["ALLOWED", "ALLOWED", "DENIED", "ERROR"])
    return event_line(
        number, time_ms=round(time.timestamp() * 1000), cluster_id="west", decision=decision,
        principal_name=random.choice(PRINCIPALS), host=f"10.1.0.{random.randrange(3)}",
        operation=random.choice(OPERATIONS), resource_name=random.choice([*TOPICS, None]),
        access=random.choice(["ACCESS", "ACCESS", "LISTING"]), log_if_denied=random.choice([True, False]),
        rule__kind="DefaultAllow" if decision == "ALLOWED" else "DefaultDeny",
        reference_count=random.randrange(1, 5),
        # what a sample drew counts as one event, like every other
        sampled_one_in=random.choice([None, 100]) if decision == "ALLOWED" else None,
    )  # fmt: skip


def confluent_line(random: Random, number: int, time: datetime) -> str:
    info = {"granted": random.choice([True, False]), "operation": random.choice(OPERATIONS).capitalize()}
    info |= {"resourceType": "Topic", "resourceName": random.choice(TOPICS), "patternType": "LITERAL"}
    data = {"methodName": "kafka.Fetch", "authorizationInfo": info}
    data |= {"authenticationInfo": {"principal": f"User:{random.choice(PRINCIPALS)}"}}
    data |= {"requestMetadata": {"client_address": f"/10.2.0.{random.randrange(3)}"}}
    head = {"specversion": "1.0", "id": f"confluent-{number}", "source": "crn:///kafka=lkc-1"}
    head |= {
        "type": "io.confluent.kafka.server/authorization",
        "time": time.isoformat(timespec="milliseconds"),
    }
    return json.dumps(head | {"data": data})


def write_first(folder: Path, random: Random) -> None:
    """Write what the first run reads."""
    for broker, zone in ZONES.items():
        place = folder / "east" / broker
        place.mkdir(parents=True)
        times = sorted(moment(random) for _ in range(240))
        lines = [kafka_text(random, time, zone) for time in times]
        (place / "kafka-authorizer.log.1").write_text("\n".join([*lines[:120], ""]))
        (place / "kafka-authorizer.log").write_text("\n".join([*lines[120:], lines[-1], "junk", ""]))
        packed = place / "old" / "kafka-authorizer.log.2.gz"
        packed.parent.mkdir()
        packed.write_bytes(gzip.compress((place / "kafka-authorizer.log.1").read_bytes()))
    others = folder / "others"
    others.mkdir()
    lines = [kustos_line(random, number, moment(random)) for number in range(300)]
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
    lines += [confluent_line(random, number, moment(random)) for number in range(150)]
    random.shuffle(lines)
    (others / "a.jsonl").write_text("\n".join([*lines[:400], "{", ""]))
    (others / "b.jsonl").write_text("\n".join([*lines[380:], ""]))  # holds 20 lines of the first
    forged = kustos_line(random, 5000, START)
    (folder / "east" / "broker-1" / "forged.jsonl").write_text(f"{forged}\n")


def write_second(folder: Path, random: Random) -> None:
    """Write what the second run reads, too: a log that grew, an export of its end, and late events."""
    log = folder / "east" / "broker-1" / "kafka-authorizer.log"
    later = [kafka_text(random, START + timedelta(days=26, seconds=n), ZONES["broker-1"]) for n in range(30)]
    log.write_text(log.read_text() + "\n".join([*later, ""]))
    more = kafka_text(random, START + timedelta(days=27), ZONES["broker-1"])
    (log.parent / "export.txt").write_text("\n".join([*later[-12:], more, ""]))
    late = [kustos_line(random, 2000 + n, START - timedelta(days=9, minutes=n)) for n in range(40)]
    (folder / "others" / "late.jsonl").write_text("\n".join([*late, ""]))


TEXT = re.compile(
    r"\[(?P<time>[-0-9]+ [0-9:]+),(?P<ms>\d{3})\] (?P<level>\w+) Principal = (?P<principal>User:.*?) is "
    r"(?P<result>Allowed|Denied) operation = (?P<operation>\w+) from host = (?P<host>\S+) on resource = "
    r"Topic:LITERAL:(?P<name>\S+) for request = \w+ with resourceRefCount = (?P<count>\d+) "
)


def rows_of_text(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the decisions in Kafka's text: a line of a broker as often as one of its files has it."""
    for broker, zone in ZONES.items():
        most: dict[str, int] = {}
        for path in (folder / "east" / broker).rglob("*"):
            if path.is_dir() or path.suffix == ".jsonl":
                continue
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            lines = content.decode().splitlines()
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
                "reference_count": int(found["count"]),
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
                names = ("claimed_name", "host", "result", "attempt_count", "time_ms", "first_time_ms")
                yield "logins", {"cluster": values["cluster_id"]} | {name: values[name] for name in names}
            else:
                is_probe = values["decision"] == "DENIED" and not values["log_if_denied"]
                is_probe &= values["access"] == "ACCESS" and values["resource_name"] is not None
                names = ("time_ms", "host", "operation", "resource_name", "decision", "reference_count")
                yield "decisions", {name: values[name] for name in names} | {
                    "cluster": values["cluster_id"], "principal": f"User:{values['principal_name']}",
                    "access": "PROBE" if is_probe else values["access"],
                }  # fmt: skip


def _of_confluent(values: dict[str, Any]) -> dict[str, Any]:
    info = values["data"]["authorizationInfo"]
    return {
        "cluster": values["source"].removeprefix("crn:///kafka="),
        "time_ms": round(datetime.fromisoformat(values["time"]).timestamp() * 1000),
        "principal": values["data"]["authenticationInfo"]["principal"],
        "host": values["data"]["requestMetadata"]["client_address"].removeprefix("/"),
        "operation": info["operation"].upper(), "resource_name": info["resourceName"],
        "decision": "ALLOWED" if info["granted"] else "DENIED", "access": "ACCESS", "reference_count": None,
    }  # fmt: skip
