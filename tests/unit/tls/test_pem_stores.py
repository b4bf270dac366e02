"""PEM stores in files or settings, in any layout, and the contexts built from them."""

import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from structlog import get_logger
from structlog.testing import capture_logs

from kustos.tls import (
    Certificate,
    Side,
    TlsContexts,
    TlsError,
    make_context,
    prove,
    read_keystore,
    tls_settings,
)
from testkit.certificates import Authority, Holder, pem, rsa_key

PASSWORD = "key-secret"
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def node(authority: Authority) -> Holder:
    return authority.issue("node")


def keys_of(holder: Holder, **changed: str) -> dict[str, str]:
    """Return the settings of a store in the settings themselves."""
    keys = {"type": "PEM", "key": holder.key_pem, "certificate.chain": holder.chain_pem} | changed
    return {f"ssl.keystore.{name}": value for name, value in keys.items()}


def certificates_of(chain: Iterable[x509.Certificate]) -> tuple[Certificate, ...]:
    return tuple(Certificate(each.public_bytes(Encoding.DER), "") for each in chain)


def shape(text: str, layout: str) -> str:
    match layout:
        case "crlf":
            return text.replace("\n", "\r\n")
        case "blank lines around":
            return f"\n\n{text}\n\n"
        case "one line":
            return " ".join(text.split("\n"))
        case "words around":
            return f"subject=/CN=node\n{text}\nthe end"
        case _:
            return text


@pytest.mark.behaviour("B266", "B277")
@pytest.mark.parametrize("layout", ["as written", "crlf", "blank lines around", "one line", "words around"])
def test_pem_is_read_in_any_layout(node: Holder, layout: str) -> None:
    keys = {"key": shape(node.key_pem, layout), "certificate.chain": shape(node.chain_pem, layout)}
    settings = tls_settings(keys_of(node, **keys)).keystore
    assert settings is not None
    assert read_keystore(settings).chain == certificates_of(node.chain)


@pytest.mark.behaviour("B266", "B278")
def test_an_encrypted_key_needs_its_password(tmp_path: Path, node: Holder) -> None:
    file = node.write(tmp_path / "node.pem", PASSWORD)
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    make_context(tls_settings({**keys, "ssl.key.password": PASSWORD}), Side.SERVER)
    with pytest.raises(TlsError, match=r"set `ssl\.key\.password`"):
        make_context(tls_settings(keys), Side.SERVER)
    with pytest.raises(TlsError, match=r"`ssl\.key\.password` is wrong") as caught:
        make_context(tls_settings({**keys, "ssl.key.password": "wrong-secret"}), Side.SERVER)
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has 0 private keys"),
        ("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----", "is not base64"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "cannot be read"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----",
            "openssl pkcs8 -topk8",
        ),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, node: Holder, text: str, expected: str) -> None:
    file = tmp_path / "node.pem"
    file.write_text(text + node.chain_pem)
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
    with pytest.raises(TlsError) as caught:
        make_context(tls_settings(keys), Side.SERVER)
    assert expected in str(caught.value)
    assert f"`ssl.keystore.location` (`{file}`)" in str(caught.value)


def test_a_missing_or_too_large_file_is_named(tmp_path: Path) -> None:
    large = tmp_path / "large.pem"
    large.write_bytes(bytes(5 * 2**20))
    for file, expected in (
        (tmp_path / "none.pem", "no such file"),
        (large, "larger than"),
        (tmp_path, "is a dir"),
    ):
        keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}
        with pytest.raises(TlsError, match=expected):
            make_context(tls_settings(keys), Side.SERVER)


def test_the_certificate_of_another_key_is_refused(authority: Authority, node: Holder) -> None:
    other = authority.issue("other")
    with pytest.raises(TlsError, match="is not that of its private key"):
        make_context(tls_settings(keys_of(node, **{"certificate.chain": other.chain_pem})), Side.SERVER)


def test_a_weak_key_is_refused(authority: Authority) -> None:
    with pytest.raises(TlsError, match="too weak"):
        make_context(tls_settings(keys_of(authority.issue("weak", key=rsa_key(1024)))), Side.SERVER)


def test_a_listener_needs_a_key_and_trust_before_it_verifies(node: Holder) -> None:
    with pytest.raises(TlsError, match="a listener needs a private key"):
        make_context(tls_settings({}), Side.SERVER)
    with pytest.raises(TlsError, match=r"set `ssl\.truststore\.location`"):
        make_context(tls_settings({**keys_of(node), "ssl.client.auth": "requested"}), Side.SERVER)


@pytest.mark.behaviour("B259")
@pytest.mark.parametrize(
    ("auth", "mode"),
    [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)],
)
def test_a_listener_verifies_clients_as_configured(
    authority: Authority, node: Holder, auth: str, mode: ssl.VerifyMode
) -> None:
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.pem}
    made = make_context(tls_settings({**keys_of(node), **trust, "ssl.client.auth": auth}), Side.SERVER)
    prove(made, Side.SERVER)
    assert made.context.verify_mode is mode


@pytest.mark.parametrize("side", Side)
def test_an_expired_certificate_is_refused(authority: Authority, side: Side) -> None:
    made = make_context(tls_settings(keys_of(authority.issue("old", ends=YESTERDAY))), side)
    assert made.certificate is not None
    assert made.certificate.has_expired
    with pytest.raises(TlsError, match="certificate has expired"):
        prove(made, side)


class Files:
    """The stores of a listener in files, and its contexts."""

    def __init__(self, directory: Path, authority: Authority, **more: str) -> None:
        self.authority = authority
        self.store, self.trust = directory / "node.pem", directory / "trust.pem"
        authority.issue("node").write(self.store)
        authority.write(self.trust)
        self.keys = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        } | more
        self.contexts = TlsContexts(tls_settings(self.keys), Side.SERVER)

    def refused(self) -> str:
        """Return why the changed files are refused, once this was seen to change nothing."""
        former = self.contexts.context
        with pytest.raises(TlsError) as caught:
            self.contexts.replace()
        assert self.contexts.context is former
        assert not self.contexts.has_new_files()
        return str(caught.value)


@pytest.mark.behaviour("B274")
def test_changed_files_are_seen_and_put_in_force(tmp_path: Path, authority: Authority) -> None:
    files = Files(tmp_path, authority)
    former = files.contexts.context
    assert not files.contexts.has_new_files()
    authority.issue("node").write(files.store)
    assert files.contexts.has_new_files()
    files.contexts.replace()
    assert files.contexts.context is not former
    assert not files.contexts.has_new_files()


def test_an_invalid_file_keeps_the_current_stores(tmp_path: Path, authority: Authority) -> None:
    files = Files(tmp_path, authority)
    good = files.store.read_text()
    files.store.write_text(good[: len(good) // 2])
    assert "has no certificate" in files.refused()
    files.store.unlink()
    assert "no such file" in files.refused()
    authority.issue("node", ends=YESTERDAY).write(files.store)
    assert "certificate has expired" in files.refused()
    files.store.write_text(good)
    files.trust.write_text("nothing")
    assert "`ssl.truststore.location`" in files.refused()
    files.trust.write_text(authority.pem)
    files.contexts.replace()


@pytest.mark.behaviour("B264", "B276")
def test_names_of_the_certificate_may_change_only_if_allowed(tmp_path: Path, authority: Authority) -> None:
    files = Files(tmp_path, authority)
    authority.issue("other").write(files.store)
    assert "ssl.allow.dn.changes" in files.refused()
    authority.issue("node", hosts=["kafka.example"]).write(files.store)
    assert "ssl.allow.san.changes" in files.refused()
    free = files.keys | {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
    authority.issue("other", hosts=["kafka.example"]).write(files.store)
    files.contexts.replace(tls_settings(free))


@pytest.mark.behaviour("B275")
def test_stores_cannot_be_added_or_removed(tmp_path: Path, authority: Authority) -> None:
    files = Files(tmp_path, authority)
    without = {key: value for key, value in files.keys.items() if "truststore" not in key}
    with pytest.raises(TlsError, match="cannot be removed"):
        files.contexts.replace(tls_settings(without))
    contexts = TlsContexts(tls_settings(without), Side.SERVER)
    with pytest.raises(TlsError, match="cannot be added"):
        contexts.replace(tls_settings(files.keys))


def test_an_expired_certificate_in_the_trust_store_is_logged(tmp_path: Path, authority: Authority) -> None:
    files = Files(tmp_path, authority)
    with capture_logs() as logs:
        files.contexts.made.report_expired_trust(get_logger())
    assert logs == []
    files.trust.write_text(authority.pem + pem([authority.renewed(YESTERDAY)]))
    with capture_logs() as logs:
        files.contexts.renew(get_logger())
    assert [each["log_level"] for each in logs] == ["info", "warning"]
    assert logs[1]["certificates"] == ["certificate 2 (`CN=authority`)"]


def test_an_invalid_revocation_list_is_named(tmp_path: Path, authority: Authority, node: Holder) -> None:
    file = tmp_path / "revoked.pem"
    broken = "-----BEGIN X509 CRL-----\nMAAA\n-----END X509 CRL-----\n"
    file.write_text(authority.revoke(node.certificate) + broken)
    with pytest.raises(TlsError, match=r"list 2 in `kustos\.ssl\.crl\.location` \(`.*`\) cannot be read"):
        make_context(tls_settings({**keys_of(node), "kustos.ssl.crl.location": str(file)}), Side.SERVER)


def test_revocations_are_read(tmp_path: Path, authority: Authority, node: Holder) -> None:
    file = tmp_path / "revoked.pem"
    keys = {**keys_of(node), "kustos.ssl.crl.location": str(file)}
    file.write_text(authority.revoke(node.certificate))
    context = make_context(tls_settings(keys), Side.SERVER).context
    assert context.cert_store_stats()["crl"] == 1
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_CHAIN
    file.write_text(authority.pem)
    with pytest.raises(TlsError, match=r"has no `X509 CRL` in PEM"):
        make_context(tls_settings(keys), Side.SERVER)
