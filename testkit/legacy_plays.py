"""Commands for `SimpleAclAuthorizer` and its wrapper, always the same, and digests of Kafka's answers."""

import json
import random

from testkit.legacy_probe import Command

SEED = 1_107
WORLDS = 80
QUESTIONS = 60
KAFKAS_DECISIONS = "e636d3b508a74e12ea5f783db9e45a24e0f1f32ad765116ffec1d7616db7dd4b"
KAFKAS_WRAPPER = "7362c000d5dd91760c464015f06f1998cc7bd9b5575d29d27c2325131575bad8"
"""What Kafka's classes answer to the two plays below, for tests that have no Java."""

PRINCIPALS = ("User:alice", "User:bob", "Group:alice", "User:a:b", "user:alice", "User:", "*:*")
HOSTS = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")
ACL_HOSTS = (*HOSTS, "*", "*", "*", "::1", "10.0.0.0/8")
OPERATIONS = (
    "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "DescribeConfigs",
    "AlterConfigs", "IdempotentWrite", "All",
)  # fmt: skip
TYPES = ("Topic", "Group", "TransactionalId")
NAMES = ("o", "or", "orders", "orders-1", "*", "*x", "!", "é€", "p")
OPENINGS = (
    (None, None), ("User:alice", "true"), ("User:alice;Group:alice", None), (" User:bob ;User:x;", "TRUE"),
    ("Group:alice", "false"), ("", "true"),
)  # fmt: skip
REFUSED_OPENINGS = (
    ("alice", None),
    (None, "yes"),
    ("User:a;;User:b", None),
    (" ;User:a", None),
    (None, " true"),
)


def entry(chance: random.Random) -> dict[str, str]:
    return {
        "principal": chance.choice(("User:*", *PRINCIPALS)),
        "permissionType": chance.choice(("Allow", "Allow", "Deny")),
        "operation": chance.choice(OPERATIONS),
        "host": chance.choice(ACL_HOSTS),
    }


def document(chance: random.Random, most: int) -> str:
    return json.dumps({"version": 1, "acls": [entry(chance) for _ in range(chance.randint(1, most))]})


def resource(chance: random.Random, patterns: tuple[str, ...] = ("LITERAL", "PREFIXED")) -> str:
    return f"{chance.choice(TYPES)}:{chance.choice(patterns)}:{chance.choice(NAMES)}"


def world(chance: random.Random) -> list[Command]:
    commands: list[Command] = [("clear",)]
    commands += [("add", document(chance, 4), resource(chance)) for _ in range(chance.randint(0, 6))]
    if chance.random() < 0.3:
        commands.append(("drop", resource(chance)))
        commands.append(("remove", document(chance, 20), resource(chance)))
    commands += [("acls",), ("of", chance.choice(PRINCIPALS)), ("at", resource(chance))]
    commands += [
        ("ask", chance.choice(PRINCIPALS), chance.choice(HOSTS), chance.choice(OPERATIONS),
         resource(chance, ("LITERAL",)))
        for _ in range(QUESTIONS)
    ]  # fmt: skip
    return commands


def play() -> list[Command]:
    chance = random.Random(SEED)
    commands: list[Command] = []
    for number in range(WORLDS):
        if number % 10 == 0:
            commands.append(("open", *chance.choice(OPENINGS)))
        commands += world(chance)
    return commands


ENUM_OPERATIONS = ("READ", "WRITE", "DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "ALL")
BY_TYPE_OPENINGS = (("User:root", None), ("User:bob", "true"), (None, "true"))


def seven(chance: random.Random) -> list[str | None]:
    return [
        chance.choice(("TOPIC", "GROUP")), chance.choice(NAMES), chance.choice(("LITERAL", "PREFIXED")),
        chance.choice(("User:*", "User:alice", "User:bob", "Group:alice")),
        chance.choice(("*", "*", HOSTS[0])), chance.choice(ENUM_OPERATIONS),
        chance.choice(("ALLOW", "ALLOW", "DENY")),
    ]  # fmt: skip


def seven_filter(chance: random.Random, *, exact: bool) -> list[str | None]:
    fields = seven(chance)
    if exact:
        return fields
    vague = ("ANY", None, chance.choice(("MATCH", "ANY")), None, None, "ANY", "ANY")
    return [field if chance.random() < 0.3 else other for field, other in zip(fields, vague, strict=True)]


def wrapped_world(chance: random.Random) -> list[Command]:
    made = [seven(chance) for _ in range(chance.randint(1, 8))]
    exact = chance.random() < 0.5
    filters = [seven_filter(chance, exact=exact) for _ in range(chance.randint(1, 3))] + made[: int(exact)]
    asked: list[Command] = [
        ("bytype", chance.choice(("User:alice", "User:bob", "User:root")), chance.choice(HOSTS[:2]),
         chance.choice(ENUM_OPERATIONS), chance.choice(("TOPIC", "GROUP")))
        for _ in range(20)
    ]  # fmt: skip
    listed: Command = ("list", *seven_filter(chance, exact=False))
    return [
        ("clear",), ("create", *(field for each in made for field in each)), ("acls",), listed, *asked,
        ("delete", *(field for each in filters for field in each)), ("acls",), *asked[:5],
    ]  # fmt: skip


def wrapped_play() -> list[Command]:
    chance = random.Random(SEED)
    commands: list[Command] = []
    for number in range(WORLDS):
        if number % 10 == 0:
            commands.append(("open", *chance.choice(BY_TYPE_OPENINGS)))
        commands += wrapped_world(chance)
    unsaid: list[str | None] = ["TOPIC", "o", "LITERAL", "alice", "*", "READ", "ALLOW"]
    return [
        *commands,
        ("create", *unsaid),
        ("delete", *unsaid),
        ("bytype", "User:bob", HOSTS[0], "ANY", "TOPIC"),
    ]


def exact_removals() -> list[Command]:
    one = {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
    text = json.dumps({"version": 1, "acls": [one]})
    both = json.dumps({"version": 1, "acls": [one, one | {"permissionType": "Deny"}]})
    place = "Topic:PREFIXED:or"
    return [
        ("clear",), ("add", both, place), ("remove", text, place), ("remove", text, place), ("at", place),
        ("drop", place), ("drop", place), ("acls",),
    ]  # fmt: skip


def refusals() -> list[Command]:
    prefix_asked: Command = ("ask", "User:bob", HOSTS[0], "Read", "Topic:PREFIXED:or")
    words: list[Command] = [
        ("ask", "User:bob", HOSTS[0], word, "Topic:o") for word in ("READ", "Reading", "")
    ]
    return [*(("open", *opening) for opening in REFUSED_OPENINGS), ("open", None, None), prefix_asked, *words]


def decisions_play() -> list[Command]:
    return [*play(), *exact_removals(), *refusals()]
