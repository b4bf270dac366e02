"""A provider over HTTPS: trusted by the file that the settings name, and by nothing else."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from kustos.client import ClientTls
from kustos.client.oauth import EndpointError, JwksSettings, ProviderEndpoint, RefreshingKeys
from kustos.runtime import SystemClock
from testkit.bearer_tokens import jwks, public
from testkit.http_provider import Provider
from testkit.waiting import wait_until


def _usage() -> x509.KeyUsage:
    """What Python 3.13 requires of an authority."""
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: name in {"digital_signature", "key_cert_sign"} for name in names})


def certificate(directory: Path, name: str) -> Path:
    """A certificate that signs itself, for 127.0.0.1, and its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (directory / f"{name}.crt").write_bytes(pem)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    store = directory / f"{name}.pem"
    store.write_bytes(secret + pem)
    return store


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path, "provider"))
    with Provider(context) as running:
        running.body = b"answer"
        yield running


def trusting(file: Path) -> ClientTls:
    return ClientTls.from_properties({"ssl.truststore.location": str(file), "ssl.truststore.type": "PEM"})


def test_a_provider_is_trusted_by_the_named_file(tmp_path: Path, provider: Provider) -> None:
    context = trusting(tmp_path / "provider.crt").context()
    assert ProviderEndpoint(provider.url).request(context) == b"answer"


def test_a_provider_that_nobody_vouches_for_is_refused_before_anything_is_sent(
    tmp_path: Path, provider: Provider
) -> None:
    certificate(tmp_path, "other")
    for context in (None, trusting(tmp_path / "other.crt").context()):
        with pytest.raises(EndpointError, match=r"has no trusted certificate: self.signed"):
            ProviderEndpoint(provider.url).request(context, b"grant", {"Authorization": "Basic secret"})
    assert provider.requests == []


async def until(condition: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


async def test_a_key_set_follows_the_store_of_its_provider(tmp_path: Path, provider: Provider) -> None:
    """A new certificate of the provider needs no restart."""
    provider.body = jwks(public("rsa-1"))
    trusted = tmp_path / "trusted.pem"
    certificate(tmp_path, "former")
    trusted.write_bytes((tmp_path / "former.crt").read_bytes())
    settings = JwksSettings(
        ProviderEndpoint(provider.url), retry_backoff_ms=1, retry_backoff_max_ms=20, tls=trusting(trusted)
    )
    keys = RefreshingKeys(settings, SystemClock())
    with capture_logs() as logs:
        keys.start()
        try:
            await until(lambda: "no trusted" in str(logs), "nobody vouches for it")
            assert keys.keys.keys == ()
            trusted.write_bytes((tmp_path / "provider.crt").read_bytes())
            await until(lambda: keys.is_loaded, "the new store is in force")
        finally:
            await keys.stop()
    assert "changed key and trust stores are in force" in str(logs)


def test_a_provider_under_another_name_is_refused(tmp_path: Path, provider: Provider) -> None:
    context = trusting(tmp_path / "provider.crt").context()
    with pytest.raises(EndpointError, match=r"has no trusted certificate: .*[Hh]ostname"):
        ProviderEndpoint(provider.url.replace("127.0.0.1", "localhost")).request(context)
