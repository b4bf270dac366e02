"""A client with groups gets what Kafka's StandardAuthorizer decides for each of them alone, taken together.

The client is denied if an ACL denies it or one of its groups, else allowed if it or one of them is allowed.
"""

import itertools
import random
import zlib
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

from kustos.acl import AclBinding
from kustos.authorizer import StandardAuthorizer, parse_super_users
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.oracle import Oracle
from testkit.differential.worlds import Add, Ask, Remove, Snapshot, Start, Step, principal_of, to_lines
from testkit.seeds import seed_of_run

SHAPE = Shape(acl_count=140, question_count=300, plain=True)
QUESTIONS_MIN = 5_000
BY_AN_ACL = "MatchingAcl"
SHARES_MIN = {"ALLOWED by a group": 0.003, "DENIED by a group": 0.02, "ALLOWED": 0.02, "DENIED": 0.1}


def grouped(binding: AclBinding) -> AclBinding:
    """Return half of the ACLs of a user as ACLs of a group, always the same half."""
    user = binding.entry.principal
    if not user.startswith("User:") or user == "User:*" or zlib.crc32(repr(binding).encode()) % 2:
        return binding
    return replace(binding, entry=replace(binding.entry, principal=f"Group:of-{user[5:]}"))


def grouped_steps(seed: int) -> Iterator[Step]:
    """Yield a world whose questions come from users, with ACLs of groups."""
    for step in WorldMaker(seed, SHAPE).steps():
        match step:
            case Add():
                yield replace(step, binding=grouped(step.binding))
            case Snapshot(acls):
                yield Snapshot(tuple(replace(acl, binding=grouped(acl.binding)) for acl in acls))
            case Ask(principal=principal, name=name):
                if name is not None and principal.startswith("User:") and principal != "User:*":
                    yield step
            case Start() | Remove():
                yield step


def test_the_decision_is_of_the_decisions_of_kafka_for_each_alone() -> None:
    seed, counts = seed_of_run(), dict.fromkeys(SHARES_MIN, 0)
    with Oracle(256) as oracle:
        for number in itertools.count(seed):
            compare(number, oracle, counts)
            total = counts["ALLOWED"] + counts["DENIED"]
            if total >= QUESTIONS_MIN:
                break
    assert all(counts[kind] >= share * total for kind, share in SHARES_MIN.items()), counts


def compare(number: int, oracle: Oracle, counts: dict[str, int]) -> None:
    chance = random.Random(number)
    steps = list(grouped_steps(number))
    users = sorted({principal_of(step.principal).name for step in steps if isinstance(step, Ask)})
    ours: list[tuple[str, str]] = []
    asked: list[Step] = []
    members: list[int] = []
    authorizer = StandardAuthorizer()
    for step in steps:
        if not isinstance(step, Ask):
            asked.append(step)
            authorizer = changed(authorizer, step)
            continue
        groups = tuple(f"of-{name}" for name in chance.sample(users, min(len(users), chance.randint(0, 4))))
        client = replace(principal_of(step.principal), groups=groups)
        assert step.name is not None
        decision = authorizer.session(client, step.host).decide(step.operation, step.resource_type, step.name)
        ours.append((decision.result.value, str(decision.rule)))
        asked += [step, *(replace(step, principal=f"Group:{group}") for group in groups)]
        members.append(1 + len(groups))
    theirs = iter(oracle.answers(list(to_lines(asked))))
    for mine, count in zip(ours, members, strict=True):
        alone = [tuple(answer.split("\t")) for answer in itertools.islice(theirs, count)]
        assert mine == together(mine, alone), f"seed {number}"
        counts[mine[0]] += 1
        counts[f"{mine[0]} by a group"] += "principal=Group:" in mine[1]


def changed(authorizer: StandardAuthorizer, step: Step) -> StandardAuthorizer:
    match step:
        case Start(super_users, default_allow):
            authorizer = StandardAuthorizer(
                super_users=parse_super_users(super_users), allow_everyone_if_no_acl_found=default_allow
            )
            authorizer.complete_initial_load()
        case Add(number, binding):
            authorizer.add_acl(UUID(int=number), binding)
        case Remove(number):
            authorizer.remove_acl(UUID(int=number))
        case Snapshot(acls):
            authorizer.load_snapshot((UUID(int=acl.number), acl.binding) for acl in acls)
    return authorizer


def together(mine: tuple[str, str], alone: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the expected answer, which may name the rule of any decision that decides."""
    if alone[0][1] == "SuperUser":
        return alone[0]
    denied = [each for each in alone if each[0] == "DENIED" and each[1].startswith(BY_AN_ACL)]
    allowed = [each for each in alone if each[0] == "ALLOWED" and each[1].startswith(BY_AN_ACL)]
    deciding = denied or allowed or alone[:1]
    return mine if mine in deciding else deciding[0]
