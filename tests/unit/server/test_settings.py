"""The properties file of a node, and the errors of invalid ones."""

import re
from pathlib import Path

import pytest

from kustos.client import NodeAddress
from kustos.client.errors import SettingsError
from kustos.gateway.audit import OnFull
from kustos.metadata.control import TokenRules
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import load_settings, settings_from
from kustos.server.settings.page import configuration_page
from kustos.server.settings.plugins import STANDARD_AUTHORIZER
from kustos.server.settings.table import SETTINGS
from kustos.tls import TlsSettings

ROOT = Path(__file__).parents[3]
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = "correct horse"

LEAST = {
    "node.id": "7",
    "metadata.log.dir": "/var/lib/kustos",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
}
SASL = LEAST | {
    "listeners": "CLIENTS://127.0.0.1:9092,INSIDE://127.0.0.1:9300",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:PLAINTEXT",
    "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="{PASSWORD}";',
}


def read(**environment: str) -> KustosSettings:
    return settings_from(LEAST, environment)


def test_the_least_that_a_node_needs() -> None:
    settings = read()
    assert settings.node_id == 7
    assert settings.metadata_directory == Path("/var/lib/kustos")
    (listener,) = settings.listeners
    assert (listener.name, listener.security_protocol, listener.sasl) == ("PLAINTEXT", "PLAINTEXT", None)
    assert listener.bind == listener.advertised == NodeAddress("127.0.0.1", 9092)
    assert (listener.broker_port_start, listener.broker_port_count) == (9093, 100)
    assert settings.authorization_enabled
    assert not settings.allow_everyone_if_no_acl_found
    assert settings.upstream.bootstrap_servers == (NodeAddress("127.0.0.1", 19092),)
    assert settings.audit.on_full is OnFull.BLOCK
    assert settings.http is None


def test_defaults_are_kafkas() -> None:
    settings = read()
    assert settings.connections.socket_request_max_bytes == 104_857_600
    assert settings.connections.connections_max_idle_ms == 600_000
    assert settings.limits.max_connections == settings.limits.max_connections_per_ip == 2**31 - 1
    assert settings.upstream_metadata_max_age_ms == 300_000
    sasl = settings_from(SASL, {}).listeners[0].sasl
    assert sasl is not None
    assert sasl.server.max_receive_size == 524_288
    assert sasl.server.failed_authentication_delay_ms == 100
    assert sasl.server.connections_max_reauth_ms == {"PLAIN": 0, "SCRAM-SHA-256": 0}


@pytest.mark.behaviour("B334")
def test_a_listener_has_its_own_mechanisms_users_and_session_life() -> None:
    keys = SASL | {
        "connections.max.reauth.ms": "1000",
        "listener.name.clients.connections.max.reauth.ms": "2000",
        "listener.name.clients.plain.connections.max.reauth.ms": "3000",
    }
    clients, inside = settings_from(keys, {}).listeners
    assert inside.sasl is None
    assert clients.sasl is not None
    assert clients.sasl.enabled_mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert clients.sasl.server.connections_max_reauth_ms == {"PLAIN": 3000, "SCRAM-SHA-256": 2000}
    assert dict(clients.sasl.jaas["PLAIN"].options) == {"user_alice": PASSWORD}


STORES = {
    "ssl.keystore.location": "all.jks",
    "ssl.keystore.password": PASSWORD,
    "ssl.truststore.location": "trust.jks",
}
TLS = (
    LEAST
    | STORES
    | {
        "listeners": "CLIENTS://127.0.0.1:9092,MACHINES://127.0.0.1:9300",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,MACHINES:SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
)


def tls_of(settings: KustosSettings) -> list[TlsSettings]:
    return [listener.tls.settings for listener in settings.listeners if listener.tls is not None]


@pytest.mark.behaviour("B262")
def test_a_listener_has_its_own_stores() -> None:
    own = {"listener.name.machines.ssl.keystore.location": "own.jks"}
    clients, machines = tls_of(settings_from(TLS | own, {}))
    assert [str(path) for path in clients.files] == ["all.jks", "trust.jks"]
    # each key by itself
    assert [str(path) for path in machines.files] == ["own.jks", "trust.jks"]
    assert PASSWORD not in repr(settings_from(TLS | own, {}))
    with pytest.raises(SettingsError, match=r"listener `CLIENTS`: `ssl\.keystore\.location` is set without"):
        settings_from({key: value for key, value in TLS.items() if key != "ssl.keystore.password"}, {})


@pytest.mark.behaviour("B240")
def test_client_certificates_matter_over_sasl_only_if_the_listener_says_so() -> None:
    settings = settings_from(TLS | {"ssl.client.auth": "required"}, {})
    clients, machines = tls_of(settings)
    assert (clients.client_auth, machines.client_auth) == ("none", "required")
    (warning,) = [each for each in settings.warnings if "ssl.client.auth" in each]
    assert "set `listener.name.clients.ssl.client.auth`" in warning
    for word in ("requested", "required"):
        settings = settings_from(TLS | {"listener.name.clients.ssl.client.auth": word}, {})
        assert tls_of(settings)[0].client_auth == word
        assert "ssl.client.auth" not in " ".join(settings.warnings)


def test_no_secret_is_in_the_repr_of_settings() -> None:
    keys = SASL | {
        "kustos.upstream.security.protocol": "SASL_PLAINTEXT",
        "kustos.upstream.sasl.mechanism": "PLAIN",
        "kustos.upstream.sasl.jaas.config": f'{PLAIN_MODULE} required username="k" password="{PASSWORD}";',
    }
    settings = settings_from(keys, {})
    assert settings.upstream.sasl is not None
    assert settings.upstream.sasl.password == PASSWORD
    assert PASSWORD not in repr(settings)


def test_references_are_replaced_once(tmp_path: Path) -> None:
    secret = tmp_path / "jaas"
    secret.write_text(f'{PLAIN_MODULE} required user_bob="${{env:NOT_READ}}";\n')
    users = tmp_path / "users.properties"
    users.write_text("node = 12\n")
    keys = SASL | {
        "node.id": f"${{file:{users}:node}}",
        "metadata.log.dir": "${env:HOME_OF_KUSTOS}/log",
        "listener.name.clients.plain.sasl.jaas.config": f"${{file:{secret}}}",
    }
    settings = settings_from(keys, {"HOME_OF_KUSTOS": "/srv"})
    assert settings.node_id == 12
    assert settings.metadata_directory == Path("/srv/log")
    sasl = settings.listeners[0].sasl
    assert sasl is not None
    assert dict(sasl.jaas["PLAIN"].options) == {"user_bob": "${env:NOT_READ}"}


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"node.id": None}, "`node.id` is not set, use a whole number"),
    ({"node.id": "one"}, "`node.id` is `one`, use a whole number from 0 to 2147483647"),
    ({"node.id": "-1"}, "`node.id` is `-1`"),
    ({"node.id": "\u0661"}, "`node.id` is `\u0661`"),
    ({"metadata.log.dir": None}, "`metadata.log.dir` is not set"),
    ({"kustos.upstream.bootstrap.servers": None}, "`kustos.upstream.bootstrap.servers` is not set"),
    ({"kustos.upstream.bootstrap.servers": "broker"}, "`broker` has no port, write it as `host:port`"),
    ({"listeners": '"PLAINTEXT://127.0.0.1:9092"'}, "the value of `listeners` is in quotes, which belong to"),
    (
        {"kustos.upstream.sasl.username": "a"},
        "`kustos.upstream.sasl.username` is named after a key of librdkafka, Kafka's key for it is "
        "`sasl.jaas.config`",
    ),
    ({"kustos.audit.sinsk": "json"}, "is not a setting of kustos, did you mean `kustos.audit.sinks`"),
    ({"kustos.nonsense": "1"}, "`kustos.nonsense` is not a setting of kustos, leave it out"),
    ({"listener.name.plaintext.kustos.nonsense": "1"}, "is not a setting of kustos"),
    ({"kustos.broker.port.start": "9"}, "write `listener.name.<listener>.kustos.broker.port.start`"),
    ({"kustos.broker.host.pattern": "b$(nodeId).x.y"}, "write `listener.name.<listener>.kustos.broker.host"),
    (
        {"listener.name.plaintext.kustos.broker.host.pattern": "b$(nodeId).x.y"},
        "has no use: only clients with TLS name the host",
    ),
    (
        {"listener.name.plaintext.kustos.broker.host.pattern": "broker.x.y"},
        "use a host name with `$(nodeId)` in it",
    ),
    ({"listeners": "PLAINTEXT://:9092"}, "write `PLAINTEXT://127.0.0.1:9092` for this machine only"),
    ({"listeners": "PLAINTEXT://127.0.0.1"}, "write it as `host:port`"),
    ({"listeners": "127.0.0.1:9092"}, "write a listener as `NAME://host:port`"),
    ({"listeners": "PLAINTEXT://127.0.0.1:0"}, "`127.0.0.1:0` has the port `0`, a port is a number"),
    ({"listeners": "A://127.0.0.1:1,a://127.0.0.1:2"}, "two listeners named `a`"),
    ({"listeners": "CLIENTS://127.0.0.1:9092"}, "add `CLIENTS:SASL_PLAINTEXT`"),
    ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "set `advertised.listeners=PLAINTEXT://<host>:9092`"),
    ({"listeners": "PLAINTEXT://[::]:9092"}, "cannot connect to `::`"),
    ({"advertised.listeners": "OTHER://kafka.example:9092"}, "`OTHER`, which is not among `listeners`"),
    ({"listener.security.protocol.map": "A=PLAINTEXT"}, "write `NAME:PROTOCOL`"),
    ({"listener.security.protocol.map": "A:TLS"}, "write `NAME:PROTOCOL`"),
    (
        {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092"},
        "offers `GSSAPI` (Kafka's default) without a keytab: set "
        "`listener.name.sasl_plaintext.gssapi.sasl.jaas.config` to `com.sun.security",
    ),
    (
        {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092", "sasl.enabled.mechanisms": "PLAINN"},
        "`sasl.enabled.mechanisms` is `PLAINN`, which cannot be used: no installed package has",
    ),
    (
        {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092", "sasl.enabled.mechanisms": "plain"},
        "offers `plain`, which is not a name of a mechanism: use some of `PLAIN`",
    ),
    (
        {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092", "sasl.enabled.mechanisms": "PLAIN"},
        "has no users: set `listener.name.sasl_plaintext.plain.sasl.jaas.config`",
    ),
    (
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required user_a="b";',
        },
        "has no users",
    ),
    (
        {
            "listeners": "PLAINTEXT://127.0.0.1:9092,SECOND://127.0.0.1:9093",
            "listener.security.protocol.map": "SECOND:PLAINTEXT",
        },
        "the broker ports 9093..9192 of listener `PLAINTEXT` and the port of listener `SECOND` overlap",
    ),
    (
        {
            "listeners": "PLAINTEXT://0.0.0.0:9092",
            "advertised.listeners": "PLAINTEXT://k:9092",
            "kustos.http.listener": "127.0.0.1:9100",
        },
        "the HTTP port 9100 overlap, change `kustos.http.listener`",
    ),
    ({"listeners": "PLAINTEXT://127.0.0.1:65500"}, "do not all exist"),
    ({"kustos.http.listener": ":8080"}, "needs its host"),
    ({"kustos.gateway.broker.port.count": "0"}, "use a whole number from 1 to 10000"),
    ({"allow.everyone.if.no.acl.found": "yes"}, "`yes`, use `true` or `false`"),
    ({"super.users": "alice"}, "`super.users`: could not parse principal from `alice`"),
    ({"super.users": "User:*"}, "would be everybody"),
    ({"authorizer.class.name": ""}, "set `kustos.authorization.mode=off` as well"),
    ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizers"}, f"use `{STANDARD_AUTHORIZER}`"),
    ({"authorizer.class.name": STANDARD_AUTHORIZER, "kustos.authorization.mode": "off"}, "only one of them"),
    ({"authorizer.class.name": "no.such.Authorizer"}, "No module named 'no'"),
    ({"authorizer.class.name": "json.JSONDecoder"}, "not a subclass of `kustos.authorizer.Authorizer`"),
    ({"authorizer.class.name": "json:no_such_thing"}, "has no attribute 'no_such_thing'"),
    ({"authorizer.class.name": "kustos.authorizer.Authorizer"}, "it lacks `acls`, `authorize`, `close`"),
    ({"authorizer.class.name": "unheard-of"}, "no installed package has an entry point of this name"),
    ({"early.start.listeners": "INSIDE"}, "`INSIDE`, which is neither in `listeners`"),
    ({"early.start.listeners": "plaintext"}, "`plaintext`, which is neither in `listeners`"),
    ({"kustos.audit.sinks": "syslog"}, "`kustos.audit.syslog.receiver` is not set, `syslog` in"),
    ({"kustos.audit.syslog.receiver": "log.example.com"}, "use `tcp://host:port`, `tls://host:port`"),
    (
        {
            "kustos.audit.sinks": "syslog",
            "kustos.audit.syslog.receiver": "tls://log:6514",
            "kustos.audit.syslog.ssl.truststore.location": "/nowhere.pem",
        },
        "in the settings that begin with `kustos.audit.syslog.`",
    ),
    ({"kustos.audit.json.format": "cef"}, "use `kustos` or `cloudevents` or `ocsf`"),
    ({"kustos.audit.queue.max.events": "0"}, "use a whole number from 1 to 10000000"),
    ({"kustos.authorization.mode": "none"}, "use `enforce` or `shadow` or `off`"),
    ({"authorizer.class.name": "", "kustos.authorization.mode": "shadow"}, "on listener `PLAINTEXT`"),
    ({"connection.failed.authentication.delay.ms": "600000"}, "must be below `connections.max.idle.ms`"),
    ({"kustos.upstream.security.protocol": "TLS"}, "use `PLAINTEXT` or `SASL_PLAINTEXT` or `SSL`"),
    ({"kustos.upstream.security.protocol": "SASL_SSL"}, "`kustos.upstream.security.protocol=SASL_SSL` needs"),
    (
        {"kustos.upstream.security.protocol": "SSL", "kustos.upstream.ssl.truststore.location": "/none"},
        "with `kustos.upstream.`: `ssl.truststore.location` (`/none`) cannot be used",
    ),
    ({"kustos.upstream.security.protocol": "SASL_PLAINTEXT"}, "`kustos.upstream.sasl.mechanism` is not set"),
    ({"kustos.audit.sinks": "json"}, "`kustos.audit.json.dir` is not set, `json` in"),
    ({"kustos.audit.sinks": "json,json"}, "each once"),
    ({"kustos.audit.sinks": "console"}, "some of `json`, `kafka`, `log4j`, `syslog`"),
    ({"kustos.audit.on.full": "wait"}, "use `block` or `deny` or `drop`"),
    ({"node.id": "${env:NODE}"}, "the environment variable `NODE` is not set"),
    ({"node.id": "${file:/nonexistent/id}"}, "cannot read the file `/nonexistent/id`"),
    ({"node.id": "${vault:id}"}, "write `${env:NAME}`"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=[said[:60] for _, said in WRONG])
def test_what_is_wrong_is_said_with_what_to_do(changes: dict[str, str | None], said: str) -> None:
    keys = {key: value for key, value in {**LEAST, **changes}.items() if value is not None}
    with pytest.raises(SettingsError) as caught:
        settings_from(keys, {})
    assert said in str(caught.value)


def test_everything_that_cannot_be_read_is_said_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from({"node.id": "x", "kustos.x": "y", "max.connections": "-3"}, {})
    said = str(caught.value)
    for key in ("node.id", "kustos.x", "max.connections", "listeners", "kustos.upstream.bootstrap.servers"):
        assert f"`{key}`" in said


@pytest.mark.parametrize(
    "text",
    [
        f'{PLAIN_MODULE} required user_alice="{PASSWORD}"',
        f'{PLAIN_MODULE} user_alice="{PASSWORD}";',
        f'user_alice="{PASSWORD}"',
        f'org.example.Module required user_alice="{PASSWORD}";',
    ],
)
def test_no_error_about_a_secret_shows_it(text: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(text)
    for value in (text, "${env:SECRET}", f"${{file:{secret}}}"):
        keys = SASL | {"listener.name.clients.plain.sasl.jaas.config": value}
        with pytest.raises(SettingsError) as caught:
            settings_from(keys, {"SECRET": text})
        assert "plain.sasl.jaas.config" in str(caught.value)
        assert PASSWORD not in str(caught.value)


def test_what_a_reference_stands_for_is_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"`node\.id` is") as caught:
        settings_from(LEAST | {"node.id": "${env:NODE}"}, {"NODE": PASSWORD})
    assert PASSWORD not in str(caught.value)


def test_what_has_no_effect_is_warned_of() -> None:
    keys = SASL | {
        "process.roles": "broker",
        "sasl.enabled.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_MODULE} required user_a="b";',
        "listener.name.CLIENTS.sasl.enabled.mechanisms": "PLAIN",
    }
    warnings = "\n".join(settings_from(keys, {}).warnings)
    assert "`process.roles` is not known and ignored" in warnings
    assert "did you mean `sasl.enabled.mechanisms`" in warnings
    assert "`sasl.jaas.config` has no effect, as in Kafka" in warnings
    assert "`listener.name.CLIENTS.sasl.enabled.mechanisms` has no effect" in warnings


def test_authorization_is_off_only_where_it_is_said_to_be() -> None:
    settings = settings_from(LEAST | {"authorizer.class.name": "", "kustos.authorization.mode": "off"}, {})
    assert not settings.authorization_enabled
    assert any("listener `PLAINTEXT` is not a guard" in warning for warning in settings.warnings)


def test_brokers_are_advertised_as_far_from_the_listener_as_they_are_bound() -> None:
    keys = LEAST | {
        "listeners": "PLAINTEXT://0.0.0.0:9092",
        "advertised.listeners": "PLAINTEXT://kafka.example:19092",
        "listener.name.plaintext.kustos.broker.port.start": "9200",
    }
    (listener,) = settings_from(keys, {}).listeners
    assert listener.broker_port_start == 9200
    assert listener.advertised_broker_port_start == 19200


def test_a_file_is_read_and_named_in_its_errors(tmp_path: Path) -> None:
    path = tmp_path / "kustos.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in LEAST.items()))
    assert load_settings(path, {}) == read()
    path.write_text("node.id=x")
    with pytest.raises(SettingsError, match=re.escape(f"`{path}`: `node.id` is `x`")):
        load_settings(path, {})


@pytest.mark.behaviour("B201", "B202")
def test_delegation_tokens_are_off_without_a_secret_and_have_kafkas_times() -> None:
    assert read().token_rules == TokenRules()
    assert settings_from(LEAST | {"delegation.token.secret.key": "  "}, {}).token_rules.secret is None
    keys = {
        "delegation.token.secret.key": "${env:TOKEN_KEY}",
        "delegation.token.max.lifetime.ms": "3",
        "delegation.token.expiry.time.ms": "2",
        "delegation.token.expiry.check.interval.ms": "1",
    }
    settings = settings_from(LEAST | keys, {"TOKEN_KEY": PASSWORD})
    assert settings.token_rules == TokenRules(TokenSecret(PASSWORD.encode()), 3, 2, 1)
    assert PASSWORD not in repr(settings)
    assert settings.authorizer_configs == {}
    for key in list(keys)[1:]:
        with pytest.raises(SettingsError, match=f"`{key}` is `0`, use a whole number"):
            settings_from(LEAST | {key: "0"}, {})
    with pytest.raises(
        SettingsError, match=r"^`delegation.token.secret.key`: the secret is not Unicode text$"
    ):
        settings_from(LEAST | {"delegation.token.secret.key": "s3cret\ud800"}, {})


def test_a_required_key_that_is_misspelled_is_named() -> None:
    misspelled = {name.replace("listeners", "listners"): value for name, value in LEAST.items()}
    expected = r"`listeners` is not set, .*; `listners` is set, did you mean `listeners`"
    with pytest.raises(SettingsError, match=expected):
        settings_from(misspelled, {})


def test_each_key_is_declared_once() -> None:
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)


def test_the_page_shows_every_setting_and_is_up_to_date() -> None:
    page = configuration_page()
    for setting in SETTINGS:
        assert f"`{setting.name}`" in page
    assert (ROOT / "docs" / "reference" / "configuration.md").read_text() == page
