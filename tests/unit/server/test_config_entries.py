"""Settings in DescribeConfigs: readable, changeable and secret ones."""

from typing import Any

import pytest

from kustos.gateway.admin.configs import ConfigBook, ConfigEntry, ConfigType
from kustos.metadata.control import ApiError
from kustos.metadata.image import image_of
from kustos.metadata.records import ConfigRecord
from kustos.protocol.node_messages import DescribedConfig
from kustos.server.logs import LogLevels
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.table import SETTINGS
from kustos.settings import Scope
from kustos.wire import request_codec
from tests.unit.server.test_settings import LEAST

SECRET = "hunter2-hunter2"
BROKER, LOGGER, TOPIC, METRICS, GROUP = 4, 8, 2, 16, 32


def entries(**more: str) -> dict[str, ConfigEntry]:
    environment = {"SECRET": SECRET}
    given = LEAST | {key.replace("_", "."): value for key, value in more.items()}
    return {entry.name: entry for entry in settings_from(given, environment).config_entries}


def book(*records: ConfigRecord, given: dict[str, ConfigEntry] | None = None) -> ConfigBook:
    image = image_of(records)
    shown = (entries() if given is None else given).values()
    return ConfigBook(1, shown, frozenset({"super.users"}), lambda: image, LogLevels())


def asked(kind: int, name: str, *keys: str) -> Any:
    made = request_codec(32, 4).root.ELEMENTS["resources"]
    return made(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)


def described(made: ConfigBook, kind: int, name: str, *keys: str) -> dict[str, DescribedConfig]:
    found = made.describe(asked(kind, name, *keys))
    assert not isinstance(found, ApiError)
    return {config.name: config for config in found}


def test_every_setting_of_the_table_is_shown_with_its_words() -> None:
    found = entries()
    for setting in SETTINGS:
        if setting.scope is not Scope.ONLY_LISTENER:
            assert found[setting.name].documentation == setting.doc


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delegation.token.secret.key", SECRET),
        ("kustos.upstream.sasl.jaas.config", f'a.b.C required password="{SECRET}";'),
        ("super.users", "User:${env:SECRET}"),
        ("some.strange.key", SECRET),
        ("listener.name.plaintext.ssl.key.password", SECRET),
    ],
)
def test_a_secret_is_named_and_never_shown(key: str, value: str) -> None:
    given = entries(**{key: value})
    assert given[key].is_sensitive
    shown = described(book(given=given), BROKER, "1")[key]
    assert (shown.value, shown.is_sensitive) == (None, True)
    assert [synonym.value for synonym in shown.synonyms if synonym.value is not None] == []
    assert SECRET not in repr(shown) + repr(given[key])


def test_a_setting_of_the_log_that_nobody_knows_is_a_secret() -> None:
    made = book(ConfigRecord(BROKER, "", "ssl.key.password", SECRET), ConfigRecord(BROKER, "1", "x", SECRET))
    for name in ("", "1"):
        for config in described(made, BROKER, name).values():
            assert SECRET not in repr(config)
    assert described(made, BROKER, "1")["ssl.key.password"].source == 3
    assert described(made, BROKER, "1")["x"].source == 2


def test_values_go_by_their_rank() -> None:
    made = book(
        ConfigRecord(BROKER, "", "super.users", "User:all"),
        ConfigRecord(BROKER, "1", "super.users", "User:one"),
        ConfigRecord(BROKER, "2", "super.users", "User:two"),
        given=entries(super_users="User:file"),
    )
    shown = described(made, BROKER, "1")["super.users"]
    assert [(each.value, each.source) for each in shown.synonyms] == [
        ("User:one", 2),
        ("User:all", 3),
        ("User:file", 4),
        ("", 5),
    ]
    assert not shown.read_only
    assert [each.value for each in described(made, BROKER, "").values()] == ["User:all"]


def test_defaults_and_types_are_those_of_the_table() -> None:
    shown = described(book(), BROKER, "1")
    assert shown["connections.max.idle.ms"].config_type == ConfigType.LONG
    assert shown["connections.max.idle.ms"].value == "600000"
    assert shown["allow.everyone.if.no.acl.found"].value == "false"
    assert shown["sasl.enabled.mechanisms"].config_type == ConfigType.LIST
    assert (shown["log.dirs"].value, shown["log.dirs"].source) == (None, 5)
    assert shown["node.id"].read_only


def test_only_what_is_asked_for_is_shown() -> None:
    assert set(described(book(), BROKER, "1", "node.id", "no.such.key")) == {"node.id"}
    assert set(described(book(), LOGGER, "1", "root")) == {"root"}


def test_what_the_file_says_now_is_shown_after_a_reload() -> None:
    made = book()
    made.restate([entries(super_users="User:new")["super.users"]])
    assert described(made, BROKER, "1")["super.users"].value == "User:new"


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (BROKER, "2", 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", 42, "Broker id must not be empty"),
        (LOGGER, "2", 42, "Unexpected broker id, expected 1 but received 2"),
        (TOPIC, "orders", 3, None),
        (METRICS, "x", 42, "Unsupported resource type: CLIENT_METRICS"),
        (GROUP, "x", 42, "Unsupported resource type: GROUP"),
    ],
)
def test_what_is_not_there_is_told_in_the_words_of_kafka(
    kind: int, name: str, code: int, message: str | None
) -> None:
    found = book().describe(asked(kind, name))
    assert isinstance(found, ApiError)
    assert (found.code.value, found.message) == (code, message)
