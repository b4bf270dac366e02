"""Worlds to decide in: ACLs and questions of the maker of the differential tests, and odd ones."""

import itertools
from collections.abc import Iterable
from random import Random

from kustos.acl import AclBinding, AclOperation, AclValueError, KafkaPrincipal, ResourceType
from kustos.authorizer import InvalidActionError, StandardAuthorizer
from kustos.pipeline.deciding import AclsInForce
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.worlds import Add, Ask, Configure, Remove, Snapshot, Start

Question = tuple[str | None, str | None, str | None, str | None, str | None]
"""principal, host, operation, resource type, resource name"""

ODD: list[Question] = [
    ("User:*", "10.0.0.1", "READ", "TOPIC", "a"),
    ("alice", "10.0.0.1", "READ", "TOPIC", "a"),
    (None, "10.0.0.1", "READ", "TOPIC", "a"),
    ("User:alice", None, "READ", "TOPIC", "a"),
    ("User:alice", "10.0.0.1", "ANY", "TOPIC", "a"),
    ("User:alice", "10.0.0.1", "read", "TOPIC", "a"),
    ("User:alice", "10.0.0.1", None, "TOPIC", "a"),
    ("User:alice", "10.0.0.1", "READ", "UNKNOWN", "a"),
    ("User:alice", "10.0.0.1", "READ", None, "a"),
    (":", "", "READ", "TOPIC", ""),
    ("User:\u202ealice\U0001f600", "not an address", "READ", "TOPIC", "\0"),
]


def made_world(seed: int, acl_count: int = 60) -> tuple[AclsInForce, list[Ask]]:
    """Return the ACLs and settings that a made world ends with, and what it asked."""
    steps = list(WorldMaker(seed, Shape(acl_count=acl_count, question_count=60)).steps())
    live: dict[int, AclBinding] = {}
    super_users, default_allow = "", False
    for step in steps:
        match step:
            case Start(users, allow, _) | Configure(users, allow):
                super_users, default_allow = users, allow
            case Add(number, binding):
                live[number] = binding
            case Remove(number):
                live.pop(number, None)
            case Snapshot(acls):
                live = {acl.number: acl.binding for acl in acls}
    name = f"world {seed}"
    users_and_default = {"super_users": super_users, "allow_everyone_if_no_acl_found": default_allow}
    acl_set = AclsInForce.of(name, live.values(), **users_and_default)  # type: ignore[arg-type]
    return acl_set, [step for step in steps if isinstance(step, Ask)]


def asked_around(asks: list[Ask], seed: int) -> list[Question]:
    """Return what a world asked: some subjects about many names, then odd questions, all shuffled."""
    rng = Random(seed)
    subjects = rng.sample(asks, min(len(asks), 6))
    names = [ask.name for ask in asks]
    names += [f"{name}{end}" for name, end in itertools.product(names[:10], ["", "*", "é"])]
    rows: list[Question] = [
        (who.principal, who.host, str(rng.choice(asks).operation), str(rng.choice(asks).resource_type), name)
        for who, name in itertools.product(subjects, names)
    ]
    rows += [(a.principal, a.host, str(a.operation), str(a.resource_type), a.name) for a in asks]
    rows += ODD
    rng.shuffle(rows)
    return rows


def decided_singly(authorizer: StandardAuthorizer, questions: Iterable[Question]) -> list[tuple[str, str]]:
    """Return the decision and the rule of each question, from a session of its own; no rule of an ERROR."""
    return [_decided(authorizer, *question) for question in questions]


def _decided(
    authorizer: StandardAuthorizer,
    principal: str | None,
    host: str | None,
    operation: str | None,
    resource_type: str | None,
    name: str | None,
) -> tuple[str, str]:
    operations, kinds = AclOperation.__members__, ResourceType.__members__
    if principal is None or host is None or operation not in operations or resource_type not in kinds:
        return "ERROR", ""
    asked = AclOperation[str(operation)], ResourceType[str(resource_type)]
    try:
        session = authorizer.session(KafkaPrincipal.parse(principal), host)
        decision = session.decide_by_resource_type(*asked) if name is None else session.decide(*asked, name)
    except (AclValueError, InvalidActionError):
        return "ERROR", ""
    return decision.result.value, str(decision.rule)
