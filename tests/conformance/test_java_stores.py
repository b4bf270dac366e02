"""Stores that Java's `keytool` made: read whole, with the right password only, and never when changed."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509

from kustos.tls import (
    KeyStoreSettings,
    Side,
    StoreType,
    TlsError,
    TrustStoreSettings,
    make_context,
    prove,
    read_keystore,
    read_truststore,
    tls_settings,
)
from testkit.certificates import STORE_PASSWORD, Authority, keytool

KEY_PASSWORD = "key-secret"
ALIAS = ("-alias", "node", "-storepass", STORE_PASSWORD)
KINDS = ("JKS", "PKCS12")
ALGORITHMS = {"RSA": ("-keysize", "2048"), "EC": ("-groupname", "secp256r1")}


@dataclass(frozen=True)
class JavaStores:
    directory: Path
    certificates: dict[tuple[str, str], x509.Certificate]
    trusted: x509.Certificate

    def key_store(self, kind: str, algorithm: str) -> Path:
        return self.directory / f"{kind}-{algorithm}"

    def trust_store(self, kind: str) -> Path:
        return self.directory / f"{kind}-trust"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> JavaStores:
    directory = tmp_path_factory.mktemp("java-stores")
    authority = Authority()
    trusted = authority.write(directory / "authority.pem")
    stores = JavaStores(directory, {}, authority.certificate)
    for kind in KINDS:
        for algorithm, size in ALGORITHMS.items():
            store = ("-storetype", kind, "-keystore", str(stores.key_store(kind, algorithm)))
            own = ("-keypass", KEY_PASSWORD) if kind == "JKS" else ()
            name = ("-dname", "CN=node,O=kustos", "-keyalg", algorithm, *size)
            keytool("-genkeypair", *store, *ALIAS, *own, *name)
            exported = directory / f"{kind}-{algorithm}.crt"
            keytool("-exportcert", *store, *ALIAS, "-file", str(exported))
            certificate = x509.load_der_x509_certificate(exported.read_bytes())
            stores.certificates[kind, algorithm] = certificate
        store = ("-storetype", kind, "-keystore", str(stores.trust_store(kind)))
        for alias in ("one", "two"):
            named = ("-alias", alias, "-storepass", STORE_PASSWORD, "-file", str(trusted))
            keytool("-importcert", "-noprompt", *store, *named)
    return stores


def key_store(
    stores: JavaStores, kind: str, algorithm: str, path: Path | None = None, **changed: str | None
) -> KeyStoreSettings:
    passwords = {"password": STORE_PASSWORD, "key_password": KEY_PASSWORD if kind == "JKS" else None}
    return KeyStoreSettings(
        store_type=StoreType(kind),
        location=path or stores.key_store(kind, algorithm),
        **(passwords | changed),
    )


@pytest.mark.behaviour("B267")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_key_store_of_java_serves(stores: JavaStores, kind: str, algorithm: str) -> None:
    settings = key_store(stores, kind, algorithm)
    store = read_keystore(settings)
    assert store.chain == (stores.certificates[kind, algorithm],)
    keys = {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(settings.location),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    if settings.key_password is not None:
        keys["ssl.key.password"] = settings.key_password
    for side in Side:
        prove(make_context(tls_settings(keys), side), side)


@pytest.mark.parametrize("kind", KINDS)
def test_as_in_java_the_content_says_which_of_the_two_it_is(stores: JavaStores, kind: str) -> None:
    other = KINDS[1 - KINDS.index(kind)]
    settings = key_store(stores, other, "EC", stores.key_store(kind, "EC"))
    if kind == "PKCS12":
        settings = key_store(stores, other, "EC", stores.key_store(kind, "EC"), key_password=None)
    else:
        settings = key_store(stores, other, "EC", stores.key_store(kind, "EC"), key_password=KEY_PASSWORD)
    assert read_keystore(settings).chain == (stores.certificates[kind, "EC"],)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_is_named_and_not_shown(stores: JavaStores, kind: str) -> None:
    with pytest.raises(TlsError, match=r"`ssl\.keystore\.password` is wrong") as caught:
        read_keystore(key_store(stores, kind, "EC", password="wrong-secret", key_password=None))
    assert "wrong-secret" not in str(caught.value)
    if kind == "JKS":
        with pytest.raises(TlsError, match=r"`ssl\.key\.password` is wrong"):
            read_keystore(key_store(stores, kind, "EC", key_password=None))
    else:
        with pytest.raises(TlsError, match=r"has one password"):
            read_keystore(key_store(stores, kind, "EC", key_password=KEY_PASSWORD))


@pytest.mark.parametrize("kind", KINDS)
def test_a_trust_store_of_java_is_read(stores: JavaStores, kind: str) -> None:
    settings = TrustStoreSettings(
        store_type=StoreType(kind), location=stores.trust_store(kind), password=STORE_PASSWORD
    )
    assert set(read_truststore(settings)) == {stores.trusted}
    wrong = TrustStoreSettings(
        store_type=StoreType(kind), location=stores.trust_store(kind), password="wrong-secret"
    )
    with pytest.raises(TlsError, match=r"`ssl\.truststore\.password` is wrong"):
        read_truststore(wrong)


def test_a_jks_trust_store_is_read_without_its_password(stores: JavaStores) -> None:
    """As in Java; its digest is not looked at then."""
    settings = TrustStoreSettings(store_type=StoreType.JKS, location=stores.trust_store("JKS"))
    assert set(read_truststore(settings)) == {stores.trusted}


def test_a_trust_store_with_a_key_trusts_its_certificate_or_is_refused(stores: JavaStores) -> None:
    """In PKCS12 nothing shows which certificates are trusted, and which only stand above the key's."""
    jks = TrustStoreSettings(
        store_type=StoreType.JKS, location=stores.key_store("JKS", "EC"), password=STORE_PASSWORD
    )
    assert read_truststore(jks) == (stores.certificates["JKS", "EC"],)
    pkcs12 = TrustStoreSettings(
        store_type=StoreType.PKCS12, location=stores.key_store("PKCS12", "EC"), password=STORE_PASSWORD
    )
    with pytest.raises(TlsError, match="it has a private key"):
        read_truststore(pkcs12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_was_changed_anywhere_is_refused(stores: JavaStores, tmp_path: Path, kind: str) -> None:
    """Every byte of a JKS is under its digest; one in sixteen is tried."""
    whole = stores.key_store(kind, "EC").read_bytes()
    step = 16 if kind == "JKS" else 64
    changed = tmp_path / "changed"
    original = read_keystore(key_store(stores, kind, "EC"))
    for at in range(0, len(whole), step):
        changed.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            store = read_keystore(key_store(stores, kind, "EC", changed))
        except TlsError:
            continue
        # outside the digest of PKCS12 a byte may mean nothing
        assert kind == "PKCS12"
        assert store.chain == original.chain


def test_a_store_that_was_cut_is_refused_with_and_without_its_digest(
    stores: JavaStores, tmp_path: Path
) -> None:
    whole = stores.trust_store("JKS").read_bytes()
    cut = tmp_path / "cut"
    for size in range(0, len(whole), 7):
        cut.write_bytes(whole[:size])
        for password in (STORE_PASSWORD, None):
            with pytest.raises(TlsError):
                read_truststore(TrustStoreSettings(store_type=StoreType.JKS, location=cut, password=password))


def test_numbers_beyond_the_limits_are_refused_before_they_are_obeyed(
    stores: JavaStores, tmp_path: Path
) -> None:
    whole = bytearray(stores.trust_store("JKS").read_bytes())
    whole[8:12] = (2**31).to_bytes(4, "big")
    body = bytes(whole[:-20])
    digest = hashlib.sha1(STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()
    changed = tmp_path / "changed"
    changed.write_bytes(body + digest)
    with pytest.raises(TlsError, match="at most 4096 are read"):
        read_truststore(
            TrustStoreSettings(store_type=StoreType.JKS, location=changed, password=STORE_PASSWORD)
        )


def test_jceks_is_refused_with_a_remedy(stores: JavaStores, tmp_path: Path) -> None:
    path = tmp_path / "jceks"
    store = ("-storetype", "JCEKS", "-keystore", str(path))
    keytool("-genkeypair", *store, *ALIAS, "-dname", "CN=node", "-keyalg", "EC")
    with pytest.raises(TlsError, match="keytool -importkeystore -deststoretype pkcs12"):
        read_keystore(key_store(stores, "JKS", "EC", path))
