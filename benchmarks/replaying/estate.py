"""An estate whose access was recorded: its ACLs, a candidate that changes some, and what is asked there.

Everything comes from seeds. A pool holds the distinct questions; events draw from it by a Zipf law, so the
busiest few make most of the traffic, as clients do that poll.
"""

import random
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.authorizing.loads import mixed_acls, mixed_topics
from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import Rule, RuleKind
from kustos.pipeline.bulk import authorize_many
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.schemas import QUESTION_COLUMNS

SEED: Final = 2026
SUPER_USERS: Final = "User:admin"
OPERATIONS: Final = ("READ", "WRITE", "DESCRIBE", "ALTER")
_OPERATION_NUMBERS: Final = {name: number for number, name in enumerate(OPERATIONS)} | {"ALL": 0}
DESCRIBE_SHARE: Final = 0.2
STRANGE_SHARE: Final = 0.04
"""Of the questions, those of somebody about a topic that no ACL made him ask for."""

GROUP_SHARE: Final = 0.1
HOSTS: Final = 4_000
HOSTS_OF_ONE: Final = 40
CHANGED_SHARE: Final = 0.01
"""Of today's ACLs, so many are gone in the candidate; half as many are new."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estate:
    """Today's ACLs, the candidate, and distinct questions with what today's ACLs say of them.

    `questions` is an Arrow table of `QUESTION_COLUMNS`, dictionaries; `decisions` and `rules` are beside it:
    numbers into `DECISIONS`, and a struct of the rule's fields for each.
    """

    today: AclsInForce
    candidate: AclsInForce
    questions: Any
    decisions: Any
    rules: Any


def acl_sets(acl_count: int) -> tuple[AclsInForce, AclsInForce]:
    """Return today's ACLs and the candidate."""
    made = mixed_acls(random.Random(acl_count), acl_count)
    distinct: dict[AclBinding, None] = {}
    while len(distinct) < acl_count:
        distinct[next(made)] = None
    groups = ResourcePattern(ResourceType.GROUP, "group-", PatternType.PREFIXED)
    everybody = AccessControlEntry("User:*", "*", AclOperation.READ, AclPermissionType.ALLOW)
    bindings = [AclBinding(groups, everybody), *distinct]
    today = AclsInForce.of("today", bindings, super_users=SUPER_USERS)
    rng = random.Random(SEED)
    kept = [binding for binding in bindings if rng.random() >= CHANGED_SHARE]
    new = islice((b for b in made if b not in distinct), int(acl_count * CHANGED_SHARE / 2))
    return today, AclsInForce.of("candidate", [*kept, *new], super_users=SUPER_USERS)


def estate(acl_count: int, pool_size: int) -> Estate:
    """Return the estate of so many ACLs and distinct questions."""
    today, candidate = acl_sets(acl_count)
    questions = _distinct(_questions(today, acl_count, pool_size))
    answers = authorize_many(today.authorizer(), questions, with_rule=True)
    rules = {str(Rule(RuleKind.MATCHING_ACL, binding)): binding for binding in today.bindings}
    return Estate(
        today,
        candidate,
        questions,
        answers.column("result").combine_chunks().cast(pa.string()),
        _rule_structs(answers.column("rule").combine_chunks(), rules),
    )


def _questions(today: AclsInForce, acl_count: int, size: int) -> Any:
    rng = np.random.default_rng(SEED)
    topics = mixed_topics(random.Random(acl_count), acl_count)
    names = [*topics, *(f"group-{topic}" for topic in topics)]
    principals = [f"User:service-{number}" for number in range(max(1, acl_count // 50))]
    numbers = {name: number for number, name in enumerate(principals)}
    topic_numbers = {name: number for number, name in enumerate(topics)}
    asked = [
        (
            numbers[b.entry.principal],
            topic_numbers[b.pattern.name],
            _OPERATION_NUMBERS[b.entry.operation.name],
        )
        for b in today.bindings
        if b.entry.principal in numbers and b.pattern.name in topic_numbers
    ]
    chosen = np.array(asked)[rng.integers(0, len(asked), size)]
    who, what, operations = chosen[:, 0].copy(), chosen[:, 1].copy(), chosen[:, 2].copy()
    # a client that may use a topic describes it first
    operations = np.where(rng.random(size) < DESCRIBE_SHARE, OPERATIONS.index("DESCRIBE"), operations)
    strange = rng.random(size) < STRANGE_SHARE
    who = np.where(strange, rng.integers(0, len(principals), size), who)
    what = np.where(strange, _zipf(rng, len(topics), size), what)
    is_group = rng.random(size) < GROUP_SHARE
    hosts = (who * 7919 + rng.integers(0, HOSTS_OF_ONE, size)) % HOSTS
    columns = (
        _encoded(who, principals),
        _encoded(hosts, [f"10.{n % 7}.{n // 250}.{n % 250}" for n in range(HOSTS)]),
        _encoded(np.where(is_group, 0, operations), list(OPERATIONS)),
        _encoded(is_group.astype(np.int64), ["TOPIC", "GROUP"]),
        _encoded(what + is_group * len(topics), names),
    )
    return pa.table(dict(zip(QUESTION_COLUMNS, columns, strict=True)))


def _zipf(rng: np.random.Generator, count: int, size: int) -> Codes:
    """Return numbers below `count`, the n-th as often as 1/n says, in a shuffled order of rank."""
    weights = np.cumsum(1 / np.arange(1, count + 1))
    ranks = np.searchsorted(weights, rng.random(size) * weights[-1])
    shuffled: Codes = np.random.default_rng(SEED + 1).permutation(count)[ranks]
    return shuffled


def _encoded(codes: Codes, texts: list[str]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts))


def _distinct(questions: Any) -> Any:
    """Return each question once, in an order that is by chance."""
    key = np.zeros(questions.num_rows, np.int64)
    for name in QUESTION_COLUMNS:
        column = questions.column(name).combine_chunks()
        key = key * len(column.dictionary) + column.indices.to_numpy()
    _, first = np.unique(key, return_index=True)
    return questions.take(pa.array(np.random.default_rng(SEED).permutation(first)))


def _rule_structs(rules: Any, bindings: dict[str, AclBinding]) -> Any:
    """Return the texts of rules as structs, taken from their dictionary."""
    rows = [_rule_fields(text, bindings.get(text)) for text in rules.dictionary.to_pylist()]
    fields = list(rows[0])
    structs = pa.StructArray.from_arrays(
        [pa.array([row[field] for row in rows], pa.string()) for field in fields], names=fields
    )
    return structs.take(rules.indices)


def _rule_fields(text: str, binding: AclBinding | None) -> dict[str, str | None]:
    names = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation")
    if binding is None:
        return {"kind": text, **dict.fromkeys((*names, "permission_type"))}
    pattern, entry = binding.pattern, binding.entry
    said = (
        pattern.resource_type.name,
        pattern.name,
        pattern.pattern_type.name,
        entry.principal,
        entry.host,
        entry.operation.name,
    )
    return {
        "kind": RuleKind.MATCHING_ACL.value,
        **dict(zip(names, said, strict=True)),
        "permission_type": entry.permission_type.name,
    }
