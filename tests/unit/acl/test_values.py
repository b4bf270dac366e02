"""Values of access control: their names and codes, what they refuse, what filters find."""

import pytest

from kustos.acl import (
    ANONYMOUS,
    EVERY_BINDING,
    SUPPORTED_OPERATIONS,
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

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, ALLOW, DENY = AclOperation.READ, AclPermissionType.ALLOW, AclPermissionType.DENY
ENTRY = AccessControlEntry("User:alice", "10.0.0.1", READ, ALLOW)
ORDERS = AclBinding(ResourcePattern(TOPIC, "orders", LITERAL), ENTRY)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("READ", READ),
        ("read", READ),
        (" Read ", READ),
        ("describe-configs", AclOperation.DESCRIBE_CONFIGS),
        ("Describe_Configs", AclOperation.DESCRIBE_CONFIGS),
        ("DescribeConfigs", AclOperation.DESCRIBE_CONFIGS),
        ("", AclOperation.UNKNOWN),
        ("nothing", AclOperation.UNKNOWN),
    ],
)
def test_a_text_is_the_member_of_that_name_in_any_case(text: str, expected: AclOperation) -> None:
    assert AclOperation.from_text(text) is expected


def test_a_code_that_no_member_has_is_unknown() -> None:
    assert [AclOperation.from_code(code) for code in (3, 15, 16, -1)] == [
        *(READ, AclOperation.TWO_PHASE_COMMIT),
        *(AclOperation.UNKNOWN, AclOperation.UNKNOWN),
    ]
    assert ResourceType.from_code(99) is ResourceType.UNKNOWN
    assert PatternType.from_code(4) is PREFIXED
    assert AclPermissionType.from_code(2) is DENY


def test_members_are_written_as_kafka_writes_them() -> None:
    assert str(AclOperation.IDEMPOTENT_WRITE) == "IDEMPOTENT_WRITE"
    assert [kind.camel_case for kind in ResourceType] == [
        *("Unknown", "Any", "Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")
    ]
    assert [kind for kind in PatternType if kind.is_specific] == [LITERAL, PREFIXED]


def test_every_resource_type_has_operations() -> None:
    assert {kind for kind in ResourceType if kind > ResourceType.ANY} == set(SUPPORTED_OPERATIONS)


def test_a_principal_is_split_at_its_first_colon() -> None:
    principal = KafkaPrincipal.parse("User:CN=a:b")
    assert (principal.principal_type, principal.name) == ("User", "CN=a:b")
    assert str(principal) == "User:CN=a:b"
    assert KafkaPrincipal.parse(":") == KafkaPrincipal("", "")
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert not ANONYMOUS.token_authenticated
    assert KafkaPrincipal("User", "a", token_authenticated=True) == KafkaPrincipal("User", "a")


def test_a_principal_without_a_colon_is_refused_by_name() -> None:
    with pytest.raises(AclValueError) as raised:
        KafkaPrincipal.parse("alice")
    assert str(raised.value) == (
        "could not parse principal from `alice`, write it as `User:name` (no colon is present)"
    )


def test_what_is_only_for_filters_is_refused_by_name() -> None:
    with pytest.raises(AclValueError, match=r"^resource type `ANY` is only for filters$"):
        ResourcePattern(ResourceType.ANY, "a", LITERAL)
    for pattern_type in (PatternType.ANY, PatternType.MATCH):
        with pytest.raises(AclValueError, match=rf"^pattern type `{pattern_type}` is only for filters$"):
            ResourcePattern(TOPIC, "a", pattern_type)
    with pytest.raises(AclValueError, match=r"^operation `ANY` is only for filters$"):
        AccessControlEntry("User:a", "*", AclOperation.ANY, ALLOW)
    with pytest.raises(AclValueError, match=r"^permission type `ANY` is only for filters$"):
        AccessControlEntry("User:a", "*", READ, AclPermissionType.ANY)


def test_what_a_newer_kafka_may_have_written_is_held() -> None:
    pattern = ResourcePattern(ResourceType.UNKNOWN, "a", PatternType.UNKNOWN)
    entry = AccessControlEntry("User:a", "*", AclOperation.UNKNOWN, AclPermissionType.UNKNOWN)
    assert AclBinding(pattern, entry).pattern.resource_type is ResourceType.UNKNOWN
    assert ResourcePattern(TOPIC, "a").pattern_type is LITERAL


def test_the_audit_text_is_kafkas() -> None:
    assert ORDERS.audit_text() == (
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, "
        "host=10.0.0.1, operation=READ, permissionType=ALLOW]"
    )


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (ResourcePatternFilter(), {"orders", "ord", "*", "orders-2", "group"}),
        (ResourcePatternFilter(TOPIC), {"orders", "ord", "*", "orders-2"}),
        (ResourcePatternFilter(GROUP), {"group"}),
        (ResourcePatternFilter(ResourceType.CLUSTER), set()),
        (ResourcePatternFilter(name="orders"), {"orders"}),
        (ResourcePatternFilter(name="ord", pattern_type=LITERAL), set()),
        (ResourcePatternFilter(name="ord", pattern_type=PREFIXED), {"ord"}),
        (ResourcePatternFilter(name="ord", pattern_type=PatternType.ANY), {"ord"}),
        (ResourcePatternFilter(name="orders", pattern_type=PatternType.MATCH), {"orders", "ord", "*"}),
        (ResourcePatternFilter(name="or", pattern_type=PatternType.MATCH), {"*"}),
        (ResourcePatternFilter(name="*", pattern_type=PatternType.MATCH), {"*"}),
        (ResourcePatternFilter(GROUP, "group", PatternType.MATCH), {"group"}),
        (ResourcePatternFilter(name=None, pattern_type=PREFIXED), {"ord"}),
        (ResourcePatternFilter(pattern_type=PatternType.MATCH), {"orders", "ord", "*", "orders-2", "group"}),
        (ResourcePatternFilter(pattern_type=PatternType.UNKNOWN), set()),
    ],
)
def test_pattern_filters_find(asked: ResourcePatternFilter, expected: set[str]) -> None:
    patterns = [
        *(ResourcePattern(TOPIC, "orders", LITERAL), ResourcePattern(TOPIC, "ord", PREFIXED)),
        *(ResourcePattern(TOPIC, "*", LITERAL), ResourcePattern(TOPIC, "orders-2", LITERAL)),
        ResourcePattern(GROUP, "group", LITERAL),
    ]
    assert {pattern.name for pattern in patterns if asked.matches(pattern)} == expected


def test_a_pattern_of_no_known_type_matches_no_name() -> None:
    pattern = ResourcePattern(TOPIC, "ord", PatternType.UNKNOWN)
    assert not ResourcePatternFilter(name="orders", pattern_type=PatternType.MATCH).matches(pattern)
    assert ResourcePatternFilter().matches(pattern)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (AccessControlEntryFilter(), True),
        (AccessControlEntryFilter("User:alice", "10.0.0.1", READ, ALLOW), True),
        (AccessControlEntryFilter(principal="User:*"), False),
        (AccessControlEntryFilter(host="10.0.0.0/8"), False),
        (AccessControlEntryFilter(host="*"), False),
        (AccessControlEntryFilter(operation=AclOperation.ALL), False),
        (AccessControlEntryFilter(operation=AclOperation.WRITE), False),
        (AccessControlEntryFilter(permission_type=DENY), False),
    ],
)
def test_entry_filters_compare_texts_as_they_are(asked: AccessControlEntryFilter, expected: bool) -> None:
    assert asked.matches(ENTRY) is expected
    assert AclBindingFilter(entry_filter=asked).matches(ORDERS) is expected


def test_a_binding_filter_needs_both_halves() -> None:
    assert EVERY_BINDING.matches(ORDERS)
    assert not AclBindingFilter(ResourcePatternFilter(GROUP)).matches(ORDERS)
    assert not AclBindingFilter(
        ResourcePatternFilter(TOPIC), AccessControlEntryFilter(permission_type=DENY)
    ).matches(ORDERS)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (AclBindingFilter(), (False, False)),
        (AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN)), (True, False)),
        (AclBindingFilter(ResourcePatternFilter(pattern_type=PatternType.UNKNOWN)), (True, False)),
        (
            AclBindingFilter(entry_filter=AccessControlEntryFilter(operation=AclOperation.UNKNOWN)),
            (False, True),
        ),
        (
            AclBindingFilter(
                entry_filter=AccessControlEntryFilter(permission_type=AclPermissionType.UNKNOWN)
            ),
            (False, True),
        ),
    ],
)
def test_a_filter_with_an_unknown_code_says_so(asked: AclBindingFilter, expected: tuple[bool, bool]) -> None:
    assert (asked.pattern_filter.is_unknown, asked.entry_filter.is_unknown) == expected
    assert asked.is_unknown is any(expected)
