"""Admin listeners in a properties file, and the settings that they do not need."""

import pytest

from kustos.client.errors import SettingsError
from kustos.server.authorization.life import server_info
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from tests.unit.server.test_settings import LEAST

TWO = LEAST | {
    "listeners": "PLAINTEXT://127.0.0.1:9092,ADMIN://127.0.0.1:9091",
    "listener.security.protocol.map": "ADMIN:PLAINTEXT",
}


def read(**more: str) -> KustosSettings:
    return settings_from(TWO | {key.replace("_", "."): value for key, value in more.items()}, {})


@pytest.mark.parametrize("names", ["ADMIN", "admin", "ADMIN,ELSEWHERE"])
def test_an_admin_listener_has_no_ports_of_brokers(names: str) -> None:
    clients, admin = read(controller_listener_names=names).listeners
    assert (clients.is_controller, clients.broker_port_count) == (False, 100)
    assert (admin.is_controller, admin.broker_port_count) == (True, 0)


def test_its_port_may_stand_where_it_would_have_none_of_brokers() -> None:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:9092,ADMIN://127.0.0.1:9193",
        "controller_listener_names": "ADMIN",
    }
    assert [listener.bind.port for listener in read(**given).listeners] == [9092, 9193]


def test_its_own_port_is_still_checked() -> None:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:9092,ADMIN://127.0.0.1:9100",
        "controller_listener_names": "ADMIN",
    }
    with pytest.raises(SettingsError, match="and the port of listener `ADMIN` overlap"):
        read(**given)


def test_without_the_name_it_is_a_listener_for_clients() -> None:
    with pytest.raises(SettingsError, match="overlap"):
        read()


def test_one_listener_must_be_for_clients() -> None:
    with pytest.raises(SettingsError, match="names every listener of `listeners`, add one for clients"):
        read(controller_listener_names="ADMIN,PLAINTEXT")


@pytest.mark.parametrize(
    ("early", "expected"),
    [
        ({}, {"ADMIN"}),
        ({"early_start_listeners": ""}, set()),
        ({"early_start_listeners": "PLAINTEXT"}, {"PLAINTEXT"}),
    ],
)
def test_admin_listeners_start_early_unless_others_do(early: dict[str, str], expected: set[str]) -> None:
    assert read(controller_listener_names="admin", **early).early_start_listeners == expected


def test_brokers_would_not_talk_to_each_other_by_it() -> None:
    given = {
        "listeners": "ADMIN://127.0.0.1:9091,PLAINTEXT://127.0.0.1:9092",
        "controller_listener_names": "ADMIN",
    }
    info = server_info(read(**given), "a cluster")
    assert info.inter_broker_endpoint.listener_name == "PLAINTEXT"
