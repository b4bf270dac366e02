"""The mode of each listener, and settings that exclude each other."""

import pytest

from kustos.client import SettingsError
from kustos.server.settings.node_settings import settings_from

LEAST = {
    "node.id": "1",
    "metadata.log.dir": "/var/lib/kustos/metadata",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
}


def test_each_listener_has_its_mode_and_whoever_is_no_guard_is_named() -> None:
    keys = LEAST | {
        "listeners": "PLAINTEXT://127.0.0.1:9092,TRIAL://127.0.0.1:9292,OPEN://127.0.0.1:9492,"
        "ADMIN://127.0.0.1:9692",
        "listener.security.protocol.map": "TRIAL:PLAINTEXT,OPEN:PLAINTEXT,ADMIN:PLAINTEXT",
        "controller.listener.names": "ADMIN",
        "kustos.authorization.mode": "shadow",
        "listener.name.plaintext.kustos.authorization.mode": "enforce",
        "listener.name.open.kustos.authorization.mode": "off",
    }
    settings = settings_from(keys, {})
    modes = {each.name: each.mode.value for each in settings.listeners}
    assert modes == {"PLAINTEXT": "enforce", "TRIAL": "shadow", "OPEN": "off", "ADMIN": "enforce"}
    assert settings.authorization_enabled
    assert settings.listeners_enforce == {"PLAINTEXT": True, "TRIAL": False, "OPEN": False, "ADMIN": True}
    warned = [text for text in settings.warnings if "is not a guard" in text]
    assert ["`TRIAL`" in warned[0], "`OPEN`" in warned[1], len(warned)] == [True, True, 2]
    with pytest.raises(SettingsError, match="leads nowhere upstream"):
        settings_from(keys | {"listener.name.admin.kustos.authorization.mode": "shadow"}, {})
    with pytest.raises(SettingsError, match="on listener `PLAINTEXT`"):
        settings_from(keys | {"authorizer.class.name": ""}, {})
