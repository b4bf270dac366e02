"""Limits on unauthenticated clients in a properties file."""

import pytest

from kustos.client import SettingsError
from kustos.gateway.listener import ConnectionSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.workers import share_of
from tests.unit.server.test_settings import SASL

OWN = "listener.name.clients.kustos."


def test_a_listener_has_the_defaults_or_limits_of_its_own() -> None:
    assert {each.connection for each in settings_from(SASL, {}).listeners} == {ConnectionSettings()}
    keys = {
        OWN + "login.timeout.ms": "5000",
        OWN + "max.unauthenticated.connections": "40",
        OWN + "max.unauthenticated.connections.per.ip": "4",
    }
    clients, inside = settings_from(SASL | keys, {}).listeners
    assert clients.connection == ConnectionSettings(
        login_timeout_ms=5000, max_unauthenticated_connections=40, max_unauthenticated_connections_per_ip=4
    )
    assert inside.connection == ConnectionSettings()


def test_failed_logins_are_limited_unless_the_file_says_otherwise() -> None:
    limits = settings_from(SASL, {}).limits.failed_logins
    assert (limits.burst, limits.per_minute) == (100, 30)
    assert not limits.unlimited.holds("127.0.0.1")
    prefix = "kustos.failed.logins."
    keys = {
        prefix + "per.ip.burst": "0",
        prefix + "per.ip.per.minute": "7",
        prefix + "unlimited.addresses": "10.0.8.0/28, 2001:db8::/32",
    }
    limits = settings_from(SASL | keys, {}).limits.failed_logins
    assert (limits.burst, limits.per_minute) == (0, 7)
    assert limits.unlimited.holds("10.0.8.3")
    assert limits.unlimited.holds("2001:db8:0:0:0:0:0:1")
    assert not limits.unlimited.holds("10.0.9.3")


def test_a_login_lasts_longer_than_the_delay_of_its_refusal() -> None:
    keys = {"connection.failed.authentication.delay.ms": "5000", OWN + "login.timeout.ms": "5000"}
    with pytest.raises(SettingsError, match=r"it must be below `listener\.name\.clients\.kustos\.login"):
        settings_from(SASL | keys, {})


@pytest.mark.parametrize(("limit", "processes", "share"), [(10, 1, 10), (10, 4, 3), (1, 8, 1)])
def test_workers_have_equal_parts_and_never_none(limit: int, processes: int, share: int) -> None:
    assert share_of(limit, processes) == share
