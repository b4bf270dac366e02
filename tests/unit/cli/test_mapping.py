"""Arguments of `acls add`, `remove` and `list` as ACL values; refusals as usage errors."""

from collections.abc import Callable
from typing import Any

import pytest

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntryFilter,
    AclOperation,
    AclPermissionType,
    AclValueError,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.cli.acls.arguments import (
    EntryArguments,
    ResourceArguments,
    bindings_to_add,
    filters_to_list,
    filters_to_remove,
    parse_operation,
)
from kustos.cli.failures import CommandError, ExitCode

ALICE = ["User:alice"]


def added(resources: dict[str, Any], entries: dict[str, Any]) -> set[tuple[str, ...]]:
    return {
        (
            binding.pattern.resource_type.name,
            binding.pattern.name,
            binding.pattern.pattern_type.name,
            binding.entry.principal,
            binding.entry.host,
            binding.entry.operation.name,
            binding.entry.permission_type.name,
        )
        for binding in bindings_to_add(ResourceArguments(**resources), EntryArguments(**entries))
    }


@pytest.mark.behaviour("B348")
def test_principals_hosts_and_operations_are_multiplied() -> None:
    made = added(
        {"topics": ["t", " u "]},
        {
            "allow_principals": [*ALICE, "Group:ops"],
            "allow_hosts": ["10.0.0.1", "10.0.0.2"],
            "operations": ["Read", "DescribeConfigs"],
        },
    )
    assert len(made) == 2 * 2 * 2 * 2
    assert ("TOPIC", "u", "LITERAL", "Group:ops", "10.0.0.2", "DESCRIBE_CONFIGS", "ALLOW") in made


@pytest.mark.behaviour("B348")
def test_without_host_and_operation_an_entry_is_for_all() -> None:
    assert added({"cluster": True}, {"deny_principals": ALICE}) == {
        ("CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "*", "ALL", "DENY")
    }


@pytest.mark.behaviour("B349")
def test_the_bundles_are_those_of_kafka() -> None:
    made = added(
        {"topics": ["t"], "groups": ["g"], "transactional_ids": ["x"]},
        {"allow_principals": ALICE, "producer": True, "consumer": True, "idempotent": True},
    )
    assert {(kind, operation) for kind, _, _, _, _, operation, _ in made} == {
        ("TOPIC", "WRITE"),
        ("TOPIC", "DESCRIBE"),
        ("TOPIC", "CREATE"),
        ("TOPIC", "READ"),
        ("TRANSACTIONAL_ID", "WRITE"),
        ("TRANSACTIONAL_ID", "DESCRIBE"),
        ("CLUSTER", "IDEMPOTENT_WRITE"),
        ("GROUP", "READ"),
    }


@pytest.mark.behaviour("B351")
@pytest.mark.parametrize(
    ("resources", "entries", "told"),
    [
        ({}, {"allow_principals": ALICE}, "at least one resource"),
        ({"topics": ["t"]}, {}, "the principal is missing"),
        ({"topics": ["t"]}, {"allow_hosts": ["h"]}, "`--allow-host` needs"),
        ({"topics": ["t"]}, {"allow_principals": ALICE, "deny_hosts": ["h"]}, "`--deny-host` needs"),
        ({"groups": ["g"]}, {"allow_principals": ALICE, "producer": True}, "give a `--topic`"),
        ({"topics": ["t"]}, {"allow_principals": ALICE, "consumer": True}, "a `--group`"),
        (
            {"topics": ["t"], "groups": ["g"], "cluster": True},
            {"allow_principals": ALICE, "consumer": True},
            "leave out `--cluster`",
        ),
        ({"topics": ["t"]}, {"allow_principals": ALICE, "idempotent": True}, "only for `--producer`"),
        (
            {"topics": ["t"]},
            {"allow_principals": ALICE, "producer": True, "operations": ["Read"]},
            "leave out `--operation`",
        ),
        ({"topics": ["t"]}, {"deny_principals": ALICE, "producer": True}, "only allow"),
        (
            {"groups": ["g"]},
            {"allow_principals": ALICE, "operations": ["Write"]},
            "does not apply to a GROUP",
        ),
        ({"topics": ["t"]}, {"allow_principals": ALICE, "operations": ["Fly"]}, "`Fly` is not an operation"),
        ({"topics": ["t"], "pattern_type": PatternType.MATCH}, {"allow_principals": ALICE}, "for list and"),
        ({"cluster": True, "pattern_type": PatternType.PREFIXED}, {"allow_principals": ALICE}, "resource"),
    ],
)
def test_what_means_nothing_is_refused(resources: dict[str, Any], entries: dict[str, Any], told: str) -> None:
    with pytest.raises(CommandError, match=told) as caught:
        added(resources, entries)
    assert caught.value.failure.exit_code is ExitCode.USAGE


def test_a_principal_without_a_type_is_refused() -> None:
    with pytest.raises(AclValueError, match="`alice`"):
        added({"topics": ["t"]}, {"allow_principals": ["alice"]})


@pytest.mark.behaviour("B350")
def test_removal_without_principal_is_the_whole_resource() -> None:
    resources = ResourceArguments(topics=["t"], pattern_type=PatternType.MATCH)
    (only,) = filters_to_remove(resources, EntryArguments())
    assert only.pattern_filter == ResourcePatternFilter(ResourceType.TOPIC, "t", PatternType.MATCH)
    assert only.entry_filter == AccessControlEntryFilter()


def test_removal_with_principal_is_exact() -> None:
    (only,) = filters_to_remove(
        ResourceArguments(groups=["g"]), EntryArguments(deny_principals=ALICE, operations=["read"])
    )
    assert only.entry_filter == AccessControlEntryFilter(
        "User:alice", "*", AclOperation.READ, AclPermissionType.DENY
    )


@pytest.mark.parametrize(
    "entries",
    [{"operations": ["Read"]}, {"allow_hosts": ["10.0.0.1"]}, {"deny_hosts": ["10.0.0.1"]}],
)
def test_removal_that_would_take_more_than_it_says_is_refused(entries: dict[str, Any]) -> None:
    with pytest.raises(CommandError):
        filters_to_remove(ResourceArguments(topics=["t"]), EntryArguments(**entries))


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_of_a_resource_is_refused(name: str) -> None:
    """As a MATCH it would take the ACLs on `*`."""
    resources = ResourceArguments(topics=["t", name], pattern_type=PatternType.MATCH)
    with pytest.raises(CommandError, match="empty"):
        filters_to_remove(resources, EntryArguments())
    with pytest.raises(CommandError, match="empty"):
        filters_to_list(resources)


def test_listing_without_resource_asks_for_everything() -> None:
    assert filters_to_list(ResourceArguments()) == [EVERY_BINDING]
    assert len(filters_to_list(ResourceArguments(topics=["t", "t"], cluster=True))) == 2


@pytest.mark.parametrize("write", [str.upper, str.lower, str, lambda text: text.replace("_", "-")])
def test_operations_are_read_in_every_spelling(write: Callable[[str], str]) -> None:
    for operation in AclOperation:
        if operation is not AclOperation.UNKNOWN:
            pascal = "".join(part.capitalize() for part in operation.name.split("_"))
            assert parse_operation(write(operation.name)) is operation
            assert parse_operation(write(pascal)) is operation
