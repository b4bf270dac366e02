"""Lint of large sets: seconds, and how they grow.

`theirs` is four times what a quarter of the ACLs took, so a ratio of 1 is growth in step with the number of
ACLs; less is steeper. Shapes: services with rights on topics of their own; prefixes, denials, ranges and
`User:*` mixed by a Pareto law; one principal with everything; one topic with an ACL for each host.
"""

import random
from collections.abc import Callable

from benchmarks.figures import QUICK, Figure, emit, progress, timed
from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis.lint import lint

SIZE = 20_000 if QUICK else 100_000
OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]
HOSTS = ["*"] * 8 + ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3"]


def acl(name: str, principal: str, operation: AclOperation, **other: object) -> AclBinding:
    pattern_type = PatternType.PREFIXED if other.get("prefixed") else PatternType.LITERAL
    permission = AclPermissionType.DENY if other.get("denies") else AclPermissionType.ALLOW
    entry = AccessControlEntry(principal, str(other.get("host", "*")), operation, permission)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, pattern_type), entry)


def services(count: int) -> list[AclBinding]:
    return [acl(f"team-{n % 500}.topic-{n}", f"User:svc-{n % 2000}", OPERATIONS[n % 3]) for n in range(count)]


def mixed(count: int) -> list[AclBinding]:
    rng = random.Random(count)

    def one() -> AclBinding:
        name = f"team-{rng.randrange(count // 200)}.{f't{rng.randrange(3000)}' if rng.random() < 0.7 else ''}"
        ranked = f"User:svc-{int(rng.paretovariate(1)) % (count // 30)}"
        principal = ranked if rng.random() < 0.95 else "User:*"
        operation = rng.choice([*OPERATIONS, AclOperation.ALL])
        return acl(
            name,
            principal,
            operation,
            prefixed=rng.random() < 0.3,
            denies=rng.random() < 0.1,
            host=rng.choice(HOSTS),
        )

    return [one() for _ in range(count)]


def one_principal(count: int) -> list[AclBinding]:
    return [acl(f"topic-{n}", "User:big", OPERATIONS[n % 3]) for n in range(count)]


def one_topic(count: int) -> list[AclBinding]:
    hosts = [f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in range(count)]
    return [acl("topic", f"User:svc-{n % 50}", AclOperation.READ, host=host) for n, host in enumerate(hosts)]


SHAPES: dict[str, Callable[[int], list[AclBinding]]] = {
    "services": services,
    "mixed": mixed,
    "one-principal": one_principal,
    "one-topic": one_topic,
}


def seconds(acls: list[AclBinding]) -> float:
    return min(timed(lambda: void(acls)) for _ in range(2)) / 1e9


def void(acls: list[AclBinding]) -> None:
    lint(acls)


def main() -> None:
    figures = []
    for name, shape in SHAPES.items():
        progress(f"lint of {SIZE} ACLs: {name}")
        quarter, whole = seconds(shape(SIZE // 4)), seconds(shape(SIZE))
        figure = Figure(name=f"lint-{name}", unit="s", ours=whole, theirs=4 * quarter, size=SIZE)
        progress(figure.sentence())
        figures.append(figure)
    emit(figures)


if __name__ == "__main__":
    main()
