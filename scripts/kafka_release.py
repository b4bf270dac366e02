"""Reports what a release of Kafka changes for kustos: `python -m scripts.kafka_release 4.3.1 4.4.0`.

It compares the jars of two releases (`testkit/maven`): messages, errors, ACL operations, resource types,
settings, and the operations that the handlers of requests ask the authorizer about, as far as bytecode tells.
CONTRIBUTING.md has the steps that follow.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scripts.generate_schemas import message_texts, parse_message
from testkit.jars import JarSet

FACTS: Final = Path(__file__).with_name("ReleaseFacts.java")
JAVA_TIMEOUT_S: Final = 120

HANDLERS: Final = (
    "kafka.server.KafkaApis",
    "kafka.server.ControllerApis",
    "kafka.server.AclApis",
    "kafka.server.ConfigHelper",
    "kafka.server.handlers.DescribeTopicPartitionsRequestHandler",
    "org.apache.kafka.server.AclApis",
    "org.apache.kafka.server.ConfigHelper",
    "org.apache.kafka.server.DescribeTopicPartitionsRequestHandler",
)
"""The classes that authorize requests; a release may lack some of them, because Kafka moves them to Java."""

SUPPORTED_ERROR: Final = re.compile(r"// *- ([A-Z_]+) \(version ([^)]*)\)")
METHOD: Final = re.compile(r"^  \S.*?([\w$]+)\(.*\)(?: throws .*)?;$")
ANONYMOUS: Final = re.compile(r"^(?:\$anonfun\$|lambda\$)(\w+?)(?:\$.*)?$")
CONSTANT: Final = re.compile(r"getstatic .*// Field \S*/(AclOperation|ResourceType)\.(\w+):")
ONE_CLUSTER: Final = "authorizeClusterOperation"

Facts = dict[str, dict[str, str]]
"""Subject → name → value."""


def facts_of(version: str) -> Facts:
    """Return all facts of a release; raise `JarsError` if it has no set of jars."""
    jars = JarSet(name="kafka", version=version).resolve()
    facts: Facts = defaultdict(dict)
    for jar in sorted(jars.glob("kafka*.jar")):
        for text in message_texts(jar):
            _read_message(text, facts)
    for line in _run("java", "-cp", f"{jars}/*", str(FACTS)).splitlines():
        kind, name, value = line.split("\t")
        facts[f"{kind}s"][name] = value
    facts["authorization calls"] = {
        f"{handler.rpartition('.')[2]}.{method}": ", ".join(sorted(calls))
        for handler in HANDLERS
        for method, calls in _calls(jars, handler).items()
    }
    return facts


def _read_message(text: str, facts: Facts) -> None:
    message = parse_message(text)
    name = message["name"]
    key = f" (API {message['apiKey']})" if "apiKey" in message else ""
    facts["messages"][name] = f"versions {message['validVersions']}{key}"
    for error, versions in SUPPORTED_ERROR.findall(text):
        facts["documented errors"][f"{name} {error}"] = versions
    structs = {f"{name}.{one['name']}": one["fields"] for one in message.get("commonStructs", ())}
    for prefix, fields in {name: message.get("fields", []), **structs}.items():
        for path, field in _fields(prefix, fields):
            facts["fields"][path] = " ".join(
                f"{word}={field[word]}"
                for word in (
                    "type",
                    "versions",
                    "nullableVersions",
                    "taggedVersions",
                    "tag",
                    "default",
                    "mapKey",
                )
                if word in field
            )


def _fields(prefix: str, fields: list[dict[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in fields:
        path = f"{prefix}.{field['name']}"
        yield path, field
        yield from _fields(path, field.get("fields", []))


def _calls(jars: Path, class_name: str) -> dict[str, set[str]]:
    """Return the operations that each method of a class asks about, those of its lambdas included."""
    found: dict[str, set[str]] = defaultdict(set)
    method, operation = "", ""
    for line in _run("javap", "-c", "-p", "-cp", f"{jars}/*", class_name, may_fail=True).splitlines():
        if start := METHOD.match(line):
            inner = ANONYMOUS.match(start[1])
            method, operation = (inner[1] if inner else start[1]), ""
        elif constant := CONSTANT.search(line):
            if constant[1] == "AclOperation":
                operation = constant[2]
            elif operation:
                found[method].add(f"{operation} {constant[2]}")
                operation = ""
        elif operation and ONE_CLUSTER in line:
            found[method].add(f"{operation} CLUSTER")
            operation = ""
    return found


def _run(*command: str, may_fail: bool = False) -> str:
    done = subprocess.run(  # noqa: S603 (written above)
        command, capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False
    )
    if done.returncode and not may_fail:
        raise RuntimeError(f"`{command[0]}` failed: {done.stderr[-2000:]}")
    return done.stdout


def report(old: Facts, new: Facts) -> Iterator[str]:
    """Yield the lines of the report: per subject what is added, removed and changed."""
    for subject in sorted(old.keys() | new.keys()):
        before, after = old.get(subject, {}), new.get(subject, {})
        lines = [f"+ {name}: {after[name]}" for name in after.keys() - before.keys()]
        lines += [f"- {name}: {before[name]}" for name in before.keys() - after.keys()]
        lines += [
            f"~ {name}: {before[name]} -> {after[name]}"
            for name in before.keys() & after.keys()
            if before[name] != after[name]
        ]
        if lines:
            yield f"## {subject}"
            yield from sorted(lines, key=lambda line: (line[2:], line))


def main(arguments: list[str]) -> int:
    """Print the report on two releases."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m scripts.kafka_release OLD NEW\n")
        return 2
    old, new = map(facts_of, arguments)
    sys.stdout.write("".join(f"{line}\n" for line in report(old, new)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
