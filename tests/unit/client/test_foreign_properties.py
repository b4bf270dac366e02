"""Damaged client files and those of other programs: the message names key, cause and Kafka's key."""

from pathlib import Path

import pytest

from kustos.client import ClientSettings, SettingsError

CASES = Path(__file__).parent / "properties_cases"
ADDRESS = "127.0.0.1:9092"
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="admin" password="admin-secret";',
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-single-quoted-value", ["`sasl.jaas.config` is in quotes", "leave them out"]),
        ("02-double-quoted-value", ["`sasl.jaas.config` is in quotes", "leave them out"]),
        ("04-blank-after-backslash", ["`sasl.jaas.config`: the value ends with a blank", "a backslash"]),
        ("05-whole-section", ["`sasl.jaas.config`: it is a section of a JAAS file", "without the braces"]),
        ("06-no-semicolon", ["`sasl.jaas.config`: ", "write `;` after the last option"]),
        (
            "11-librdkafka",
            [
                "`sasl.mechanisms` is a key of librdkafka, Kafka's key for it is `sasl.mechanism`",
                "`sasl.username` is a key of librdkafka, Kafka's key for it is `sasl.jaas.config`",
            ],
        ),
        (
            "12-spring",
            [
                "`spring.kafka.properties.security.protocol` is a key of Spring, "
                "Kafka's key for it is `security.protocol`"
            ],
        ),
        ("18-bom", ["18-bom.properties` begins with a byte order mark", "save it as UTF-8 without the mark"]),
    ],
)
def test_a_damaged_or_foreign_file_is_told_its_cause(name: str, expected: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        ClientSettings.from_file(ADDRESS, CASES / f"{name}.properties")
    for part in expected:
        assert part in str(caught.value)
    assert "admin-secret" not in str(caught.value)


@pytest.mark.parametrize(("name", "is_jwt_bearer"), [("21-kip1258", False), ("22-kip1139", True)])
def test_logins_by_assertion_are_read(name: str, is_jwt_bearer: bool) -> None:
    sasl = ClientSettings.from_file(ADDRESS, CASES / f"{name}.properties").sasl
    assert sasl is not None
    assert sasl.oauth is not None
    assert sasl.oauth.assertion is not None
    assert sasl.oauth.is_jwt_bearer is is_jwt_bearer


@pytest.mark.parametrize(
    ("key", "kafkas"),
    [
        ("spring.kafka.ssl.trust-store-location", "ssl.truststore.location"),
        ("spring.kafka.admin.ssl.key-password", "ssl.key.password"),
        ("spring.kafka.consumer.properties.ssl.endpoint.identification.algorithm", None),
        ("ssl.ca.location", "ssl.truststore.location"),
        ("sasl.oauthbearer.grant.type", "sasl.oauthbearer.jwt.retriever.class"),
        ("sasl.oauthbearer.assertion.private.key.pem", "sasl.oauthbearer.assertion.private.key.file"),
    ],
)
def test_a_foreign_key_is_told_kafkas_key(key: str, kafkas: str | None) -> None:
    wanted = kafkas or key.partition("properties.")[2]
    with pytest.raises(SettingsError, match=f"Kafka's key for it is `{wanted}`"):
        ClientSettings.from_properties(ADDRESS, {key: "x"})


def test_a_misspelled_key_that_decides_how_to_log_in_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"`securty\.protocol` is not a key .* `security\.protocol`"):
        ClientSettings.from_properties(ADDRESS, {"securty.protocol": "SSL"})


def test_one_file_may_serve_other_programs_too() -> None:
    others = {
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "x",
        "spring.kafka.properties.security.protocol": "SSL",
        "spring.kafka.bootstrap-servers": "x",
        "acks": "all",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    assert ClientSettings.from_properties(ADDRESS, LOGIN | others).sasl is not None


def test_a_password_may_be_in_quotes() -> None:
    keys = {"ssl.truststore.password": '"x"', "ssl.keystore.password": "'y'"}
    ClientSettings.from_properties(ADDRESS, LOGIN | keys)
