"""Dynamic settings altered: which changes become records, and with which words the others are refused."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.authorizer import parse_super_users
from kustos.metadata.control import (
    ConfigAlteration,
    ConfigAlterResult,
    ConfigChange,
    ConfigOperation,
    ConfigRules,
    ResourceChanges,
    alter_configs,
    dynamic_values,
    java_int,
)
from kustos.metadata.image import image_of
from kustos.metadata.records import ConfigRecord, MetadataRecord
from kustos.wire import ErrorCode

BROKER, TOPIC, LOGGER, METRICS, GROUP = 4, 2, 8, 16, 32
SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
RULES = ConfigRules(1, {"super.users": parse_super_users}, frozenset({"node.id", "listeners"}))


def changed(
    *resources: ResourceChanges, validate_only: bool = False
) -> tuple[tuple[MetadataRecord, ...], tuple[ConfigAlterResult, ...]]:
    outcome = alter_configs(ConfigAlteration(resources, RULES, validate_only))
    return outcome.records, outcome.results


def of(
    name: str, *changes: tuple[str, ConfigOperation, str | None], resource_type: int = BROKER
) -> ResourceChanges:
    return ResourceChanges(resource_type, name, tuple(ConfigChange(*each) for each in changes))


@pytest.mark.parametrize("resource", ["", "1", "+1", "01"])
def test_a_setting_is_made_for_this_node_or_for_all(resource: str) -> None:
    records, results = changed(of(resource, ("super.users", SET, "User:a")))
    assert records == (ConfigRecord(BROKER, resource and "1", "super.users", "User:a"),)
    assert results == (ConfigAlterResult(BROKER, resource),)


def test_a_setting_is_taken_away() -> None:
    records, _ = changed(of("1", ("super.users", DELETE, None), ("whatever", DELETE, "ignored")))
    assert records == (
        ConfigRecord(BROKER, "1", "super.users", None),
        ConfigRecord(BROKER, "1", "whatever", None),
    )


def test_setting_null_takes_away() -> None:
    records, _ = changed(of("1", ("super.users", SET, None)))
    assert records == (ConfigRecord(BROKER, "1", "super.users", None),)


def test_of_two_changes_of_one_setting_the_last_counts() -> None:
    records, _ = changed(of("", ("super.users", SET, "User:a"), ("super.users", SET, "User:b")))
    assert records == (ConfigRecord(BROKER, "", "super.users", "User:b"),)


def test_who_only_validates_changes_nothing() -> None:
    records, results = changed(of("", ("super.users", SET, "User:a")), validate_only=True)
    assert records == ()
    assert results == (ConfigAlterResult(BROKER, ""),)


@pytest.mark.parametrize(
    ("resource", "code", "message"),
    [
        (of("x"), ErrorCode.invalid_request, "Unable to parse broker name as a base 10 number."),
        (of("-1"), ErrorCode.invalid_request, "Invalid negative broker ID."),
        (of("2"), ErrorCode.broker_id_not_registered, "No node with id 2 found."),
        (of("9" * 20), ErrorCode.invalid_request, "Unable to parse broker name as a base 10 number."),
        (
            of("", resource_type=TOPIC),
            ErrorCode.invalid_request,
            "Default topic resources are not allowed.",
        ),
        (
            of("orders", resource_type=TOPIC),
            ErrorCode.unknown_topic_or_partition,
            "The topic 'orders' does not exist.",
        ),
        (of("x", resource_type=METRICS), ErrorCode.invalid_request, "Unknown resource type CLIENT_METRICS"),
        (of("x", resource_type=GROUP), ErrorCode.invalid_request, "Unknown resource type GROUP"),
        (of("1", resource_type=LOGGER), ErrorCode.invalid_request, "Unknown resource type BROKER_LOGGER"),
        (of("x", resource_type=77), ErrorCode.invalid_request, "Unknown resource type UNKNOWN"),
        (
            of("1", ("super.users", ConfigOperation.APPEND, "User:a")),
            ErrorCode.invalid_config,
            "Can't APPEND to key super.users because its type is not LIST.",
        ),
        (
            of("1", ("super.users", ConfigOperation.SUBTRACT, "User:a")),
            ErrorCode.invalid_config,
            "Can't SUBTRACT to key super.users because its type is not LIST.",
        ),
        (
            of("1", ("node.id", SET, "2"), ("listeners", SET, "X://:1")),
            ErrorCode.invalid_request,
            "Cannot update these configs dynamically: [listeners, node.id]",
        ),
        (of("", ("super.user", SET, "User:a")), ErrorCode.invalid_config, "Unknown config name: super.user"),
        (
            of("", ("super.users", SET, "User:" + "a" * 32763)),
            ErrorCode.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value "
            "size of 32767 bytes.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_kafka(
    resource: ResourceChanges, code: ErrorCode, message: str
) -> None:
    records, (result,) = changed(resource)
    assert records == ()
    assert result.error is not None
    assert (result.error.code, result.error.message) == (code, message)


@pytest.mark.parametrize("value", ["nobody", "User:*", "User:a;b"])
def test_super_users_that_are_none_are_refused(value: str) -> None:
    records, (result,) = changed(of("", ("super.users", SET, value)))
    assert records == ()
    assert result.error is not None
    assert result.error.code is ErrorCode.invalid_request
    assert (result.error.message or "").startswith("Invalid value for configuration super.users: ")


def test_a_resource_changes_as_a_whole_and_the_others_proceed() -> None:
    records, results = changed(
        of("1", ("super.users", SET, "User:a"), ("strange", SET, "x")), of("", ("super.users", SET, "User:b"))
    )
    assert records == (ConfigRecord(BROKER, "", "super.users", "User:b"),)
    assert [result.error is None for result in results] == [False, True]


def test_more_records_than_one_request_may_make_fail_together() -> None:
    names = [(f"gone-{number}", DELETE, None) for number in range(10_001)]
    records, results = changed(of("1", *names), of("", ("super.users", SET, "User:b")))
    assert records == ()
    assert {result.error.code for result in results if result.error} == {ErrorCode.policy_violation}
    assert len(results) == 2


def test_the_own_value_goes_before_that_of_all() -> None:
    image = image_of(
        [
            ConfigRecord(BROKER, "", "super.users", "User:all"),
            ConfigRecord(BROKER, "", "other", "x"),
            ConfigRecord(BROKER, "1", "super.users", "User:one"),
            ConfigRecord(TOPIC, "1", "super.users", "User:topic"),
        ]
    )
    assert dynamic_values(image, 1, ["super.users"]) == {"super.users": "User:one"}
    assert dynamic_values(image, 2, ["super.users", "other"]) == {"super.users": "User:all", "other": "x"}


def test_no_value_is_in_the_text_of_a_change() -> None:
    asked = ConfigAlteration((of("1", ("ssl.key.password", SET, "hunter2")),), RULES)
    assert "hunter2" not in repr(asked)


@given(st.integers(-(2**33), 2**33))
def test_a_number_is_read_as_java_reads_it(number: int) -> None:
    fits = -(2**31) <= number < 2**31
    assert java_int(str(number)) == (number if fits else None)


@pytest.mark.parametrize("text", ["", " 1", "1 ", "1_0", "--1", "+", "0x1", "1.0", "٣"])
def test_what_java_does_not_read_is_no_number(text: str) -> None:
    assert java_int(text) is None


@pytest.mark.parametrize("name", ["0", "-0"])
def test_a_node_may_have_the_number_zero(name: str) -> None:
    rules = ConfigRules(0, RULES.dynamic, RULES.fixed)
    asked = ConfigAlteration((of(name, ("super.users", SET, "User:a")),), rules)
    assert alter_configs(asked).records == (ConfigRecord(BROKER, "0", "super.users", "User:a"),)


@pytest.mark.parametrize(("zeros", "is_read"), [(0, True), (63, True), (64, False)])
def test_numbers_of_many_digits_are_not_read(zeros: int, is_read: bool) -> None:
    assert (java_int("0" * zeros + "7") == 7) is is_read


def test_settings_that_may_be_changed_are_not_fixed_by_having_no_value() -> None:
    records, results = changed(of("1", ("node.id", DELETE, None)))
    assert (len(records), results[0].error) == (1, None)


def test_settings_that_depend_on_each_other_are_checked_together() -> None:
    asked: list[tuple[str, dict[str, str | None]]] = []

    def together(name: str, changes: Mapping[str, str | None]) -> None:
        asked.append((name, dict(changes)))
        if "store" in changes and "password" not in changes:
            raise ValueError("a store needs its password")

    rules = ConfigRules(1, {"store": str, "password": str}, RULES.fixed, together)
    good = of("+1", ("store", SET, "a"), ("password", DELETE, None))
    bad = of("", ("store", SET, "a"))
    outcome = alter_configs(ConfigAlteration((good, bad), rules))
    assert asked == [("1", {"store": "a", "password": None}), ("", {"store": "a"})]
    assert {record.name for record in outcome.records if isinstance(record, ConfigRecord)} == {
        "store",
        "password",
    }
    assert [result.error.message if result.error else None for result in outcome.results] == [
        None,
        "Invalid value for configuration: a store needs its password",
    ]
