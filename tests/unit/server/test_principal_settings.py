"""Each listener has its rules and principal builder; unusable ones prevent the start."""

import sys

import pytest

from examples.service_principals import ServicePrincipals
from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import DefaultKafkaPrincipalBuilder, PrincipalBuilderError
from kustos.auth.mechanisms import Proven
from kustos.client.errors import SettingsError
from kustos.server.listener_plans import listener_principals
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.principals import PrincipalSettings
from tests.unit.server.test_settings import LEAST, SASL

OURS = "examples.service_principals.ServicePrincipals"
KAFKAS = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
ORGANIZATION = {"services.organization": "Example"}


@pytest.mark.behaviour("B338")
def test_kafkas_builder_is_the_default_by_its_name_too() -> None:
    for given in ({}, {"principal.builder.class": KAFKAS}):
        settings = settings_from(LEAST | given, {})
        assert settings.listeners[0].principals == PrincipalSettings()
        assert settings.own_class_configs == {}
        made = listener_principals(settings.listeners[0], {})
        assert isinstance(made.builder, DefaultKafkaPrincipalBuilder)
        assert made.without_login("::1") == ANONYMOUS


@pytest.mark.behaviour("B338")
@pytest.mark.parametrize("name", [OURS, "examples.service_principals:ServicePrincipals"])
def test_a_class_of_ones_own_is_loaded_and_configured(name: str) -> None:
    settings = settings_from(LEAST | ORGANIZATION | {"principal.builder.class": name}, {})
    assert settings.listeners[0].principals.builder_class is ServicePrincipals
    assert not any("services.organization" in warning for warning in settings.warnings)
    made = listener_principals(settings.listeners[0], settings.own_class_configs)
    found = made.of_certificate("::1", "CN=billing,OU=payments,O=Example", b"")
    assert found == KafkaPrincipal("Service", "payments.billing")
    assert made.of_login("::1", "PLAIN", Proven(b"", "alice")) == KafkaPrincipal("User", "alice")
    for unknown in (None, "CN=x,O=Example", "CN=billing,OU=payments,O=Other"):
        with pytest.raises(PrincipalBuilderError, match="raised PermissionError"):
            made.of_certificate("::1", unknown, None)


def test_each_listener_has_its_own() -> None:
    name = settings_from(LEAST, {}).listeners[0].name
    key = f"listener.name.{name.lower()}."
    rules = {key + "ssl.principal.mapping.rules": "RULE:a/b/", "ssl.principal.mapping.rules": "DEFAULT"}
    other = {"listener.name.other.principal.builder.class": OURS}
    settings = settings_from(LEAST | rules | other | ORGANIZATION, {})
    assert settings.listeners[0].principals == PrincipalSettings(ssl_principal_mapping_rules="RULE:a/b/")
    assert settings.own_class_configs["services.organization"] == "Example"


def test_no_secret_is_handed_to_a_builder() -> None:
    secret = {"delegation.token.secret.key": "hidden"}
    settings = settings_from(LEAST | ORGANIZATION | secret | {"principal.builder.class": OURS}, {})
    assert "hidden" not in str(settings.own_class_configs)
    assert "Example" not in repr(settings)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"principal.builder.class": "json.loads"}, "not a subclass of `kustos.auth.KafkaPrincipalBuilder`"),
        ({"principal.builder.class": "no_such_module.Builder"}, "loading it failed, ModuleNotFoundError"),
        ({"principal.builder.class": "org.apache.kafka.Mine"}, "a class of Java"),
        ({"principal.builder.class": "mine"}, "`kustos.principal_builders`"),
        ({"principal.builder.class": "kustos.auth.KafkaPrincipalBuilder"}, "it lacks `build`"),
        ({"ssl.principal.mapping.rules": "RULE:a/b/x"}, "unmatched substring: `x`"),
        ({"ssl.principal.mapping.rules": "RULE:(?=a)/b/"}, "look-around"),
        ({"sasl.kerberos.principal.to.local.rules": "DEFAULT,default"}, "invalid rule: `default`"),
        ({"sasl.kerberos.principal.to.local.rules": "RULE:[1:$2]"}, "outside of the valid range"),
    ],
)
def test_what_cannot_be_used_is_said(changes: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(LEAST | changes, {})
    assert words in str(caught.value)
    assert next(iter(changes)) in str(caught.value)


def test_rules_without_the_package_that_matches_them_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ImportError, match=r"a mapping rule needs `re2`, install it with .*kustos\[mapping\]"):
        settings_from(LEAST | {"ssl.principal.mapping.rules": "RULE:a/b/"}, {})
    settings_from(LEAST | {"ssl.principal.mapping.rules": "DEFAULT"}, {})


PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
DISALLOWED, ALLOWED = "org.apache.kafka.disallowed.login.modules", "org.apache.kafka.allowed.login.modules"


@pytest.mark.behaviour("B335", "B336")
def test_login_modules_may_be_forbidden_for_clients_and_upstream() -> None:
    upstream = {
        "kustos.upstream.security.protocol": "SASL_PLAINTEXT",
        "kustos.upstream.sasl.mechanism": "PLAIN",
        "kustos.upstream.sasl.jaas.config": f'{PLAIN_MODULE} required username="u" password="hidden";',
    }
    for keys in (SASL, LEAST | upstream):
        settings_from(keys, {})
        settings_from(keys | {ALLOWED: PLAIN_MODULE, DISALLOWED: PLAIN_MODULE}, {})
        for policy, words in (
            ({DISALLOWED: f"x, {PLAIN_MODULE}"}, f"`{PLAIN_MODULE}` is not allowed (`{DISALLOWED}`)"),
            ({ALLOWED: "x"}, f"`{PLAIN_MODULE}` is not in `{ALLOWED}`"),
        ):
            with pytest.raises(SettingsError) as caught:
                settings_from(keys | policy, {})
            assert words in str(caught.value)
            assert "sasl.jaas.config" in str(caught.value)
            assert "hidden" not in str(caught.value)


def test_an_engine_factory_of_java_is_refused() -> None:
    kafkas = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    settings_from(LEAST | {"ssl.engine.factory.class": kafkas}, {})
    for key in ("ssl.engine.factory.class", "listener.name.plaintext.ssl.engine.factory.class"):
        with pytest.raises(
            SettingsError, match=f"`{key}` is `com.example.Engines`: TLS here is that of OpenSSL"
        ):
            settings_from(LEAST | {key: "com.example.Engines"}, {})
