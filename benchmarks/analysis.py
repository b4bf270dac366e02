"""Questions over large sets: seconds, and how they grow.

`theirs` is four times what a quarter of the ACLs took, so a ratio of 1 is growth in step with the number of
ACLs; less is steeper. The sets are those of `lint`; each is asked

- diff-few: what changes if five ACLs go
- diff-everyone: what changes if `User:*` may describe every topic
- headline-everyone: the same, and what it amounts to in words
- diff-all: what changes to a set that has no principal in common with it
- who-can: who may read any topic at all
- verify: a hundred statements, each about one team's topics
- minimize
"""

from collections.abc import Callable

from benchmarks.figures import QUICK, Figure, emit, progress, timed
from benchmarks.lint import SHAPES, acl
from kustos.acl import AccessControlEntry, AclBinding, AclOperation, ResourcePattern, ResourceType
from kustos.analysis import diff, headline_of, minimize, parse_policy, verify, who_can

SIZE = 10_000 if QUICK else 100_000
EVERYONES = acl("*", "User:*", AclOperation.DESCRIBE)
POLICY = parse_policy(
    "version: 1\nstatements:\n"
    + "".join(f"  - never: anyone but User:svc-{n}* WRITE topics under team-{n}.\n" for n in range(100))
)


def renamed(binding: AclBinding) -> AclBinding:
    entry = binding.entry
    other = AccessControlEntry(f"{entry.principal}x", entry.host, entry.operation, entry.permission_type)
    return AclBinding(binding.pattern, other)


def headline(old: list[AclBinding], new: list[AclBinding]) -> object:
    return headline_of(diff(old, new), old, new)


QUESTIONS: dict[str, Callable[[list[AclBinding]], object]] = {
    "diff-few": lambda acls: diff(acls, acls[5:]),
    "diff-everyone": lambda acls: diff(acls, [*acls, EVERYONES]),
    "headline-everyone": lambda acls: headline(acls, [*acls, EVERYONES]),
    "diff-all": lambda acls: diff(acls, [renamed(binding) for binding in acls]),
    "who-can": lambda acls: who_can(acls, AclOperation.READ, ResourcePattern(ResourceType.TOPIC, "*")),
    "verify": lambda acls: verify(acls, POLICY),
    "minimize": minimize,
}


def seconds(ask: Callable[[list[AclBinding]], object], acls: list[AclBinding]) -> float:
    def asked() -> None:
        ask(acls)

    return timed(asked) / 1e9


def main() -> None:
    figures = []
    for shape_name, shape in SHAPES.items():
        quarter, whole = shape(SIZE // 4), shape(SIZE)
        for name, ask in QUESTIONS.items():
            progress(f"{name} of {SIZE} ACLs: {shape_name}")
            theirs = 4 * seconds(ask, quarter)
            label = f"analysis-{name}-{shape_name}"
            figure = Figure(name=label, unit="s", ours=seconds(ask, whole), theirs=theirs, size=SIZE)
            progress(figure.sentence())
            figures.append(figure)
    emit(figures)


if __name__ == "__main__":
    main()
