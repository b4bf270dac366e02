"""The authorizer's life: readiness, changes in log order, faults, limits."""

from uuid import UUID

import pytest

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AclValueError,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizerNotReadyError,
    DuplicateAclError,
    DuplicateAclIdError,
    InvalidAclError,
    InvalidActionError,
    RuleKind,
    StandardAuthorizer,
    UnknownAclIdError,
    parse_super_users,
)
from kustos.authorizer.index.host_views import HOST_VIEWS_MAX
from kustos.authorizer.session import KEPT_NAME_CHARACTERS_MAX, SESSION_NAMES_MAX
from kustos.authorizer.standard import KEPT_SESSIONS_MAX

ALICE = KafkaPrincipal("User", "alice")
ROOT = KafkaPrincipal("User", "root")
READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
DENY = AclPermissionType.DENY


def acl(
    name: str,
    *,
    principal: str = "User:alice",
    host: str = "*",
    pattern_type: PatternType = PatternType.LITERAL,
    permission_type: AclPermissionType = AclPermissionType.ALLOW,
    operation: AclOperation = READ,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(TOPIC, name, pattern_type),
        AccessControlEntry(principal, host, operation, permission_type),
    )


def number(value: int) -> UUID:
    return UUID(int=value)


def ready(*bindings: AclBinding, default_allow: bool = False) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(
        super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=default_allow
    )
    authorizer.load_snapshot((number(index), binding) for index, binding in enumerate(bindings))
    authorizer.complete_initial_load()
    return authorizer


def allows(authorizer: StandardAuthorizer, name: str, principal: KafkaPrincipal = ALICE) -> bool:
    return authorizer.session(principal, "10.0.0.1").decide(READ, TOPIC, name).allowed


def test_implements_the_interface() -> None:
    authorizer = ready(acl("orders"))
    context = AuthorizableRequestContext(ALICE, "10.0.0.1")
    decisions = authorizer.authorize(context, [Action(TOPIC, "orders", READ), Action(TOPIC, "orders", WRITE)])
    assert [decision.allowed for decision in decisions] == [True, False]
    assert authorizer.authorize_by_resource_type(context, READ, TOPIC).allowed
    assert not authorizer.authorize_by_resource_type(context, WRITE, TOPIC).allowed


@pytest.mark.behaviour("B001")
def test_super_users_are_separated_by_semicolons_and_blanks_are_skipped() -> None:
    assert parse_super_users(" User:a ; ;User:b=c,d;; ") == {"User:a", "User:b=c,d"}
    assert parse_super_users("") == frozenset()


@pytest.mark.parametrize("text", ["alice", "User:a;bob", "User:*", "User:a; User:*"])
def test_an_invalid_super_user_is_rejected(text: str) -> None:
    with pytest.raises(AclValueError, match="`"):
        parse_super_users(text)


def test_the_wildcard_is_never_a_super_user() -> None:
    with pytest.raises(AclValueError):
        StandardAuthorizer(super_users=frozenset({"User:*"}))
    with pytest.raises(AclValueError):
        ready().reconfigure(super_users=frozenset({"User:*"}), allow_everyone_if_no_acl_found=True)


def test_a_wildcard_principal_is_rejected() -> None:
    authorizer = ready(acl("orders", principal="User:*"), default_allow=True)
    with pytest.raises(InvalidActionError, match=r"User:\*"):
        authorizer.session(KafkaPrincipal("User", "*"), "10.0.0.1")
    context = AuthorizableRequestContext(KafkaPrincipal("User", "*"), "10.0.0.1")
    with pytest.raises(InvalidActionError):
        authorizer.authorize(context, [Action(TOPIC, "orders", READ)])
    with pytest.raises(InvalidActionError):
        authorizer.authorize_by_resource_type(context, READ, TOPIC)


@pytest.mark.behaviour("B003")
def test_reconfiguration_takes_effect_immediately_and_keeps_the_acls() -> None:
    authorizer = ready(acl("orders"))
    bob = authorizer.session(KafkaPrincipal("User", "bob"), "10.0.0.1")
    assert not bob.decide(READ, TOPIC, "free").allowed
    authorizer.reconfigure(super_users=frozenset(), allow_everyone_if_no_acl_found=True)
    assert bob.decide(READ, TOPIC, "free").rule.kind is RuleKind.DEFAULT_ALLOW
    assert not bob.decide(READ, TOPIC, "orders").allowed
    assert not allows(authorizer, "orders", ROOT)
    authorizer.reconfigure(super_users=frozenset({"User:bob"}), allow_everyone_if_no_acl_found=False)
    assert bob.decide(READ, TOPIC, "orders").rule.kind is RuleKind.SUPER_USER
    assert authorizer.acl_count == 1


@pytest.mark.behaviour("B022")
def test_only_super_users_get_a_decision_before_the_acls_are_loaded() -> None:
    authorizer = StandardAuthorizer(super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=True)
    authorizer.add_acl(number(1), acl("orders"))
    session = authorizer.session(ALICE, "10.0.0.1")
    for _ in range(2):
        with pytest.raises(AuthorizerNotReadyError):
            session.decide(READ, TOPIC, "orders")
        with pytest.raises(AuthorizerNotReadyError):
            session.decide_by_resource_type(READ, TOPIC)
    assert allows(authorizer, "orders", ROOT)
    assert not authorizer.is_ready
    authorizer.complete_initial_load()
    assert session.decide(READ, TOPIC, "orders").allowed


@pytest.mark.parametrize("operation", [AclOperation.ANY, AclOperation.UNKNOWN])
@pytest.mark.parametrize("principal", [ALICE, ROOT])
def test_an_unspecific_operation_has_no_decision(operation: AclOperation, principal: KafkaPrincipal) -> None:
    session = ready(acl("orders", operation=AclOperation.ALL), default_allow=True).session(principal, "h")
    with pytest.raises(InvalidActionError, match="operation"):
        session.decide(operation, TOPIC, "orders")
    with pytest.raises(InvalidActionError, match="operation"):
        session.decide_by_resource_type(operation, TOPIC)


@pytest.mark.parametrize("resource_type", [ResourceType.ANY, ResourceType.UNKNOWN])
@pytest.mark.parametrize("principal", [ALICE, ROOT])
def test_an_unspecific_type_has_no_decision(resource_type: ResourceType, principal: KafkaPrincipal) -> None:
    session = ready(default_allow=True).session(principal, "h")
    with pytest.raises(InvalidActionError, match="resource type"):
        session.decide(READ, resource_type, "orders")


def test_faults_of_the_log_change_nothing() -> None:
    authorizer = ready(acl("orders"), acl("*", permission_type=DENY, operation=WRITE))
    before = authorizer.version
    with pytest.raises(DuplicateAclIdError):
        authorizer.add_acl(number(0), acl("other"))
    with pytest.raises(DuplicateAclError, match="orders"):
        authorizer.add_acl(number(7), acl("orders"))
    with pytest.raises(DuplicateAclError):
        authorizer.add_acl(number(7), acl("*", permission_type=DENY, operation=WRITE))
    with pytest.raises(InvalidAclError, match="`alice`"):
        authorizer.add_acl(number(7), acl("other", principal="alice"))
    with pytest.raises(UnknownAclIdError):
        authorizer.remove_acl(number(7))
    assert authorizer.version == before
    assert authorizer.acl_count == 2
    assert not allows(authorizer, "other")


@pytest.mark.parametrize(
    "acls",
    [
        [(1, acl("new")), (1, acl("newer"))],
        [(1, acl("new")), (2, acl("new"))],
        [(1, acl("new")), (2, acl("x", pattern_type=PatternType.PREFIXED)), (3, acl("y", principal=""))],
    ],
)
def test_a_faulty_snapshot_leaves_the_old_acls_in_force(acls: list[tuple[int, AclBinding]]) -> None:
    authorizer = ready(acl("orders"))
    before = authorizer.version
    with pytest.raises((DuplicateAclIdError, DuplicateAclError, InvalidAclError)):
        authorizer.load_snapshot((number(index), binding) for index, binding in acls)
    assert authorizer.version == before
    assert list(authorizer.acls()) == [acl("orders")]
    assert allows(authorizer, "orders")
    assert not allows(authorizer, "new")


def test_version_rises_with_every_change() -> None:
    authorizer = StandardAuthorizer()
    versions = [authorizer.version]
    authorizer.load_snapshot([(number(1), acl("a"))])
    versions.append(authorizer.version)
    authorizer.complete_initial_load()
    versions.append(authorizer.version)
    authorizer.add_acl(number(2), acl("b"))
    versions.append(authorizer.version)
    assert authorizer.remove_acl(number(1)) == acl("a")
    versions.append(authorizer.version)
    authorizer.reconfigure(super_users=frozenset(), allow_everyone_if_no_acl_found=False)
    versions.append(authorizer.version)
    assert versions == sorted(set(versions))


def test_an_open_session_answers_from_the_newest_acls() -> None:
    authorizer = ready()
    session = authorizer.session(ALICE, "10.0.0.1")
    for round_number in range(3):
        assert not session.decide(READ, TOPIC, "orders").allowed
        assert not session.decide_by_resource_type(READ, TOPIC).allowed
        authorizer.add_acl(number(round_number), acl("ord", pattern_type=PatternType.PREFIXED))
        assert session.decide(READ, TOPIC, "orders").allowed
        assert session.decide_by_resource_type(READ, TOPIC).allowed
        authorizer.remove_acl(number(round_number))
    authorizer.load_snapshot([(number(9), acl("orders"))])
    assert session.decide(READ, TOPIC, "orders").allowed


def test_listed_acls_match_the_filter() -> None:
    prefixed = acl("ord", pattern_type=PatternType.PREFIXED)
    others = acl("orders", principal="User:bob")
    authorizer = ready(acl("orders"), prefixed, others, acl("*"))
    matching = ResourcePatternFilter(TOPIC, "orders", PatternType.MATCH)
    assert set(authorizer.acls(AclBindingFilter(matching))) == {acl("orders"), prefixed, others, acl("*")}
    exact = ResourcePatternFilter(TOPIC, "orders", PatternType.ANY)
    assert set(authorizer.acls(AclBindingFilter(exact))) == {acl("orders"), others}
    of_bob = AclBindingFilter(entry_filter=AccessControlEntryFilter(principal="User:bob"))
    assert list(authorizer.acls(of_bob)) == [others]


def test_a_listing_is_consistent() -> None:
    authorizer = ready(acl("a"), acl("b"))
    listing = iter(authorizer.acls())
    first = next(listing)
    authorizer.load_snapshot([])
    assert {first, *listing} == {acl("a"), acl("b")}


def test_patterns_of_one_name_are_distinct() -> None:
    star = acl("*")
    prefixed_star = acl("*", pattern_type=PatternType.PREFIXED)
    authorizer = ready(star, prefixed_star)
    assert allows(authorizer, "anything")
    authorizer.remove_acl(number(0))
    assert not allows(authorizer, "anything")
    assert allows(authorizer, "*starred")
    authorizer.remove_acl(number(1))
    assert not allows(authorizer, "*starred")
    assert authorizer.acl_count == 0


def test_thousands_of_nested_prefixes_do_not_recurse() -> None:
    depth = 5000
    hosts = ("*", "10.0.0.0/8")
    bindings = [
        acl("a" * (length + 1), pattern_type=PatternType.PREFIXED, host=hosts[length % 2])
        for length in range(depth)
    ]
    authorizer = ready(*bindings)
    decision = authorizer.session(ALICE, "10.0.0.1").decide(READ, TOPIC, "a" * depth)
    assert decision.rule.binding == bindings[0]
    authorizer.add_acl(
        number(depth), acl("a" * 7, pattern_type=PatternType.PREFIXED, permission_type=DENY, host="10.0.0.1")
    )
    assert not allows(authorizer, "a" * depth)
    assert allows(authorizer, "a" * 6)


def test_caches_keep_their_limits() -> None:
    authorizer = ready(acl("", pattern_type=PatternType.PREFIXED, host="10.0.0.0/8"))
    session = authorizer.session(ALICE, "10.0.0.1")
    for index in range(SESSION_NAMES_MAX + 10):
        assert session.decide(READ, TOPIC, f"name-{index}").allowed
    assert session.decide(READ, TOPIC, "n" * (KEPT_NAME_CHARACTERS_MAX + 1)).allowed
    kept, *_ = session._views[TOPIC]
    assert 0 < len(kept) <= SESSION_NAMES_MAX
    assert max(len(name) for name in kept) <= KEPT_NAME_CHARACTERS_MAX
    for index in range(max(KEPT_SESSIONS_MAX, HOST_VIEWS_MAX) + 10):
        context = AuthorizableRequestContext(ALICE, f"10.{index // 250}.0.{index % 250}")
        assert authorizer.authorize(context, [Action(TOPIC, "x", READ)])[0].allowed
    assert len(authorizer._sessions) == KEPT_SESSIONS_MAX


def test_entries_of_a_newer_kafka_never_grant() -> None:
    unknown_pattern = AclBinding(
        ResourcePattern(TOPIC, "ord", PatternType.UNKNOWN),
        AccessControlEntry("User:alice", "*", READ, AclPermissionType.ALLOW),
    )
    unknown_permission = acl("denied", permission_type=AclPermissionType.UNKNOWN)
    authorizer = ready(
        unknown_pattern, unknown_permission, acl("denied", operation=AclOperation.ALL),
        acl("x", operation=AclOperation.UNKNOWN),
    )  # fmt: skip
    assert not allows(authorizer, "orders")
    assert not allows(authorizer, "ord")
    assert not allows(authorizer, "denied")
    assert not allows(authorizer, "x")


def test_a_type_with_a_colon_is_a_different_principal() -> None:
    authorizer = ready(acl("orders", principal="User:a:b"))
    assert allows(authorizer, "orders", KafkaPrincipal("User", "a:b"))
    assert not allows(authorizer, "orders", KafkaPrincipal("User:a", "b"))
