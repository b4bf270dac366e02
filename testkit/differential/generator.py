"""Random worlds: ACL changes with questions in between, dense enough that rules meet each other."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer.index.by_type import PROBED_NAME
from kustos.metadata.features import LATEST_LEVEL, MINIMUM_LEVEL
from testkit.differential.host_texts import HostTexts
from testkit.differential.vocabularies import STYLES, WEIGHTS, low
from testkit.differential.worlds import (
    Acls,
    Add,
    Ask,
    Cidr,
    Configure,
    Fault,
    New,
    Ready,
    Remove,
    Snapshot,
    Start,
    Step,
)

Value = TypeVar("Value")
OPERATIONS = [op for op in AclOperation if op not in (AclOperation.UNKNOWN, AclOperation.ANY)]
RESOURCE_TYPES = [kind for kind in ResourceType if kind not in (ResourceType.UNKNOWN, ResourceType.ANY)]
ODD_PRINCIPALS = [
    "User:*",
    "User:root",
    "Group:root",
    "User:a|b",
    "User|a:b",
    "User|*",
    "Group:*",
    "|",
    "User|",
]
"""Who may ask beside those of the world; everybody cannot, and a type with a colon is nobody's."""
EVERYBODY = ("User:*", "User|*")
SETTINGS = [("User:root", False), ("User:root;  ;User:bob", False), ("", True), ("User:root", True)]


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a world is, and what it has.

    Names below `*` are beyond Kafka and only for the specification. A plain world has nothing but changes
    of the ACLs and questions of those who can ask, to an authorizer that is ready.
    """

    acl_count: int
    question_count: int
    low_names: bool = False
    plain: bool = False


class WorldMaker:
    """Makes one world from one seed, or from a chance of the caller's."""

    def __init__(self, seed: int | random.Random, shape: Shape) -> None:
        self._random = rng = random.Random(seed) if isinstance(seed, int) else seed
        self._shape = shape
        self._next_number = 0
        self._live: dict[int, AclBinding] = {}
        self._known: set[AclBinding] = set()
        self.style = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self._words = low(rng) if shape.low_names else STYLES[self.style](rng)
        self._host_texts = HostTexts(rng)
        self._types = rng.sample(RESOURCE_TYPES, rng.randint(1, 2))
        self._operations = rng.sample(OPERATIONS, rng.choice([2, 3, 4, len(OPERATIONS)]))
        self._deny_share = rng.choice([0.1, 0.5, 0.8])
        self._prefixed_share = rng.choice([0.3, 0.45, 0.8])

    def steps(self) -> Iterator[Step]:
        """Yield the world: a start, ACLs, then changes and questions mixed."""
        rng = self._random
        super_users = "User:root;  ;User:bob" if rng.random() < 0.1 else "User:root"
        is_ready = self._shape.plain or rng.random() < 0.95
        yield Start(super_users, rng.random() < 0.25, is_ready)
        for _ in range(rng.randint(0, self._shape.acl_count * self._words.acl_factor)):
            yield from self._add()
        if not is_ready:
            asks = [self._question() for _ in range(5)]
            # everybody gets no answer, before and after, if not for the same reason
            yield from (ask for ask in asks if ask.principal not in EVERYBODY)
            yield Ready()
        for _ in range(self._shape.question_count):
            yield from self._change()
            yield self._question()
            if not self._shape.plain and rng.random() < 0.08:
                yield self._question_of_an_administrator()

    def _change(self) -> Iterator[Step]:
        rng = self._random
        chance = rng.random()
        if chance < 0.02:
            yield from self._asking_around(list(self._add()))
        elif chance < 0.04 and self._live:
            number = rng.choice(list(self._live))
            yield from self._asking_around([Remove(number)], self._live[number])
            self._known.discard(self._live.pop(number))
        elif chance < 0.042:
            yield self._snapshot()
        elif self._shape.plain:
            return
        elif chance < 0.044:
            yield Configure(*rng.choice(SETTINGS))
        elif chance < 0.046:
            yield self._fault()

    def _asking_around(self, change: list[Step], binding: AclBinding | None = None) -> Iterator[Step]:
        """Yield a change between the same questions about what it changes: that is where memories fail."""
        rng, words = self._random, self._words
        for step in change:
            changed = step.binding if isinstance(step, Add) else binding
            if changed is None:
                continue
            pattern, entry = changed.pattern, changed.entry
            under = [name for name in words.names if name.startswith(pattern.name)][:12]
            names = [pattern.name, None, *under, *[f"{name}{rng.choice(words.tails)}" for name in under]]
            principal = rng.choice(words.principals) if entry.principal == "User:*" else entry.principal
            operation = (
                rng.choice(self._operations) if entry.operation is AclOperation.ALL else entry.operation
            )
            host = entry.host if entry.host in words.hosts else rng.choice(words.hosts)
            asks = [Ask(principal, host, operation, pattern.resource_type, name) for name in names]
            yield from (*asks, step, *asks)

    def _snapshot(self) -> Snapshot:
        kept = [number for number in self._live if self._random.random() < 0.6]
        self._live = {number: self._live[number] for number in kept}
        self._known = set(self._live.values())
        shuffled = self._random.sample(kept, len(kept))
        return Snapshot(tuple(Add(number, self._live[number]) for number in shuffled))

    def _fault(self) -> Fault:
        """Return a number or an ACL that is there already, or the removal of a number that is not."""
        if not self._live or self._random.random() < 0.4:
            return Fault(Remove(self._next_number + 1))
        number = self._random.choice(list(self._live))
        fresh = self._binding()
        if fresh not in self._known and self._random.random() < 0.5:
            return Fault(Add(number, fresh))
        return Fault(Add(self._next_number + 1, self._live[number]))

    def _pattern_name(self) -> str:
        rng = self._random
        name = PROBED_NAME if rng.random() < 0.05 else rng.choice(self._words.names)
        return name[: rng.randint(1, len(name))] if rng.random() < self._words.cut_share else name

    def _binding(self) -> AclBinding:
        rng, words = self._random, self._words
        pattern_type = PatternType.PREFIXED if rng.random() < self._prefixed_share else PatternType.LITERAL
        name = "*" if rng.random() < 0.08 else self._pattern_name()
        deny = rng.random() < self._deny_share
        return AclBinding(
            ResourcePattern(rng.choice(self._types), name, pattern_type),
            AccessControlEntry(
                "User:*" if rng.random() < 0.25 else rng.choice(words.principals),
                rng.choice(words.acl_hosts) if rng.random() < words.named_hosts_share else "*",
                AclOperation.ALL if rng.random() < 0.1 else rng.choice(self._operations),
                AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
            ),
        )

    def _add(self) -> Iterator[Add]:
        binding = self._binding()
        if binding not in self._known:
            self._known.add(binding)
            self._next_number += 1
            self._live[self._next_number] = binding
            yield Add(self._next_number, binding)

    def _question(self) -> Ask:
        rng, words = self._random, self._words
        name: str | None = rng.choice(words.names)
        is_usual = self._shape.plain or rng.random() < 0.97
        chance = rng.random()
        if chance < 0.1:
            name = None
        elif chance < 0.4:
            name = f"{name}{rng.choice(words.tails)}"
        elif chance < 0.42:
            name = ""
        elif chance < 0.45:
            name = "".join(rng.choices(words.tails, k=rng.randint(1, 4)))
        return Ask(
            rng.choice(words.principals) if is_usual else rng.choice(ODD_PRINCIPALS),
            rng.choice(words.hosts),
            rng.choice(self._operations) if rng.random() < 0.9 else rng.choice(OPERATIONS),
            rng.choice(self._types) if rng.random() < 0.97 else rng.choice(RESOURCE_TYPES),
            name,
        )

    def _question_of_an_administrator(self) -> Acls | New | Cidr:
        chance = self._random.random()
        if chance < 0.3:
            return self._acls()
        if chance < 0.65:
            return self._new()
        return Cidr(self._host_texts.client(), self._host_texts.pattern())

    def _acls(self) -> Acls:
        """Return a filter made from an ACL: some of its fields, some wide open, some of no ACL at all."""
        rng, words = self._random, self._words
        near = rng.choice(list(self._live.values())) if self._live else self._binding()
        pattern, entry = near.pattern, near.entry

        def field(right: Value, open_: Value, *others: Value) -> Value:
            chance = rng.random()
            return open_ if chance < 0.55 else right if chance < 0.9 else rng.choice(others)

        longer = f"{pattern.name}{rng.choice(words.tails)}"
        return Acls(
            AclBindingFilter(
                ResourcePatternFilter(
                    field(pattern.resource_type, ResourceType.ANY, *ResourceType),
                    field(rng.choice([pattern.name, longer]), None, "*", "", rng.choice(words.names)),
                    rng.choice([*PatternType, PatternType.MATCH, PatternType.ANY]),
                ),
                AccessControlEntryFilter(
                    field(entry.principal, None, "User:*", "", "alice", rng.choice(words.principals)),
                    field(entry.host, None, "*", "", "10.0.0.1", rng.choice(words.acl_hosts)),
                    field(entry.operation, AclOperation.ANY, *AclOperation),
                    field(entry.permission_type, AclPermissionType.ANY, *AclPermissionType),
                ),
            )
        )

    def _new(self) -> New:
        """Return an ACL to be made: mostly one fault at most, or else the first would hide all others."""
        rng, words = self._random, self._words
        host = rng.choice([self._host_texts.pattern(), rng.choice(words.acl_hosts)])
        fields: list[str] = [
            *(ResourceType.TOPIC.name, rng.choice(words.names), PatternType.LITERAL.name),
            *(rng.choice(words.principals), host, AclOperation.READ.name, AclPermissionType.ALLOW.name),
        ]
        faulty: list[list[str]] = [
            [kind.name for kind in ResourceType],
            [""],
            [kind.name for kind in PatternType],
            ["alice", "", "*", "User"],
            ["", "*", "/", "host/name"],
            [operation.name for operation in AclOperation],
            [permission.name for permission in AclPermissionType],
        ]
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            position = rng.randrange(len(fields))
            fields[position] = rng.choice(faulty[position])
        level = LATEST_LEVEL if rng.random() < 0.7 else rng.randint(MINIMUM_LEVEL, LATEST_LEVEL)
        return New(level, tuple(fields))
