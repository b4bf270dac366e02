"""ACLs and questions: one builder for each shape, the same for both sides in every run."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from benchmarks.figures import QUICK
from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from testkit.differential.worlds import Add, Ask, to_lines

SHRINK = 10 if QUICK else 1
"""A quick run has a tenth of the ACLs."""

ASKED = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER]
DOMAINS = ["orders", "payments", "billing", "clicks", "users", "inventory", "shipping", "audit"]
HOST = "10.1.2.3"
QUESTIONS = 20_000
DENY, ALLOW = AclPermissionType.DENY, AclPermissionType.ALLOW
PREFIXED, LITERAL = PatternType.PREFIXED, PatternType.LITERAL


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of both sides; no question is there twice, so that a session knows none of them."""

    name: str
    bindings: Iterable[AclBinding]
    questions: list[Ask]
    size: int

    def lines(self) -> Iterator[str]:
        """Yield the ACLs as the oracle keeps them."""
        return kept_lines(enumerate(self.bindings))


def acl(
    name: str,
    principal: str,
    pattern_type: PatternType = LITERAL,
    operation: AclOperation = AclOperation.READ,
    permission: AclPermissionType = ALLOW,
    host: str = "*",
) -> AclBinding:
    """Make one ACL of a topic."""
    pattern = ResourcePattern(ResourceType.TOPIC, name, pattern_type)
    return AclBinding(pattern, AccessControlEntry(principal, host, operation, permission))


def question(principal: str, operation: AclOperation, name: str | None, host: str = HOST) -> Ask:
    return Ask(principal, host, operation, ResourceType.TOPIC, name)


def kept_lines(numbered: Iterable[tuple[int, AclBinding]]) -> Iterator[str]:
    """Yield the lines by which the oracle keeps ACLs."""
    for number, binding in numbered:
        [line] = to_lines([Add(number, binding)])
        yield f"keep{line.removeprefix('add')}"


def load(name: str, bindings: Iterable[AclBinding], questions: list[Ask]) -> Load:
    distinct = list(dict.fromkeys(bindings))
    return Load(name, distinct, list(dict.fromkeys(questions)), len(distinct))


def literal(rng: random.Random) -> Load:
    """10,000 literal ACLs: 500 principals with 20 topics each; a fifth of the questions is for others'."""
    count = 10_000 // SHRINK
    topics = [f"{rng.choice(DOMAINS)}.{number % 97}.events-{number}" for number in range(count)]
    owners = [f"User:service-{number % (count // 20)}" for number in range(count)]
    bindings = [
        acl(topic, owner, operation=rng.choice(ASKED[:2]))
        for topic, owner in zip(topics, owners, strict=True)
    ]
    questions = []
    for number in rng.choices(range(count), k=QUESTIONS):
        owner = owners[number] if rng.random() < 0.8 else rng.choice(owners)
        questions.append(question(owner, rng.choice(ASKED), topics[number]))
    return load("authorize-literal-10k", bindings, questions)


def prefixed(rng: random.Random) -> Load:
    """20,000 prefixed ACLs: 1,000 principals with 20 prefixes of three depths each."""
    count = 20_000 // SHRINK
    prefixes = []
    for number in range(count):
        team = f"{rng.choice(DOMAINS)}.team-{number % 499}."
        prefixes.append(team + rng.choice(["", f"app-{number}.", f"app-{number}.stage-{number % 7}."]))
    owners = [f"User:service-{number % (count // 20)}" for number in range(count)]
    distinct = dict.fromkeys(zip(prefixes, owners, strict=True))
    bindings = [acl(prefix, owner, PREFIXED, rng.choice(ASKED[:2])) for prefix, owner in distinct]
    questions = []
    for prefix, owner in rng.choices(list(distinct), k=QUESTIONS):
        subject = owner if rng.random() < 0.8 else rng.choice(owners)
        questions.append(question(subject, rng.choice(ASKED), f"{prefix}events-{rng.randrange(1000)}"))
    return load("authorize-prefixed-20k", bindings, questions)


def mixed_acls(rng: random.Random, count: int) -> Iterator[AclBinding]:
    """Yield mixed ACLs for ever, on `count` / 5 topics of Zipf popularity for `count` / 50 principals.

    Nine in ten patterns are literal, the rest prefixes; of the entries 5 % deny, 3 % name a host or a
    range, 0.5 % are for everybody.
    """
    topics = mixed_topics(rng, count)
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(topics))))
    while True:
        [topic] = rng.choices(topics, cum_weights=weights)
        is_prefix = rng.random() < 0.1
        yield acl(
            topic[: rng.randint(6, len(topic))] if is_prefix else topic,
            "User:*" if rng.random() < 0.005 else f"User:service-{rng.randrange(count // 50)}",
            PREFIXED if is_prefix else LITERAL,
            rng.choice([*ASKED, AclOperation.ALL]),
            DENY if rng.random() < 0.05 else ALLOW,
            rng.choice(["10.1.2.3", "10.0.0.0/8", "10.9.9.9"]) if rng.random() < 0.03 else "*",
        )


def mixed_topics(rng: random.Random, count: int) -> list[str]:
    return [f"{rng.choice(DOMAINS)}.{number % 997}.events-{number}" for number in range(count // 5)]


def zipf(rng: random.Random, count: int = 100_000 // SHRINK) -> Load:
    """100,000 mixed ACLs, 20 of them on all topics; questions by the same Zipf law."""
    topics = mixed_topics(random.Random(count), count)
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(topics))))
    principals = [f"User:service-{number}" for number in range(count // 50)]
    made = mixed_acls(random.Random(count), count)
    distinct: dict[AclBinding, None] = {}
    while len(distinct) < count - 20:
        distinct[next(made)] = None
    for principal in rng.sample(principals, 20):
        distinct[acl("*", principal, operation=AclOperation.DESCRIBE)] = None
    questions = [
        question(rng.choice(principals), rng.choice(ASKED), topic)
        for topic in rng.choices(topics, cum_weights=weights, k=QUESTIONS)
    ]
    return load("authorize-zipf-100k", distinct, questions)


def lengths(rng: random.Random, distinct: int) -> Load:
    """20,000 prefixed ACLs of so many distinct lengths, 100 principals with 200 each."""
    kinds = sorted(rng.sample(range(3, 246), distinct))
    stem = "".join(rng.choices("abc", k=249))
    bindings = []
    questions = []
    for number in range(100 // SHRINK):
        names = []
        for _ in range(200):
            shared = rng.randrange(120)
            name = stem[:shared] + "".join(rng.choices("abc", k=249 - shared))
            names.append(name)
            prefix = name[: rng.choice(kinds)]
            bindings.append(acl(prefix, f"User:service-{number}", PREFIXED, rng.choice(ASKED[:2])))
        for name in rng.choices(names, k=100):
            asked = name[: rng.randint(100, 249)]
            questions.append(question(f"User:service-{number}", rng.choice(ASKED), asked))
    return load(f"authorize-lengths-{distinct}", bindings, questions)


def nested(rng: random.Random) -> Load:
    """10,000 prefixed ACLs: 50 principals, each with prefixes 1 to 200 characters long of one name."""
    bindings = []
    questions = []
    for number in range(50):
        name = "".join(rng.choices("abc", k=249))
        principal = f"User:service-{number}"
        depths = range(1, 200 // SHRINK + 1)
        bindings += [acl(name[:n], principal, PREFIXED, rng.choice(ASKED[:2])) for n in depths]
        for _ in range(100):
            asked = name[: rng.randint(1, 249)] + rng.choice(["", "x", "y", "z"])
            questions.append(question(principal, rng.choice(ASKED), asked))
    return load("authorize-nested", bindings, questions)


def huge_principal(rng: random.Random) -> Load:
    """One principal with 100,000 ACLs, a tenth of them prefixes."""
    count = 100_000 // SHRINK
    names = [f"{rng.choice(DOMAINS)}.{number % 997}.events-{number}" for number in range(count)]
    bindings = [
        acl(f"{name}." if number % 10 == 0 else name, "User:one", PREFIXED if number % 10 == 0 else LITERAL)
        for number, name in enumerate(names)
    ]
    questions = [
        question("User:one", rng.choice(ASKED), rng.choice(names) + rng.choice(["", ".a", ".b", "c"]))
        for _ in range(QUESTIONS)
    ]
    return load("authorize-huge-principal", bindings, questions)


def cidr(rng: random.Random) -> Load:
    """10,000 ranges on one topic for one principal; every question comes from another host."""
    ranges = dict.fromkeys(
        f"{rng.randrange(1, 224)}.{rng.randrange(256)}.{rng.randrange(256)}.0/{rng.choice([16, 20, 24, 28])}"
        for _ in range(10_000 // SHRINK)
    )
    bindings = [acl("orders", "User:one", operation=rng.choice(ASKED[:2]), host=host) for host in ranges]
    hosts = [
        f"{host.split('/')[0].removesuffix('.0')}.{rng.randrange(16)}"
        if rng.random() < 0.5
        else f"{rng.randrange(1, 224)}.{rng.randrange(256)}.1.{rng.randrange(256)}"
        for host in rng.sample(list(ranges), 600)
    ]
    questions = [question("User:one", rng.choice(ASKED[:2]), "orders", host) for host in hosts]
    return load("authorize-cidr-10k", bindings, questions)


def by_resource_type(mixed: Load, rng: random.Random) -> Load:
    """Ask about any topic at all, over the same ACLs."""
    subjects = [asked.principal for asked in mixed.questions]
    questions = [
        question(subject, rng.choice([*ASKED, AclOperation.CREATE]), None)
        for subject in rng.sample(subjects, 100)
    ]
    return load("by-resource-type-zipf-100k", mixed.bindings, questions)


def dominated(rng: random.Random) -> Load:
    """100,000 ACLs, every ALLOW dominated: by the same literal, by an own prefix, or by everybody's."""
    bindings = []
    principals = [f"User:service-{number}" for number in range(2_000 // SHRINK)]
    bindings += [acl(f"{domain}.", "User:*", PREFIXED, permission=DENY) for domain in DOMAINS[:3]]
    for principal in principals:
        bindings += [acl(f"{domain}.", principal, PREFIXED, permission=DENY) for domain in DOMAINS[3:6]]
        for number in range(28):
            name = f"{DOMAINS[number % 8]}.{rng.randrange(997)}.events-{number}"
            bindings.append(acl(name, principal))
            if number % 8 >= 6 or number % 2:
                bindings.append(acl(name, principal, permission=DENY))
    questions = [question(subject, AclOperation.READ, None) for subject in rng.sample(principals, 40)]
    return load("by-resource-type-dominated", bindings, questions)
