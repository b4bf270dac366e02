"""Logins of a node at brokers and controllers, and the identities that the settings allow."""

import pytest

from kustos.client import SettingsError
from kustos.server.settings.node_settings import settings_from
from tests.unit.server.test_settings import LEAST

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
LOGIN = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "kustos.upstream.security.protocol": "SASL_PLAINTEXT",
    "kustos.upstream.sasl.mechanism": "SCRAM-SHA-256",
    "kustos.upstream.sasl.jaas.config": f'{SCRAM} required username="svc" password="s3cret";',
}


def keys(**more: str) -> dict[str, str]:
    return LEAST | LOGIN | {name.replace("_", "."): value for name, value in more.items()}


def test_links_log_in_as_the_service_principal_unless_told_otherwise() -> None:
    assert settings_from(keys(), {}).upstream_token_mechanism is None
    assert settings_from(keys(kustos_upstream_identity="service"), {}).upstream_token_mechanism is None
    own = settings_from(keys(kustos_upstream_identity="token"), {})
    assert own.upstream_token_mechanism == "SCRAM-SHA-512"
    given = keys(kustos_upstream_identity="token") | {"kustos.upstream.token.sasl.mechanism": "SCRAM-SHA-256"}
    assert settings_from(given, {}).upstream_token_mechanism == "SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kustos.upstream.identity": "client"}, "`kustos.upstream.identity`"),
        ({"kustos.upstream.security.protocol": "PLAINTEXT"}, "take delegation tokens on SASL listeners only"),
        (
            {"kustos.upstream.sasl.jaas.config": f"{SCRAM} required username=i password=h tokenauth=true;"},
            "which may not create others",
        ),
        ({"kustos.upstream.token.sasl.mechanism": "PLAIN"}, "`kustos.upstream.token.sasl.mechanism`"),
    ],
)
def test_what_leads_to_no_token_is_refused_at_the_start(more: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_from(keys(kustos_upstream_identity="token") | more, {})


def test_a_listener_whose_clients_are_nobody_is_warned_of() -> None:
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:9092,SASL_PLAINTEXT://127.0.0.1:9192"}
    ports = {
        f"listener.name.{name}.kustos.broker.port.start": start
        for name, start in (("plaintext", "10000"), ("sasl_plaintext", "11000"))
    }
    warnings = settings_from(keys(kustos_upstream_identity="token") | listeners | ports, {}).warnings
    expected = [warning for warning in warnings if "kustos.upstream.identity" in warning]
    assert len(expected) == 1
    assert "listener `PLAINTEXT`" in expected[0]


@pytest.mark.parametrize("prefix", ["kustos.upstream.", "kustos.quorum."])
def test_brokers_and_controllers_are_logged_in_to_alike(prefix: str) -> None:
    quorum = {"kustos.metadata.store": "kraft", "controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    given = LEAST | (quorum if "quorum" in prefix else {}) | {f"{prefix}security.protocol": "SASL_PLAINTEXT"}
    for missing in ("sasl.mechanism", "sasl.jaas.config"):
        with pytest.raises(SettingsError, match=f"`{prefix}{missing}` is not set"):
            settings_from(given, {})
        given |= {f"{prefix}sasl.mechanism": "GSSAPI"}
    given |= {f"{prefix}sasl.jaas.config": f"{KERBEROS} required useTicketCache=true;"}
    with pytest.raises(SettingsError, match=r"`sasl\.kerberos\.service\.name` is not set"):
        settings_from(given, {})
    found = settings_from(given | {f"{prefix}sasl.kerberos.service.name": "kafka"}, {})
    client = found.upstream if found.quorum is None else found.quorum.client
    assert client.sasl is not None
    assert client.sasl.kerberos is not None
    assert client.sasl.kerberos.uses_cache
    forbidden = given | {"org.apache.kafka.disallowed.login.modules": KERBEROS}
    with pytest.raises(SettingsError, match=f"`{prefix}sasl.jaas.config`: .*not allowed"):
        settings_from(forbidden, {})
