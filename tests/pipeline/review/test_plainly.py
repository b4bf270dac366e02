"""Which ACLs allow a question and what DENYs leave of one, beside plain Python that tries everything."""

from random import Random

import pytest

from kustos.acl.forms import binding_of_texts
from kustos.analysis import Rules
from kustos.analysis.entitlements import entitlements
from kustos.pipeline.review.matcher import Matcher, Question
from tests.pipeline.plain_entitlements import ACL_NAMES, Plain, drawn_acls, holds, is_for, operations
from tests.pipeline.rich_logs import OPERATIONS, PRINCIPALS
from tests.pipeline.rich_oddities import TOPICS

WORLDS = 20
SUPER_USERS = frozenset({"User:root", "User:bob"})
CLIENTS = [(f"User:{who}", host) for who in PRINCIPALS for host in ("10.0.0.1", "10.1.0.2", "10.9.9.9")]
QUESTIONS = [(*client, operation, name) for client in CLIENTS if client[0] not in SUPER_USERS
             for operation in OPERATIONS for name in (None, *TOPICS)]  # fmt: skip


@pytest.fixture
def worlds(seed: int) -> list[Plain]:
    random = Random(seed)
    return [Plain(drawn_acls(random, PRINCIPALS), SUPER_USERS, False, [], 0, 1) for _ in range(WORLDS)]


def test_the_same_acls_allow_each_question(worlds: list[Plain]) -> None:
    """Also those about any topic, for which Kafka has rules of their own."""
    for plain in worlds:
        bindings = [binding_of_texts(dict(zip(ACL_NAMES, acl, strict=True))) for acl in plain.acls]
        matcher = Matcher(bindings, Rules(super_users=SUPER_USERS))
        for who, host, operation, name in QUESTIONS:
            asked = {"principal": who, "host": host, "operation": operation}
            expected = [
                number
                for number, acl in enumerate(plain.acls)
                if acl[6] == "ALLOW" and operation in operations(acl) and is_for(acl, who, host)
                and (plain.allows_some_topic(acl, asked) if name is None else holds(acl, "TOPIC", name))
            ]  # fmt: skip
            found = matcher.matching(Question.of_texts(who, host, operation, "TOPIC", name)).allows
            assert sorted(found) == expected, (plain.acls, who, host, operation, name)


def test_the_same_denies_take_the_same_from_each_allow(worlds: list[Plain]) -> None:
    for plain in worlds:
        bindings = [binding_of_texts(dict(zip(ACL_NAMES, acl, strict=True))) for acl in plain.acls]
        for one in entitlements(bindings, Rules(super_users=SUPER_USERS)):
            effect, denies = plain.effect(plain.acls[one.number], one.operation.name)
            assert one.effect.value == effect, (plain.acls, one)
            assert sorted(plain.acls[number] for number in one.denied_by) == denies, (plain.acls, one)
            assert one.deny_count == len(denies)
