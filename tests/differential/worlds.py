"""Random worlds: ACL changes with questions in between, dense enough that rules meet each other.

A world is a list of steps. Steps are lines of text too (tabs between the fields): that is how they
travel to the oracle and how a counter-example is kept in the corpus.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

OPERATIONS = [op for op in AclOperation if op not in (AclOperation.UNKNOWN, AclOperation.ANY)]
RESOURCE_TYPES = [kind for kind in ResourceType if kind not in (ResourceType.UNKNOWN, ResourceType.ANY)]
PRINCIPALS = ["User:alice", "User:bob", "Group:ops", "User:a:b", "User:Zoë", "User:\U0001d518", "User:\uffe0"]
ACL_HOSTS = [
    *["*"] * 30,
    *["10.0.0.1", "10.0.0.2", "10.1.2.3", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:5", "nonsense", "::1"],
    *["10.0.0.0/8", "10.0.0.2/31", "10.1.2.3/32", "0.0.0.0/0", "10.0.0.1/08", "2001:db8::/32", "::/0"],
    *["::1/128", "2001:db8::5/+127", "10.0.0.0/33", "10.0.0/8", "::ffff:10.0.0.1/104", "10.0.0.0/", "/8"],
]
HOSTS = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.1.2.3", "0.0.0.0", "10.255.255.255", "10.0.0.0"]
HOSTS += ["0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:5", "2001:db8:0:0:0:0:0:4", "192.168.0.9"]
PIECES = ["a", "b", "ab", "orders", "-", ".", "é", "日本", "\U0001d518", "\uffe0", "h", "hard", "hardcode"]
STARRY = ["*", "*", "*a", "*ab", "**", "*-"]
LOW = ["!", "!a", "(x", "#", "+a", " b", ")"]


@dataclass(frozen=True, slots=True)
class Start:
    super_users: str
    default_allow: bool


@dataclass(frozen=True, slots=True)
class Add:
    number: int
    binding: AclBinding


@dataclass(frozen=True, slots=True)
class Remove:
    number: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    acls: tuple[Add, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None
    """None asks for any resource of the type."""


Step = Start | Add | Remove | Snapshot | Ask


@dataclass(frozen=True, slots=True)
class Shape:
    """What a world is like: names below `*` are beyond Kafka and only for the specification."""

    acl_count: int
    question_count: int
    low_names: bool = False


class WorldMaker:
    """Makes one world from one seed."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self._random = random.Random(seed)
        self._shape = shape
        self._next_number = 0
        self._live: dict[int, AclBinding] = {}
        self._known: set[AclBinding] = set()
        self._names = [self._name() for _ in range(self._random.randint(3, 12))]
        self._principals = self._random.sample(PRINCIPALS, self._random.randint(2, 4))
        self._types = self._random.sample(RESOURCE_TYPES, self._random.randint(1, 2))
        self._operations = self._random.sample(OPERATIONS, self._random.choice([2, 3, 4, len(OPERATIONS)]))
        self._deny_share = self._random.choice([0.1, 0.5, 0.8])

    def steps(self) -> Iterator[Step]:
        """Yield the world: a start, ACLs, then changes and questions mixed."""
        rng = self._random
        super_users = "User:root;  ;User:bob" if rng.random() < 0.1 else "User:root"
        yield Start(super_users, rng.random() < 0.25)
        for _ in range(rng.randint(0, self._shape.acl_count)):
            yield from self._add()
        for _ in range(self._shape.question_count):
            chance = rng.random()
            if chance < 0.02:
                yield from self._asking_around(list(self._add()))
            elif chance < 0.04 and self._live:
                number = rng.choice(list(self._live))
                yield from self._asking_around([Remove(number)], self._live[number])
                self._known.discard(self._live.pop(number))
            elif chance < 0.042:
                yield self._snapshot()
            yield self._question()

    def _asking_around(self, change: list[Step], binding: AclBinding | None = None) -> Iterator[Step]:
        """Yield a change between the same questions about what it changes: that is where memories fail."""
        rng = self._random
        for step in change:
            changed = step.binding if isinstance(step, Add) else binding
            if changed is None:
                continue
            pattern, entry = changed.pattern, changed.entry
            under = [name for name in self._names if name.startswith(pattern.name)]
            names = [pattern.name, None, *under, *[f"{name}{rng.choice(PIECES)}" for name in under]]
            principal = rng.choice(self._principals) if entry.principal == "User:*" else entry.principal
            operation = (
                rng.choice(self._operations) if entry.operation is AclOperation.ALL else entry.operation
            )
            host = entry.host if entry.host in HOSTS else rng.choice(HOSTS)
            asks = [Ask(principal, host, operation, pattern.resource_type, name) for name in names]
            yield from (*asks, step, *asks)

    def _snapshot(self) -> Snapshot:
        kept = [number for number in self._live if self._random.random() < 0.6]
        self._live = {number: self._live[number] for number in kept}
        self._known = set(self._live.values())
        shuffled = self._random.sample(kept, len(kept))
        return Snapshot(tuple(Add(number, self._live[number]) for number in shuffled))

    def _name(self) -> str:
        rng = self._random
        if rng.random() < 0.12:
            return rng.choice(STARRY)
        if self._shape.low_names and rng.random() < 0.4:
            return rng.choice(LOW)
        return "".join(rng.choices(PIECES, k=rng.choice([1, 1, 2, 3, 4])))

    def _pattern_name(self) -> str:
        name = self._random.choice(self._names)
        return name[: self._random.randint(1, len(name))] if self._random.random() < 0.4 else name

    def _add(self) -> Iterator[Step]:
        rng = self._random
        pattern_type = PatternType.PREFIXED if rng.random() < 0.45 else PatternType.LITERAL
        name = "*" if rng.random() < 0.08 else self._pattern_name()
        deny = rng.random() < self._deny_share
        binding = AclBinding(
            ResourcePattern(rng.choice(self._types), name, pattern_type),
            AccessControlEntry(
                "User:*" if rng.random() < 0.25 else rng.choice(self._principals),
                rng.choice(ACL_HOSTS),
                AclOperation.ALL if rng.random() < 0.1 else rng.choice(self._operations),
                AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
            ),
        )
        if binding not in self._known:
            self._known.add(binding)
            self._next_number += 1
            self._live[self._next_number] = binding
            yield Add(self._next_number, binding)

    def _question(self) -> Ask:
        rng = self._random
        name: str | None = rng.choice(self._names)
        chance = rng.random()
        if chance < 0.1:
            name = None
        elif chance < 0.4:
            name = f"{name}{rng.choice(PIECES)}"
        elif chance < 0.42:
            name = ""
        elif chance < 0.5:
            name = self._name()
        return Ask(
            "User:root" if rng.random() < 0.01 else rng.choice(self._principals),
            rng.choice(HOSTS),
            rng.choice(self._operations) if rng.random() < 0.9 else rng.choice(OPERATIONS),
            rng.choice(self._types) if rng.random() < 0.97 else rng.choice(RESOURCE_TYPES),
            name,
        )


def to_lines(steps: Iterator[Step] | list[Step]) -> Iterator[str]:
    """Write steps as the oracle and the corpus have them."""
    for step in steps:
        match step:
            case Start(super_users, default_allow):
                yield f"start\t{super_users}\t{str(default_allow).lower()}"
            case Add():
                yield f"add\t{_acl_fields(step)}"
            case Remove(number):
                yield f"remove\t{number}"
            case Snapshot(acls):
                yield f"snapshot\t{len(acls)}"
                for acl in acls:
                    yield f"acl\t{_acl_fields(acl)}"
            case Ask(principal, host, operation, resource_type, None):
                yield f"any\t{principal}\t{host}\t{operation}\t{resource_type}"
            case Ask(principal, host, operation, resource_type, name):
                yield f"ask\t{principal}\t{host}\t{operation}\t{resource_type}\t{name}"


def _acl_fields(acl: Add) -> str:
    pattern, entry = acl.binding.pattern, acl.binding.entry
    fields = (acl.number, pattern.resource_type, pattern.name, pattern.pattern_type)
    more = (entry.principal, entry.host, entry.operation, entry.permission_type)
    return "\t".join(str(value) for value in (*fields, *more))


def from_lines(lines: list[str]) -> Iterator[Step]:
    """Read steps back; empty lines and those that begin with `#` say nothing."""
    rest = iter([line for line in lines if line and not line.startswith("#")])
    for line in rest:
        verb, *fields = line.split("\t")
        match verb:
            case "start":
                yield Start(fields[0], fields[1] == "true")
            case "add":
                yield _acl_from(fields)
            case "remove":
                yield Remove(int(fields[0]))
            case "snapshot":
                yield Snapshot(tuple(_acl_from(next(rest).split("\t")[1:]) for _ in range(int(fields[0]))))
            case "any" | "ask":
                name = fields[4] if verb == "ask" else None
                yield Ask(fields[0], fields[1], AclOperation[fields[2]], ResourceType[fields[3]], name)
            case _:
                raise ValueError(f"unknown step `{line}`")


def _acl_from(fields: list[str]) -> Add:
    number, kind, name, pattern_type, principal, host, operation, permission = fields
    pattern = ResourcePattern(ResourceType[kind], name, PatternType[pattern_type])
    entry = AccessControlEntry(principal, host, AclOperation[operation], AclPermissionType[permission])
    return Add(int(number), AclBinding(pattern, entry))
