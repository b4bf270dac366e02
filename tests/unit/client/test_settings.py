"""Client properties: Java's file format, addresses, SASL and TLS settings."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.client import ClientSettings, NodeAddress, SettingsError, parse_address, parse_bootstrap_servers
from kustos.client.properties import parse_properties, read_properties

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": f'{SCRAM} required username="ann" password="hidden-1";',
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb: 2\nc 3\n d \t= 4 ", {"a": "1", "b": "2", "c": "3", "d": "4 "}),
        ("# no\n! no\n\n   # no\na = b#c", {"a": "b#c"}),
        ("a=one \\\n     two\\\n  three\nb", {"a": "one twothree", "b": ""}),
        ("a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        ("a\\=b\\ c=d\\:e", {"a=b c": "d:e"}),
        ("k=\\u00e9\\t\\n\\q", {"k": "é\t\nq"}),
        ("a=1\r\na=2\rb==", {"a": "2", "b": "="}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


plain = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(plain, plain))
def test_what_is_written_with_escapes_is_read_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)} = {escaped(value)}" for key, value in properties.items())
    assert parse_properties(text) == properties


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SettingsError):
        assert isinstance(parse_properties(text), dict)


def test_a_broken_escape_names_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("a=1\nb=\\u12\n")
    with pytest.raises(SettingsError, match=r"client\.properties`: line 2"):
        read_properties(file)
    with pytest.raises(SettingsError, match="no such file"):
        read_properties(tmp_path / "absent")


def test_addresses() -> None:
    assert parse_address(" h:9092 ") == NodeAddress("h", 9092)
    assert str(parse_address("[::1]:9092")) == "[::1]:9092"
    assert parse_bootstrap_servers("a:1, b:2,a:1,") == (NodeAddress("a", 1), NodeAddress("b", 2))


@pytest.mark.parametrize("text", ["", ",", "h", "h:", ":1", "h:0", "h:65536", "h:x", "::1:9092", "h:٣"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_bootstrap_servers(text)


def test_a_login_is_read_and_never_shown() -> None:
    settings = ClientSettings.from_properties("h:1", SASL)
    assert settings.sasl is not None
    assert (settings.sasl.username, settings.sasl.password) == ("ann", "hidden-1")
    assert "hidden-1" not in repr(settings)


def test_a_delegation_token_is_marked() -> None:
    jaas = f'{SCRAM} required username="id" password="hmac" tokenauth="true";'
    settings = ClientSettings.from_properties("h:1", {**SASL, "sasl.jaas.config": jaas})
    assert settings.sasl is not None
    assert settings.sasl.token_authenticated


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"security.protocol": "TLS"}, "`security.protocol` is `TLS`"),
        ({"sasl.mechanism": "DIGEST-MD5"}, "`sasl.mechanism` is `DIGEST-MD5`"),
        ({"sasl.mechanism": "GSSAPI"}, "one entry of `com.sun.security.auth.module.Krb5LoginModule`"),
        ({"sasl.jaas.config": ""}, "`sasl.jaas.config` is missing"),
        ({"sasl.jaas.config": "hidden-1"}, "`sasl.jaas.config`"),
        ({"sasl.mechanism": "PLAIN"}, "one entry of `org.apache.kafka.common.security.plain"),
        ({"sasl.jaas.config": f'{SCRAM} required password="hidden-1";'}, "no `username`"),
        ({"sasl.jaas.config": f'{SCRAM} required username="ann";'}, "no `password`"),
        ({"request.timeout.ms": "0"}, "`request.timeout.ms`"),
        ({"security.protocol": "SASL_SSL", "ssl.truststore.password": "hidden-1"}, "without a store"),
        ({"security.protocol": "SASL_SSL", "ssl.keystore.key": "hidden-1"}, "`ssl.keystore.type`"),
        ({"security.protocol": "SASL_SSL", "ssl.enabled.protocols": "TLSv1"}, "TLSv1.2 and TLSv1.3"),
        (
            {"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "ldaps"},
            "`ssl.endpoint.identification.algorithm`",
        ),
    ],
)
def test_a_wrong_setting_is_named_and_no_secret_is(changed: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        ClientSettings.from_properties("h:1", {**SASL, **changed})
    assert "hidden-1" not in str(caught.value)


def test_tls_verifies_unless_told_otherwise() -> None:
    settings = ClientSettings.from_properties("h:1", {"security.protocol": "SSL"})
    assert settings.sasl is None
    assert settings.tls is not None
    assert settings.tls.context().check_hostname
    lenient = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    tls = ClientSettings.from_properties("h:1", lenient).tls
    assert tls is not None
    assert not tls.context().check_hostname
    assert tls.context().verify_mode.name == "CERT_REQUIRED"


def test_an_unreadable_trust_store_is_a_settings_error(tmp_path: Path) -> None:
    file = tmp_path / "trust.pem"
    file.write_text("nothing")
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(file),
    }
    tls = ClientSettings.from_properties("h:1", properties).tls
    assert tls is not None
    with pytest.raises(SettingsError, match=r"`ssl\.truststore\.location`"):
        tls.context()


def test_an_engine_factory_of_java_is_refused() -> None:
    key, kafkas = "ssl.engine.factory.class", "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
    for name in ("", kafkas):
        ClientSettings.from_properties("127.0.0.1:9092", {"security.protocol": "SSL", key: name})
    with pytest.raises(SettingsError, match=r"`ssl\.engine\.factory\.class` is `a\.B`: TLS here is"):
        ClientSettings.from_properties("127.0.0.1:9092", SASL | {"security.protocol": "SASL_SSL", key: "a.B"})
