"""Keys and certificates that tests make for themselves, in PEM."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stores:
    """PEM files: who is trusted, and key with certificate of the broker (for 127.0.0.1) and of a client."""

    authority: Path
    broker: Path
    client: Path


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def issue(directory: Path, authority: Path, name: str, password: str | None = None) -> Path:
    """Return a file of a private key and a certificate that the authority signed."""
    key, request, certificate = (directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
    names = directory / f"{name}.ext"
    names.write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(key))
    openssl("req", "-new", "-key", str(key), "-subj", f"/CN={name}", "-out", str(request))
    signed = ["x509", "-req", "-in", str(request), "-CA", str(authority), "-CAkey", f"{authority}.key"]
    openssl(*signed, "-CAcreateserial", "-days", "1", "-extfile", str(names), "-out", str(certificate))
    if password is not None:
        plain, key = key, directory / f"{name}.locked"
        cipher = ["-topk8", "-v2", "aes-256-cbc", "-passout", f"pass:{password}"]
        openssl("pkcs8", "-in", str(plain), *cipher, "-out", str(key))
    store = directory / f"{name}.pem"
    store.write_text(key.read_text() + certificate.read_text())
    return store


def make_stores(directory: Path, client_password: str | None = None) -> Stores:
    """Make an authority, and what it signed for a broker and a client."""
    authority = directory / "ca.pem"
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=authority"]
    openssl(*made, "-keyout", f"{authority}.key", "-out", str(authority))
    broker = issue(directory, authority, "broker")
    return Stores(authority, broker, issue(directory, authority, "client", client_password))
