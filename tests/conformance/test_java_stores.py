"""Stores that Java's `keytool` made: read whole, with the right password only, and never when changed."""

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

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
from testkit.certificates import ISSUER_AT, STORE_PASSWORD, SUBJECT_AT, Authority, keytool, resigned

KEY_PASSWORD = "key-secret"
ALIAS = ("-alias", "node", "-storepass", STORE_PASSWORD)
KINDS = ("JKS", "PKCS12")
ALGORITHMS = {"RSA": ("-keysize", "2048"), "EC": ("-groupname", "secp256r1")}


@dataclass(frozen=True)
class JavaStores:
    directory: Path
    certificates: dict[tuple[str, str], bytes]
    trusted: bytes

    def key_store(self, kind: str, algorithm: str) -> Path:
        return self.directory / f"{kind}-{algorithm}"

    def trust_store(self, kind: str) -> Path:
        return self.directory / f"{kind}-trust"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> JavaStores:
    directory = tmp_path_factory.mktemp("java-stores")
    authority = Authority()
    trusted = authority.write(directory / "authority.pem")
    stores = JavaStores(directory, {}, authority.certificate.public_bytes(Encoding.DER))
    for kind in KINDS:
        for algorithm, size in ALGORITHMS.items():
            store = ("-storetype", kind, "-keystore", str(stores.key_store(kind, algorithm)))
            own = ("-keypass", KEY_PASSWORD) if kind == "JKS" else ()
            name = ("-dname", "CN=node,O=kustos", "-keyalg", algorithm, *size)
            keytool("-genkeypair", *store, *ALIAS, *own, *name)
            exported = directory / f"{kind}-{algorithm}.crt"
            keytool("-exportcert", *store, *ALIAS, "-file", str(exported))
            stores.certificates[kind, algorithm] = exported.read_bytes()
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
    assert [each.der for each in store.chain] == [stores.certificates[kind, algorithm]]
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
    assert [each.der for each in read_keystore(settings).chain] == [stores.certificates[kind, "EC"]]


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
    assert {each.der for each in read_truststore(settings)} == {stores.trusted}
    wrong = TrustStoreSettings(
        store_type=StoreType(kind), location=stores.trust_store(kind), password="wrong-secret"
    )
    with pytest.raises(TlsError, match=r"`ssl\.truststore\.password` is wrong"):
        read_truststore(wrong)


def test_a_jks_trust_store_is_read_without_its_password(stores: JavaStores) -> None:
    """As in Java; its digest is not looked at then."""
    settings = TrustStoreSettings(store_type=StoreType.JKS, location=stores.trust_store("JKS"))
    assert {each.der for each in read_truststore(settings)} == {stores.trusted}


def test_a_trust_store_with_a_key_trusts_its_certificate_or_is_refused(stores: JavaStores) -> None:
    """In PKCS12 nothing shows which certificates are trusted, and which only stand above the key's."""
    jks = TrustStoreSettings(
        store_type=StoreType.JKS, location=stores.key_store("JKS", "EC"), password=STORE_PASSWORD
    )
    assert [each.der for each in read_truststore(jks)] == [stores.certificates["JKS", "EC"]]
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


ODD_NAME = bytes.fromhex("300f310d300b060355040a130441542654")
"""`O=AT&T` as PrintableString, which has no ampersand."""

UNREADABLE_NAME = bytes.fromhex("3010310e300c06035504031b05616c696365")
"""`CN=alice` as GeneralString, which OpenSSL does not read."""


def trust_store_with(directory: Path, kind: str, name: bytes) -> dict[str, str]:
    """Return the settings of a store with two authorities, the second of which has this name."""
    path = directory / "trust"
    authority = Authority()
    names = {ISSUER_AT: name, SUBJECT_AT: name}
    texts = {"good": authority.pem, "odd": resigned(authority.certificate, authority.key, names)}
    if kind == "PEM":
        path.write_text("".join(texts.values()))
    for alias, text in texts.items() if kind != "PEM" else ():
        file = directory / alias
        file.write_text(text)
        store = ("-storetype", kind, "-keystore", str(path), "-storepass", STORE_PASSWORD)
        keytool("-importcert", "-noprompt", *store, "-alias", alias, "-file", str(file))
    password = {} if kind == "PEM" else {"ssl.truststore.password": STORE_PASSWORD}
    return {"ssl.truststore.type": kind, "ssl.truststore.location": str(path), **password}


@pytest.mark.parametrize("kind", ["PEM", *KINDS])
def test_one_oddly_encoded_certificate_does_not_spoil_its_store(tmp_path: Path, kind: str) -> None:
    context = make_context(tls_settings(trust_store_with(tmp_path, kind, ODD_NAME)), Side.CLIENT).context
    assert context.cert_store_stats()["x509"] == 2


@pytest.mark.parametrize(("kind", "place"), [
    ("PEM", "certificate 2"), ("JKS", "the entry `odd`"), ("PKCS12", "the entry `odd`"),
])  # fmt: skip
def test_a_certificate_that_openssl_does_not_read_is_named(tmp_path: Path, kind: str, place: str) -> None:
    keys = trust_store_with(tmp_path, kind, UNREADABLE_NAME)
    with pytest.raises(TlsError) as caught:
        make_context(tls_settings(keys), Side.CLIENT)
    assert str(caught.value) == (
        f"{place} (`CN=alice`) of `ssl.truststore.location` (`{tmp_path / 'trust'}`) cannot be read"
    )


@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_a_key_store_with_an_oddly_encoded_name_serves(tmp_path: Path, kind: str) -> None:
    holder = Authority().issue("placeholder")
    odd = resigned(holder.certificate, holder.key, {ISSUER_AT: ODD_NAME, SUBJECT_AT: ODD_NAME})
    (tmp_path / "node.pem").write_text(holder.key_pem + odd)
    if kind == "PKCS12":
        line = ["openssl", "pkcs12", "-export", "-in", str(tmp_path / "node.pem")]
        line += ["-out", str(tmp_path / "node.p12"), "-passout", f"pass:{STORE_PASSWORD}"]
        subprocess.run(line, check=True, capture_output=True)
    password = {} if kind == "PEM" else {"ssl.keystore.password": STORE_PASSWORD}
    location = str(tmp_path / ("node.pem" if kind == "PEM" else "node.p12"))
    keys = {"ssl.keystore.type": kind, "ssl.keystore.location": location, **password}
    prove(make_context(tls_settings(keys), Side.SERVER), Side.SERVER)


@pytest.mark.parametrize(("kind", "options"), [
    ("JKS", ()), ("PKCS12", ()), ("PKCS12", ("-J-Dkeystore.pkcs12.legacy",)),
])  # fmt: skip
def test_a_store_with_two_private_keys_is_refused_and_says_which(
    tmp_path: Path, kind: str, options: tuple[str, ...]
) -> None:
    path = tmp_path / "two"
    for alias in ("one", "two"):
        store = ("-storetype", kind, "-keystore", str(path), "-storepass", STORE_PASSWORD, "-alias", alias)
        keytool(
            "-genkeypair", *options, *store, "-dname", "CN=node", "-keyalg", "EC", "-keypass", STORE_PASSWORD
        )
    settings = KeyStoreSettings(store_type=StoreType(kind), location=path, password=STORE_PASSWORD)
    with pytest.raises(TlsError, match=r"it has 2 private keys \(`one`, `two`\), one is needed") as caught:
        read_keystore(settings)
    assert f"`ssl.keystore.location` (`{path}`)" in str(caught.value)
