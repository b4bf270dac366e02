"""ACLs created, deleted and described on an image: Kafka's checks, texts, caps and filters."""

from uuid import UUID

import pytest

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.control import (
    MAX_RECORDS_PER_USER_OPERATION,
    AclCreated,
    AclsDeleted,
    ApiError,
    acls,
    codes_error,
    create_acls,
    delete_acls,
    describe_acls,
)
from kustos.metadata.features import CIDR_ACL_LEVEL, DEFAULT_LEVEL
from kustos.metadata.image import EMPTY_IMAGE, ImageBuilder, MetadataImage, acl_record, image_of
from kustos.metadata.records import FeatureLevelRecord, RemoveAccessControlEntryRecord
from kustos.runtime import SystemEntropy
from kustos.wire import ErrorCode

ENTROPY = SystemEntropy()
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED, MATCH = PatternType.LITERAL, PatternType.PREFIXED, PatternType.MATCH
READ, ALLOW, DENY = AclOperation.READ, AclPermissionType.ALLOW, AclPermissionType.DENY
CAP = 10_000


def acl(
    name: str = "t",
    *,
    kind: ResourceType = TOPIC,
    pattern: PatternType = LITERAL,
    principal: str = "User:a",
    host: str = "*",
    operation: AclOperation = READ,
    permission: AclPermissionType = ALLOW,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(kind, name, pattern), AccessControlEntry(principal, host, operation, permission)
    )


def image_at(level: int, *bindings: AclBinding) -> MetadataImage:
    acls = (acl_record(UUID(int=number), binding) for number, binding in enumerate(bindings, 1))
    return image_of([FeatureLevelRecord("metadata.version", level), *acls])


def refusal(binding: AclBinding, level: int = DEFAULT_LEVEL) -> ApiError | None:
    outcome = create_acls(image_at(level), [binding], ENTROPY)
    (result,) = outcome.results
    assert (result.error is None) == bool(outcome.records)
    return result.error


def invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)


NO_COLON = "(no colon is present separating the principal type from the principal name)"
REFUSED = [
    (
        acl("other", kind=CLUSTER),
        "The only valid name for the CLUSTER resource is kafka-cluster",
    ),
    (acl("", kind=CLUSTER), "The only valid name for the CLUSTER resource is kafka-cluster"),
    (acl(""), "Invalid empty resource name"),
    (acl(kind=ResourceType.UNKNOWN), "Invalid resourceType UNKNOWN"),
    (acl(pattern=PatternType.UNKNOWN), "Invalid patternType UNKNOWN"),
    (acl(operation=AclOperation.UNKNOWN), "Invalid operation UNKNOWN"),
    (acl(permission=AclPermissionType.UNKNOWN), "Invalid permissionType UNKNOWN"),
    (acl(principal="alice"), f"Could not parse principal from `alice` {NO_COLON}"),
    (acl(principal=""), f"Could not parse principal from `` {NO_COLON}"),
    (acl(host=""), "Host pattern cannot be null or empty"),
    # of several faults the first in Kafka's order is told
    (acl("", kind=ResourceType.UNKNOWN), "Invalid empty resource name"),
    (acl(kind=ResourceType.UNKNOWN, operation=AclOperation.UNKNOWN), "Invalid resourceType UNKNOWN"),
    (acl(permission=AclPermissionType.UNKNOWN, principal="x"), "Invalid permissionType UNKNOWN"),
    (acl(principal="x", host=""), f"Could not parse principal from `x` {NO_COLON}"),
    # what no record can hold
    (acl("é" * 20_000), "a text has 40000 bytes of UTF-8, a record holds at most 32767"),
    (acl(principal="User:" + "\ud800"), "a text holds half of a surrogate pair, which UTF-8 cannot express"),
]


@pytest.mark.behaviour("B042", "B043", "B044", "B053")
@pytest.mark.parametrize(("binding", "message"), REFUSED)
def test_an_invalid_acl_is_refused(binding: AclBinding, message: str) -> None:
    assert refusal(binding) == invalid(message)


@pytest.mark.behaviour("B042")
@pytest.mark.parametrize(
    ("kind", "pattern", "operation", "permission", "message"),
    [
        (ResourceType.ANY, LITERAL, READ, ALLOW, "Invalid resourceType ANY"),
        (TOPIC, PatternType.ANY, READ, ALLOW, "Invalid patternType ANY"),
        (TOPIC, MATCH, READ, ALLOW, "Invalid patternType MATCH"),
        (TOPIC, LITERAL, AclOperation.ANY, ALLOW, "Invalid operation ANY"),
        (TOPIC, LITERAL, READ, AclPermissionType.ANY, "Invalid permissionType ANY"),
    ],
)
def test_codes_of_filters_are_refused(
    kind: ResourceType,
    pattern: PatternType,
    operation: AclOperation,
    permission: AclPermissionType,
    message: str,
) -> None:
    assert codes_error(kind, pattern, operation, permission) == invalid(message)


ACCEPTED = [
    acl(principal=":x"),
    acl(principal="User:"),
    acl(principal=":"),
    acl(host="no address"),
    acl(host="10.0.0.300"),
    acl("*"),
    acl("p", pattern=PREFIXED),
    acl("kafka-cluster", kind=CLUSTER),
    acl(operation=AclOperation.CREATE_TOKENS),  # means nothing on a topic, yet Kafka takes it
    acl("é" * 16_383),
]


@pytest.mark.behaviour("B044")
@pytest.mark.parametrize("binding", ACCEPTED)
def test_what_kafka_takes_is_taken(binding: AclBinding) -> None:
    assert refusal(binding) is None


@pytest.mark.behaviour("B053")
@pytest.mark.parametrize("host", ["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/32", "10.0.0.0/33", "/", "a/b"])
def test_before_4_4_no_host_has_a_slash(host: str) -> None:
    message = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    for level in (DEFAULT_LEVEL, CIDR_ACL_LEVEL - 1):
        assert refusal(acl(host=host), level) == ApiError(ErrorCode.unsupported_version, message)


@pytest.mark.behaviour("B053")
@pytest.mark.parametrize(
    "host", ["10.0.0.0/8", "10.1.2.3/8", "0.0.0.0/0", "10.0.0.1/32", "::/0", "2001:db8::/128"]
)
@pytest.mark.parametrize("level", [CIDR_ACL_LEVEL, CIDR_ACL_LEVEL + 1])
def test_from_4_4_on_a_host_can_be_a_range(host: str, level: int) -> None:
    assert refusal(acl(host=host), level) is None


@pytest.mark.behaviour("B053")
@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("10.0.0.0/33", "Value [33] not in range [0,32]"),
        ("10.0.0.256/8", "Value [256] not in range [0,255]"),
        ("10.0.256.0/8", "Value [256] not in range [0,255]"),
        ("10.256.0.0/8", "Value [256] not in range [0,255]"),
        ("256.0.0.0/8", "Value [256] not in range [0,255]"),
        ("999.256.0.0/99", "Value [999] not in range [0,255]"),
        ("10.0.0.0/", "Could not parse [10.0.0.0/]"),
        ("10.0.0.0/-1", "Could not parse [10.0.0.0/-1]"),
        ("10.0.0/8", "Could not parse [10.0.0/8]"),
        ("a/b", "Could not parse [a/b]"),
        ("/", "Could not parse [/]"),
        ("*/8", "Could not parse [*/8]"),
        ("10.0.0.0/8/8", "Could not parse [10.0.0.0/8/8]"),
        ("::/129", "Could not parse [::/129] - prefix length must be between 0 and 128"),
        ("::/-1", "Could not parse [::/-1] - prefix length must be between 0 and 128"),
        ("::/", "Could not parse [::/] - invalid prefix length"),
        ("::/x", "Could not parse [::/x] - invalid prefix length"),
        ("::/1_0", "Could not parse [::/1_0] - invalid prefix length"),
        ("::/ 8", "Could not parse [::/ 8] - invalid prefix length"),
        ("::/9999999999", "Could not parse [::/9999999999] - invalid prefix length"),
        ("::g/8", "Could not parse [::g]"),
        ("::ffff:10.0.0.1/8", "Could not parse [::ffff:10.0.0.1] - not an IPv6 address"),
    ],
)
def test_a_malformed_range_is_refused(host: str, reason: str) -> None:
    assert refusal(acl(host=host), CIDR_ACL_LEVEL) == invalid(f"Invalid CIDR notation '{host}': {reason}")


@pytest.mark.behaviour("B048", "B049", "B052")
def test_each_creation_has_its_own_result_in_order() -> None:
    old, new, other = acl("old"), acl("new"), acl("other", permission=DENY)
    asked = [old, acl(""), new, new, acl(principal="x"), other, old]
    outcome = create_acls(image_at(DEFAULT_LEVEL, old), asked, ENTROPY)
    fine = AclCreated()
    assert [result == fine for result in outcome.results] == [True, False, True, True, False, True, True]
    assert outcome.results[1].error == invalid("Invalid empty resource name")
    made = image_of(outcome.records).acls
    assert sorted(made.values(), key=repr) == sorted([new, other], key=repr)


def test_nothing_asked_gives_nothing() -> None:
    for outcome in (create_acls(EMPTY_IMAGE, [], ENTROPY), delete_acls(EMPTY_IMAGE, [])):
        assert (outcome.records, outcome.results) == ((), ())


class Repeating:
    """Gives each id twice before the next one."""

    def __init__(self) -> None:
        self.calls = 0

    def token_bytes(self, size: int) -> bytes:
        return bytes(size)

    def uuid(self) -> UUID:
        self.calls += 1
        return UUID(int=(self.calls + 1) // 2)


def test_an_id_is_never_given_twice() -> None:
    image = image_at(DEFAULT_LEVEL, acl("old"))  # has the id 1
    outcome = create_acls(image, [acl("a"), acl("b"), acl("c")], Repeating())
    assert set(image_of(outcome.records).acls) == {UUID(int=2), UUID(int=3), UUID(int=4)}


MANY = [acl(f"t{number}") for number in range(CAP + 1)]


@pytest.mark.behaviour("B049")
def test_one_request_creates_10000_acls_and_no_more() -> None:
    assert MAX_RECORDS_PER_USER_OPERATION == CAP
    # what needs no record does not count
    fits = [*MANY[:CAP], MANY[0], acl("")]
    outcome = create_acls(image_at(DEFAULT_LEVEL), fits, ENTROPY)
    assert len(outcome.records) == CAP
    assert [result.error is None for result in outcome.results] == [True] * (CAP + 1) + [False]
    outcome = create_acls(image_at(DEFAULT_LEVEL), [acl(""), *MANY], ENTROPY)
    refused = ApiError(ErrorCode.policy_violation, "Unable to perform excessively large batch operation.")
    assert outcome.records == ()
    assert outcome.results == (AclCreated(refused),) * (CAP + 2)


@pytest.mark.behaviour("B051")
def test_one_request_deletes_10000_acls_and_no_more() -> None:
    every = AclBindingFilter()
    some = AclBindingFilter(ResourcePatternFilter(name="t0"))
    full, over = image_at(DEFAULT_LEVEL, *MANY[:CAP]), image_at(DEFAULT_LEVEL, *MANY)
    outcome = delete_acls(full, [some, every])
    assert len(outcome.records) == CAP
    assert [len(result.deleted) for result in outcome.results] == [1, CAP]
    refused = AclsDeleted(error=invalid("Cannot remove more than 10000 acls in a single delete operation."))
    for image, asked in ((over, [some, every]), (over, [every]), (full, [every, some])):
        outcome = delete_acls(image, asked)
        assert outcome.records == ()
        assert outcome.results == (refused,) * len(asked)


def test_the_cap_of_removals_counts_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MAX_RECORDS_PER_USER_OPERATION", 3)
    image, every = image_at(DEFAULT_LEVEL, *MANY[:3]), AclBindingFilter()
    assert len(delete_acls(image, [every]).records) == 3
    refused = AclsDeleted(error=invalid("Cannot remove more than 3 acls in a single delete operation."))
    again = delete_acls(image, [every, AclBindingFilter(ResourcePatternFilter(name="t0"))])
    assert (again.records, again.results) == ((), (refused, refused))


STORED = {
    "a": acl("abc"),
    "b": acl("*"),
    "c": acl("ab", pattern=PREFIXED),
    "d": acl("*", pattern=PREFIXED),
    "e": acl("abc", kind=GROUP, principal="User:*", host="10.0.0.1"),
    "f": acl("abc", permission=DENY, principal="User:b", operation=AclOperation.WRITE),
    "g": acl("", kind=GROUP, pattern=PREFIXED),  # cannot be made now, but an old log may hold it
}
IMAGE = image_at(DEFAULT_LEVEL, *STORED.values())
ANY_PATTERN = PatternType.ANY
FILTERS = [
    (ResourcePatternFilter(), AccessControlEntryFilter(), "abcdefg"),
    (ResourcePatternFilter(TOPIC), AccessControlEntryFilter(), "abcdf"),
    (ResourcePatternFilter(pattern_type=LITERAL), AccessControlEntryFilter(), "abef"),
    (ResourcePatternFilter(pattern_type=PREFIXED), AccessControlEntryFilter(), "cdg"),
    (ResourcePatternFilter(pattern_type=MATCH), AccessControlEntryFilter(), "abcdefg"),
    (ResourcePatternFilter(TOPIC, "abc", LITERAL), AccessControlEntryFilter(), "af"),
    (ResourcePatternFilter(TOPIC, "ab", PREFIXED), AccessControlEntryFilter(), "c"),
    (ResourcePatternFilter(TOPIC, "abc", PREFIXED), AccessControlEntryFilter(), ""),
    (ResourcePatternFilter(TOPIC, "abc", ANY_PATTERN), AccessControlEntryFilter(), "af"),
    (ResourcePatternFilter(TOPIC, "abc", MATCH), AccessControlEntryFilter(), "abcf"),
    (ResourcePatternFilter(TOPIC, "ab", MATCH), AccessControlEntryFilter(), "bc"),
    (ResourcePatternFilter(TOPIC, "x", MATCH), AccessControlEntryFilter(), "b"),
    (ResourcePatternFilter(TOPIC, "*", MATCH), AccessControlEntryFilter(), "bd"),
    (ResourcePatternFilter(TOPIC, "*", LITERAL), AccessControlEntryFilter(), "b"),
    (ResourcePatternFilter(name="abc", pattern_type=MATCH), AccessControlEntryFilter(), "abcefg"),
    (ResourcePatternFilter(name=""), AccessControlEntryFilter(), "g"),
    (ResourcePatternFilter(CLUSTER), AccessControlEntryFilter(), ""),
    (ResourcePatternFilter(), AccessControlEntryFilter(principal="User:b"), "f"),
    (ResourcePatternFilter(), AccessControlEntryFilter(principal="User:*"), "e"),
    (ResourcePatternFilter(), AccessControlEntryFilter(host="*"), "abcdfg"),
    (ResourcePatternFilter(), AccessControlEntryFilter(host="10.0.0.1"), "e"),
    (ResourcePatternFilter(), AccessControlEntryFilter(host="10.0.0.0/8"), ""),
    (ResourcePatternFilter(), AccessControlEntryFilter(operation=READ), "abcdeg"),
    (ResourcePatternFilter(), AccessControlEntryFilter(operation=AclOperation.ALL), ""),
    (ResourcePatternFilter(), AccessControlEntryFilter(permission_type=DENY), "f"),
    (ResourcePatternFilter(TOPIC, "abc", MATCH), AccessControlEntryFilter("User:a", "*", READ, ALLOW), "abc"),
]


@pytest.mark.behaviour("B047")
@pytest.mark.parametrize(("patterns", "entries", "expected"), FILTERS)
def test_a_filter_describes_and_deletes_what_it_matches(
    patterns: ResourcePatternFilter, entries: AccessControlEntryFilter, expected: str
) -> None:
    asked = AclBindingFilter(patterns, entries)
    wanted = {STORED[letter] for letter in expected}
    described = describe_acls(IMAGE, asked)
    assert all(described.values())
    flat = [AclBinding(pattern, entry) for pattern, found in described.items() for entry in found]
    assert len(flat) == len(wanted)
    assert set(flat) == wanted
    outcome = delete_acls(IMAGE, [asked])
    (result,) = outcome.results
    assert result.error is None
    assert len(result.deleted) == len(wanted)
    assert set(result.deleted) == wanted
    builder = ImageBuilder(IMAGE)
    builder.replay_all(outcome.records)
    assert set(builder.build(0, 0).acls.values()) == set(STORED.values()) - wanted


@pytest.mark.behaviour("B050")
def test_an_acl_that_two_filters_match_is_removed_once_and_shown_twice() -> None:
    asked = [
        AclBindingFilter(ResourcePatternFilter(TOPIC, "abc", LITERAL)),
        AclBindingFilter(ResourcePatternFilter(CLUSTER)),
        AclBindingFilter(ResourcePatternFilter(TOPIC, "abc", MATCH)),
        AclBindingFilter(ResourcePatternFilter(TOPIC, "abc", LITERAL)),
    ]
    outcome = delete_acls(IMAGE, asked)
    ids = [record.id for record in outcome.records if isinstance(record, RemoveAccessControlEntryRecord)]
    assert len(ids) == len(outcome.records)
    assert sorted(ids) == sorted(IMAGE.acl_ids[STORED[letter]] for letter in "abcf")
    shown = [set(result.deleted) for result in outcome.results]
    assert shown == [{STORED[letter] for letter in letters} for letters in ("af", "", "abcf", "af")]


@pytest.mark.behaviour("B045")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (AclBindingFilter(ResourcePatternFilter(ResourceType.UNKNOWN)), "Unknown patternFilter."),
        (
            AclBindingFilter(ResourcePatternFilter(pattern_type=PatternType.UNKNOWN)),
            "Unknown patternFilter.",
        ),
        (
            AclBindingFilter(entry_filter=AccessControlEntryFilter(operation=AclOperation.UNKNOWN)),
            "Unknown entryFilter.",
        ),
        (
            AclBindingFilter(
                entry_filter=AccessControlEntryFilter(permission_type=AclPermissionType.UNKNOWN)
            ),
            "Unknown entryFilter.",
        ),
        (
            AclBindingFilter(
                ResourcePatternFilter(ResourceType.UNKNOWN),
                AccessControlEntryFilter(operation=AclOperation.UNKNOWN),
            ),
            "Unknown patternFilter.",
        ),
    ],
)
def test_an_unknown_filter_fails_alone(asked: AclBindingFilter, message: str) -> None:
    good = AclBindingFilter(ResourcePatternFilter(TOPIC, "ab", PREFIXED))
    outcome = delete_acls(IMAGE, [asked, good])
    assert outcome.results == (AclsDeleted(error=invalid(message)), AclsDeleted((STORED["c"],)))
    assert len(outcome.records) == 1


def test_describe_groups_by_pattern() -> None:
    described = describe_acls(IMAGE)
    assert set(described) == {binding.pattern for binding in STORED.values()}
    assert set(described[STORED["a"].pattern]) == {STORED["a"].entry, STORED["f"].entry}
    assert describe_acls(EMPTY_IMAGE) == {}
