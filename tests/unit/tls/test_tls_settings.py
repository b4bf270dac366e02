"""Kafka's `ssl.*` keys: valid combinations, and the errors of invalid ones."""

import pytest

from kustos.tls import ClientAuth, StoreType, TlsError, tls_settings

SECRET = "hidden-1"
PEM = {"ssl.keystore.type": "PEM"}
TRUST_PEM = {"ssl.truststore.type": "PEM"}
FILE = {"ssl.keystore.location": "k.jks", "ssl.keystore.password": SECRET}


def test_defaults_are_kafkas() -> None:
    settings = tls_settings({})
    assert (settings.keystore, settings.truststore, settings.suites) == (None, None, None)
    assert (settings.minimum_version, settings.maximum_version) == ("TLSv1.2", "TLSv1.3")
    assert settings.verify_hostname
    assert settings.client_auth is ClientAuth.NONE
    assert not settings.allow_dn_changes
    assert not settings.allow_san_changes
    store = tls_settings(FILE).keystore
    assert store is not None
    assert store.store_type is StoreType.JKS


@pytest.mark.behaviour("B273")
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"ssl.keystore.type": "BKS"}, "`ssl.keystore.type` is `BKS`, use one of JKS, PKCS12, PEM"),
        ({"ssl.keystore.key": SECRET, "ssl.keystore.certificate.chain": "c"}, "set it to `PEM`"),
        ({**PEM, "ssl.keystore.key": SECRET}, "`ssl.keystore.certificate.chain` is not set"),
        ({**PEM, "ssl.keystore.certificate.chain": "c"}, "`ssl.keystore.key` is not set"),
        (
            {**PEM, **FILE, "ssl.keystore.key": SECRET, "ssl.keystore.certificate.chain": "c"},
            "both set, keep one",
        ),
        ({**PEM, "ssl.keystore.location": "k", "ssl.keystore.password": SECRET}, "which has none"),
        ({"ssl.keystore.password": SECRET}, "set `ssl.keystore.location`"),
        ({"ssl.keystore.location": "k"}, "set `ssl.keystore.password`"),
        ({"ssl.truststore.certificates": "c"}, "set it to `PEM`"),
        (
            {**TRUST_PEM, "ssl.truststore.certificates": "c", "ssl.truststore.location": "t"},
            "both set, keep one",
        ),
        ({**TRUST_PEM, "ssl.truststore.location": "t", "ssl.truststore.password": SECRET}, "remove it"),
        ({"ssl.truststore.password": SECRET}, "set `ssl.truststore.location`"),
    ],
)
def test_stores_are_whole_and_in_one_place(keys: dict[str, str], expected: str) -> None:
    with pytest.raises(TlsError) as caught:
        tls_settings(keys)
    assert expected in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"ssl.enabled.protocols": "TLSv1"}, "use TLSv1.2 and TLSv1.3"),
        ({"ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"}, "raise that one"),
        ({"ssl.protocol": "SSL"}, "use one of TLS, TLSv1.2, TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_NO_SUCH"}, "`TLS_NO_SUCH`, which this OpenSSL does not know"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "among which Python cannot choose"),
        (
            {
                "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                "ssl.enabled.protocols": "TLSv1.3",
            },
            "no suite of the versions",
        ),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "use `https`"),
        ({"ssl.client.auth": "maybe"}, "use one of none, requested, required"),
        ({"ssl.allow.dn.changes": "yes"}, "use `true` or `false`"),
    ],
)
def test_a_wrong_word_is_named(keys: dict[str, str], expected: str) -> None:
    with pytest.raises(TlsError) as caught:
        tls_settings(keys)
    assert expected in str(caught.value)


def test_the_protocol_limits_the_enabled_protocols() -> None:
    settings = tls_settings({"ssl.protocol": "TLSv1.2"})
    assert (settings.minimum_version, settings.maximum_version) == ("TLSv1.2", "TLSv1.2")


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", "ECDHE-ECDSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
    ],
)
def test_suites_have_the_names_of_java(java: str, openssl: str) -> None:
    settings = tls_settings({"ssl.cipher.suites": java})
    assert settings.suites is not None
    assert settings.suites.openssl == (openssl,)
    # a list without suites of TLS 1.3 switches that version off
    assert settings.maximum_version == "TLSv1.2"


def test_the_suites_of_tls_1_3_alone_are_that_version_alone() -> None:
    names = "TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256"
    settings = tls_settings({"ssl.cipher.suites": names})
    assert (settings.minimum_version, settings.maximum_version) == ("TLSv1.3", "TLSv1.3")


def test_no_password_or_key_is_in_the_repr() -> None:
    keys = {
        **FILE,
        "ssl.key.password": SECRET,
        "ssl.truststore.location": "t",
        "ssl.truststore.password": SECRET,
    }
    assert SECRET not in repr(tls_settings(keys))
    inline = {**PEM, "ssl.keystore.key": SECRET, "ssl.keystore.certificate.chain": SECRET}
    assert SECRET not in repr(tls_settings(inline))
