"""The keytab of a listener comes from its JAAS config; unusable ones prevent the start."""

import sys
from pathlib import Path

import pytest

from kustos.client.errors import SettingsError
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.principals import KerberosSettings
from tests.unit.server.test_settings import LEAST

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
KEY = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
PRINCIPAL = "kafka/host.example.com@EXAMPLE.COM"
WHOLE = {
    "useKeyTab": "true",
    "storeKey": "true",
    "keyTab": '"/etc/kafka.keytab"',
    "principal": f'"{PRINCIPAL}"',
}


def keys(**options: str | None) -> dict[str, str]:
    given = {name: text for name, text in (WHOLE | options).items() if text is not None}
    written = " ".join(f"{name}={text}" for name, text in given.items())
    return LEAST | {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092", KEY: f"{MODULE} required {written};"}


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {}),
        ({"serviceName": "kafka"}, {"sasl.kerberos.service.name": "kafka"}),
        ({"keyTab": '"file:/etc/kafka.keytab"', "useTicketCache": "false", "debug": "true"}, {}),
        ({"useKeyTab": '"TRUE"'}, {"sasl.enabled.mechanisms": "GSSAPI"}),
    ],
)
def test_keytab_and_principal_are_those_of_the_login_module(
    options: dict[str, str], more: dict[str, str]
) -> None:
    sasl = settings_from(keys(**options) | more, {}).listeners[0].sasl
    assert sasl is not None
    assert sasl.enabled_mechanisms == ("GSSAPI",)
    assert sasl.kerberos == KerberosSettings(keytab=Path("/etc/kafka.keytab"), principal=PRINCIPAL)


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        ({"useKeyTab": None}, {}, "lacks `useKeyTab=true`"),
        ({"useKeyTab": "false", "useTicketCache": "true"}, {}, "lacks `useKeyTab=true`"),
        ({"storeKey": None}, {}, "lacks `storeKey=true`"),
        ({"keyTab": None}, {}, "lacks `keyTab`"),
        ({"principal": None}, {}, "lacks `principal`"),
        ({"principal": '"kafka@EXAMPLE.COM"'}, {}, "write it as `service/host@REALM`"),
        ({"principal": "kafka"}, {}, "write it as `service/host@REALM`"),
        ({"principal": '"a/b/c@R"'}, {}, "malformed Kerberos name: `a/b/c@R`"),
        ({"serviceName": "other"}, {}, "is not of the service `other`"),
        ({}, {"sasl.kerberos.service.name": "other"}, "is not of the service `other`"),
    ],
)
def test_what_cannot_be_used_is_said(
    options: dict[str, str | None], more: dict[str, str], words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(keys(**options) | more, {})
    assert words in str(caught.value)
    assert KEY in str(caught.value)


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ImportError, match=r"GSSAPI needs `gssapi`, install it with .*kustos\[gssapi\]"):
        settings_from(keys(), {})
    settings_from(LEAST, {})
