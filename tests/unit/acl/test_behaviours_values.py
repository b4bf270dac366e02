"""What Kafka's own tests hold of codes, patterns, filters and ACLs as values."""

from dataclasses import fields, replace
from itertools import product
from typing import Any
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
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.image import acl_record, image_of
from testkit.acls.one_line import acl

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED, MATCH, ANY = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH, PatternType.ANY
CODES: dict[type[AclOperation | AclPermissionType | ResourceType | PatternType], str] = {
    AclOperation: "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS "
    "ALTER_CONFIGS IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT",
    AclPermissionType: "UNKNOWN ANY DENY ALLOW",
    ResourceType: "UNKNOWN ANY TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER",
    PatternType: "UNKNOWN ANY MATCH LITERAL PREFIXED",
}
WHOLE = acl("ALLOW READ User:alice TOPIC orders from 10.0.0.1")


@pytest.mark.behaviour("B339")
@pytest.mark.parametrize("kind", CODES)
def test_codes_are_stable_and_complete_and_others_are_unknown(kind: Any) -> None:
    names = CODES[kind].split()
    assert [member.name for member in kind] == names
    for code, name in enumerate(names):
        assert kind.from_code(code) is kind[name]
        assert kind[name].value == code
        assert kind.from_text(name.lower()) is kind[name]
    for code in (-1, len(names), 120):
        assert kind.from_code(code) is kind.UNKNOWN
    assert kind.from_text("something else") is kind.UNKNOWN


@pytest.mark.behaviour("B034")
@pytest.mark.parametrize(
    ("half", "changed"),
    [
        ("pattern", {"resource_type": GROUP}),
        ("pattern", {"name": "Orders"}),
        ("pattern", {"pattern_type": PREFIXED}),
        ("entry", {"principal": "User:bob"}),
        ("entry", {"host": "*"}),
        ("entry", {"operation": AclOperation.WRITE}),
        ("entry", {"permission_type": AclPermissionType.DENY}),
    ],
)
def test_acls_are_the_same_if_all_seven_fields_are(half: str, changed: dict[str, Any]) -> None:
    same = AclBinding(replace(WHOLE.pattern), replace(WHOLE.entry))
    assert (same, hash(same)) == (WHOLE, hash(WHOLE))
    assert same is not WHOLE
    other = replace(WHOLE, **{half: replace(getattr(WHOLE, half), **changed)})
    assert other != WHOLE
    assert len({WHOLE, same, other}) == 2
    # in the image too: the one is no duplicate of the other
    image = image_of([acl_record(UUID(int=1), WHOLE), acl_record(UUID(int=2), other)])
    assert set(image.acls.values()) == {WHOLE, other}


@pytest.mark.behaviour("B340")
def test_null_and_any_match_everything() -> None:
    texts = (
        "DENY ALL User:* GROUP prefix g",
        "ALLOW READ User:alice TOPIC *",
        "ALLOW ALTER Group:x CLUSTER kafka-cluster",
    )
    for binding in (WHOLE, *map(acl, texts)):
        assert AclBindingFilter().matches(binding)
        assert ResourcePatternFilter(ResourceType.ANY, None, MATCH).matches(binding.pattern)
    exact = exactly(WHOLE)
    assert exact.matches(WHOLE)
    assert not any(exact.matches(acl(text)) for text in texts)


@pytest.mark.behaviour("B340")
@pytest.mark.parametrize(
    ("half", "wide", "different"),
    [
        ("pattern_filter", {"resource_type": ResourceType.ANY}, {"resource_type": GROUP}),
        ("pattern_filter", {"name": None}, {"name": "order"}),
        ("pattern_filter", {"pattern_type": ANY}, {"pattern_type": PREFIXED}),
        ("entry_filter", {"principal": None}, {"principal": "User:*"}),
        ("entry_filter", {"host": None}, {"host": "*"}),
        ("entry_filter", {"operation": AclOperation.ANY}, {"operation": AclOperation.ALL}),
        (
            "entry_filter",
            {"permission_type": AclPermissionType.ANY},
            {"permission_type": AclPermissionType.DENY},
        ),
    ],
)
def test_each_part_of_a_filter_asks_for_itself(
    half: str, wide: dict[str, Any], different: dict[str, Any]
) -> None:
    exact = exactly(WHOLE)
    widened = replace(exact, **{half: replace(getattr(exact, half), **wide)})
    assert widened.matches(WHOLE)
    assert exact.matches_at_most_one
    assert not widened.matches_at_most_one
    assert not replace(exact, **{half: replace(getattr(exact, half), **different)}).matches(WHOLE)


PATTERNS = [
    ResourcePattern(kind, name, pattern_type)
    for kind, name, pattern_type in product(
        (TOPIC, GROUP), ("*", "o", "orders", "Orders", "p"), (LITERAL, PREFIXED)
    )
]


def matched(asked: ResourcePatternFilter) -> set[tuple[str, PatternType]]:
    return {(each.name, each.pattern_type) for each in PATTERNS if asked.matches(each)}


@pytest.mark.behaviour("B341")
def test_match_finds_the_name_every_resource_and_prefixes_of_the_name() -> None:
    governing = {("orders", LITERAL), ("*", LITERAL), ("o", PREFIXED), ("orders", PREFIXED)}
    assert matched(ResourcePatternFilter(TOPIC, "orders", MATCH)) == governing
    assert matched(ResourcePatternFilter(TOPIC, "order", MATCH)) == {("*", LITERAL), ("o", PREFIXED)}
    assert matched(ResourcePatternFilter(TOPIC, "*", MATCH)) == {("*", LITERAL), ("*", PREFIXED)}
    assert not ResourcePatternFilter(GROUP, "orders", MATCH).matches(PATTERNS[0])


@pytest.mark.behaviour("B342")
def test_any_finds_the_name_itself_under_each_pattern() -> None:
    assert matched(ResourcePatternFilter(TOPIC, "o", ANY)) == {("o", LITERAL), ("o", PREFIXED)}
    assert matched(ResourcePatternFilter(TOPIC, "*", ANY)) == {("*", LITERAL), ("*", PREFIXED)}
    assert matched(ResourcePatternFilter(TOPIC, "ord", ANY)) == set()


@pytest.mark.behaviour("B343")
@pytest.mark.parametrize("pattern_type", [LITERAL, PREFIXED, MATCH, ANY])
def test_names_differ_by_case(pattern_type: PatternType) -> None:
    found = {name for name, _ in matched(ResourcePatternFilter(TOPIC, "Orders", pattern_type))}
    assert "Orders" in found
    assert not found & {"orders", "o"}


@pytest.mark.behaviour("B344")
def test_prefixes_do_not_match_by_halves() -> None:
    prefix = ResourcePattern(TOPIC, "orders", PREFIXED)
    for name, pattern_type in product(("order", "orders-1", "rders", "ordersx"), (PREFIXED, ANY)):
        assert not ResourcePatternFilter(TOPIC, name, pattern_type).matches(prefix)
    assert not ResourcePatternFilter(TOPIC, "order", MATCH).matches(prefix)
    assert ResourcePatternFilter(TOPIC, "orders-1", MATCH).matches(prefix)
    assert ResourcePatternFilter(TOPIC, "orders", PREFIXED).matches(prefix)


@pytest.mark.behaviour("B345")
@pytest.mark.parametrize("pattern_type", [ANY, MATCH])
def test_no_acl_has_a_pattern_of_filters(pattern_type: PatternType) -> None:
    with pytest.raises(AclValueError, match=f"`{pattern_type}` is only for filters"):
        ResourcePattern(TOPIC, "orders", pattern_type)


def test_no_acl_has_another_field_of_filters() -> None:
    with pytest.raises(AclValueError):
        ResourcePattern(ResourceType.ANY, "orders")
    for changed in ({"operation": AclOperation.ANY}, {"permission_type": AclPermissionType.ANY}):
        with pytest.raises(AclValueError):
            replace(WHOLE.entry, **changed)
    assert len(fields(AccessControlEntry)) + len(fields(ResourcePattern)) == 7


@pytest.mark.parametrize(
    "asked",
    [
        AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN)),
        AclBindingFilter(ResourcePatternFilter(pattern_type=PatternType.UNKNOWN)),
        AclBindingFilter(entry_filter=AccessControlEntryFilter(operation=AclOperation.UNKNOWN)),
        AclBindingFilter(entry_filter=AccessControlEntryFilter(permission_type=AclPermissionType.UNKNOWN)),
    ],
)
def test_a_filter_with_an_unknown_part_is_known_as_such(asked: AclBindingFilter) -> None:
    assert asked.is_unknown
    assert not asked.matches_at_most_one
    assert not AclBindingFilter().is_unknown
    assert not exactly(WHOLE).is_unknown


def exactly(binding: AclBinding) -> AclBindingFilter:
    pattern, entry = binding.pattern, binding.entry
    return AclBindingFilter(
        ResourcePatternFilter(pattern.resource_type, pattern.name, pattern.pattern_type),
        AccessControlEntryFilter(entry.principal, entry.host, entry.operation, entry.permission_type),
    )
