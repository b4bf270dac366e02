"""The grid of Kafka's own benchmark: so many resources, so many ACLs on each, so many of them denied.

Names, principals, hosts and the question are those of `AuthorizerBenchmark` (jmh-benchmarks of Kafka);
its random denials are a fixed pattern here, the same for both sides.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.authorizing.loads import ALLOW, DENY, LITERAL, PREFIXED, Load
from benchmarks.figures import QUICK
from kustos.acl import AccessControlEntry, AclBinding, AclOperation, ResourcePattern, ResourceType
from testkit.differential.worlds import Ask

RESOURCES = [1_000] if QUICK else [10_000, 50_000]
ACLS = [10, 50]
DENIED = [0, 20, 50]
"""Percent."""

STEM = "foo-bar35_resource-"
ASKER = "User:test-user"
READ = AclOperation.READ
PREFIX_HOSTS = 1_000
"""Hosts that the prefix of all names speaks of, `hostPreCount` there."""
OTHERS = 2_000
"""Resources asked about beside Kafka's one: of a single question nothing would be cold."""


@dataclass(frozen=True, slots=True)
class Group:
    """ACLs that differ in their principal alone."""

    pattern: ResourcePattern
    host: str
    entries: tuple[AccessControlEntry, ...]

    def line(self, number: int) -> str:
        pattern, first = self.pattern, self.entries[0]
        fields = (
            number,
            pattern.resource_type,
            pattern.name,
            pattern.pattern_type,
            self.host,
            first.operation,
        )
        principals = "\t".join(entry.principal for entry in self.entries)
        return "\t".join(["each", *map(str, fields), str(first.permission_type), principals])


@dataclass(frozen=True, slots=True)
class GridAcls:
    """All ACLs of one point of the grid, recreated by each walk: they need not all be in memory twice."""

    resources: int
    acls: int
    denied: int

    def _is_denied(self, number: int) -> bool:
        # a stride that is prime to 100 spreads the denials over resources and principals
        return number * 37 % 100 < self.denied

    def groups(self) -> Iterator[Group]:
        principals = [ASKER, *[f"{ASKER}{number}" for number in range(1, self.acls)]]
        allows = tuple([AccessControlEntry(principal, "*", READ, ALLOW) for principal in principals])
        denies = [AccessControlEntry(principal, "*", READ, DENY) for principal in principals]
        for number in range(self.resources):
            kind = ResourceType.GROUP if number % 10 == 0 else ResourceType.TOPIC
            pattern_type = PREFIXED if number % 5 == 0 else LITERAL
            pattern = ResourcePattern(kind, f"{STEM}{number}", pattern_type)
            yield Group(pattern, "*", allows)
            denying = [deny for i, deny in enumerate(denies) if self._is_denied(number * self.acls + i)]
            if denying:
                yield Group(pattern, "*", tuple(denying))
        stem = ResourcePattern(ResourceType.TOPIC, STEM, PREFIXED)
        yield from self._hosts(stem, [f"127.0.0.{number}" for number in range(PREFIX_HOSTS)])
        # as in Kafka's, these are no addresses, and 127.0.0.2 is not among them
        every = ResourcePattern(ResourceType.TOPIC, "*", LITERAL)
        yield from self._hosts(every, [f"127.0.0{number}" for number in range(self.resources // 10)])

    def _hosts(self, pattern: ResourcePattern, hosts: list[str]) -> Iterator[Group]:
        for number, host in enumerate(hosts):
            yield Group(pattern, host, (AccessControlEntry(ASKER, host, READ, ALLOW),))
            if self._is_denied(number):
                yield Group(pattern, host, (AccessControlEntry(ASKER, host, READ, DENY),))

    def __iter__(self) -> Iterator[AclBinding]:
        for group in self.groups():
            for entry in group.entries:
                yield AclBinding(group.pattern, entry)

    def lines(self) -> Iterator[str]:
        number = 0
        for group in self.groups():
            yield group.line(number)
            number += len(group.entries)


@dataclass(frozen=True, slots=True)
class GridLoad(Load):
    """A load whose ACLs travel a group a line."""

    acls: GridAcls

    def lines(self) -> Iterator[str]:
        return self.acls.lines()


def grid(resources: int, acls: int, denied: int) -> GridLoad:
    """Return one point: its question is Kafka's, WRITE on resource 95, and on others."""
    made = GridAcls(resources, acls, denied)
    others = random.Random(resources).sample(range(resources), min(OTHERS, resources))
    numbers = dict.fromkeys([95, *others])
    questions = [
        Ask(ASKER, "127.0.0.1", AclOperation.WRITE, ResourceType.TOPIC, f"{STEM}{number}")
        for number in numbers
    ]
    size = sum(len(group.entries) for group in made.groups())
    return GridLoad(f"authorize-grid-{resources}-{acls}-{denied}", made, questions, size, made)
