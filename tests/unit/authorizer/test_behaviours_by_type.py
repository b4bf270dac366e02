"""The behaviours of decisions by resource type in Kafka's own tests, each in a test of its own."""

from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizationResult
from kustos.authorizer.spi.by_type_default import authorize_by_resource_type
from kustos.authorizer.spi.values import AuthorizableRequestContext
from testkit.acls.one_line import ELSEWHERE, HOST, acl, allows, authorizer_of
from testkit.acls.specified_authorizer import SpecAuthorizer

ASKED = "User:alice READ TOPIC"


def both(
    *texts: str, default_allow: bool = False, super_users: str = "", asked: str = ASKED, host: str = HOST
) -> bool:
    """Return the decision of the index, which must equal the default of every authorizer."""
    authorizer = authorizer_of(*texts, default_allow=default_allow, super_users=super_users)
    custom = SpecAuthorizer(map(acl, texts), frozenset(super_users.split()))
    custom.default_allow = default_allow
    principal, operation, kind = asked.split(" ")
    context = AuthorizableRequestContext(KafkaPrincipal.parse(principal), host)
    result = authorize_by_resource_type(custom, context, AclOperation[operation], ResourceType[kind])
    mine = allows(authorizer, asked, host)
    assert mine is (result is AuthorizationResult.ALLOWED)
    return mine


@pytest.mark.behaviour("B092")
def test_default_allow_applies_without_acls() -> None:
    assert both(default_allow=True)
    assert not both(default_allow=False)
    assert both("DENY READ User:alice TOPIC t", default_allow=True)
    assert not both("DENY READ User:alice TOPIC *", default_allow=True)


@pytest.mark.behaviour("B093")
def test_the_decision_follows_added_and_removed_acls() -> None:
    authorizer = authorizer_of()
    session = authorizer.session(KafkaPrincipal("User", "alice"), HOST)

    def answer() -> bool:
        return session.decide_by_resource_type(AclOperation.READ, ResourceType.TOPIC).allowed

    steps = [
        (1, "ALLOW READ User:alice TOPIC sb1", True),
        (2, "DENY READ User:alice TOPIC sb1", False),
        (3, "ALLOW READ User:alice TOPIC sb2", True),
        (4, "DENY READ User:alice TOPIC prefix sb", False),
        (5, "ALLOW READ User:* TOPIC t", True),
        (6, "DENY READ User:* TOPIC *", False),
    ]
    for number, text, allowed in steps:
        authorizer.add_acl(UUID(int=number), acl(text))
        assert answer() is allowed, text
    for number, _, _ in reversed(steps):
        authorizer.remove_acl(UUID(int=number))
        assert answer() is (number % 2 == 0), number


@pytest.mark.behaviour("B094")
@pytest.mark.parametrize(
    "deny",
    [
        "DENY READ User:bob TOPIC *",
        f"DENY READ User:alice TOPIC * from {ELSEWHERE}",
        "DENY WRITE User:alice TOPIC *",
        "DENY READ User:alice GROUP *",
        "DENY READ User:alice TOPIC other",
        "DENY READ User:alice TOPIC prefix orders-",
        "DENY READ User:alice TOPIC prefix x",
        "DENY READ User:bob TOPIC orders",
        f"DENY READ User:alice TOPIC prefix or from {ELSEWHERE}",
        "DENY WRITE User:alice TOPIC prefix or",
    ],
)
@pytest.mark.parametrize(
    "allow", ["ALLOW READ User:alice TOPIC orders", "ALLOW READ User:alice TOPIC prefix orders"]
)
def test_an_unrelated_deny_has_no_effect(allow: str, deny: str) -> None:
    assert both(allow, deny)


@pytest.mark.behaviour("B095")
def test_a_deny_on_the_same_name_overrides_its_allow() -> None:
    assert not both("ALLOW READ User:alice TOPIC orders", "DENY READ User:alice TOPIC orders")
    assert not both("ALLOW READ User:alice TOPIC prefix o", "DENY READ User:alice TOPIC prefix o")
    assert both("ALLOW READ User:alice TOPIC prefix o", "DENY READ User:alice TOPIC o")


@pytest.mark.behaviour("B096")
@pytest.mark.parametrize("allow", ["prefix orders", "orders", "prefix or"])
def test_a_deny_on_a_shorter_prefix_overrides_narrower_allows(allow: str) -> None:
    assert not both(f"ALLOW READ User:alice TOPIC {allow}", "DENY READ User:* TOPIC prefix or")
    assert both(
        f"ALLOW READ User:alice TOPIC {allow}",
        "DENY READ User:* TOPIC prefix or",
        "ALLOW READ User:* TOPIC prefix o",
    )


@pytest.mark.behaviour("B097")
def test_a_deny_on_every_resource_overrides_all_allows() -> None:
    allowed = (
        "ALLOW READ User:alice TOPIC orders",
        "ALLOW READ User:alice TOPIC prefix o",
        "ALLOW READ User:* TOPIC *",
    )
    assert both(*allowed)
    assert not both(*allowed, "DENY READ User:alice TOPIC *")


@pytest.mark.behaviour("B098")
def test_acls_with_operation_all_apply() -> None:
    assert both("ALLOW ALL User:alice TOPIC orders")
    assert not both("ALLOW READ User:alice TOPIC orders", "DENY ALL User:alice TOPIC orders")
    assert not both("ALLOW READ User:alice TOPIC prefix o", "DENY ALL User:alice TOPIC *")
    # operations imply nothing here
    assert not both("ALLOW WRITE User:alice TOPIC orders", asked="User:alice DESCRIBE TOPIC")


@pytest.mark.behaviour("B099")
def test_acls_with_any_host_apply() -> None:
    here = f"ALLOW READ User:alice TOPIC orders from {HOST}"
    assert both("ALLOW READ User:alice TOPIC orders")
    assert both(here)
    assert not both(here, host=ELSEWHERE)
    assert not both(here, "DENY READ User:alice TOPIC orders")


@pytest.mark.behaviour("B100")
def test_acls_for_all_principals_apply() -> None:
    assert both("ALLOW READ User:* TOPIC orders")
    assert both("ALLOW READ User:* TOPIC orders", asked="Group:ops READ TOPIC")
    assert not both("ALLOW READ User:alice TOPIC orders", "DENY READ User:* TOPIC orders")


@pytest.mark.behaviour("B101")
def test_a_super_user_is_allowed_despite_denies() -> None:
    texts = ("DENY READ User:* TOPIC *", "DENY ALL User:alice TOPIC *")
    assert both(*texts, super_users="User:alice")
    assert not both(*texts)
