"""A server of Google's Cloud Storage on the loopback: fake-gcs-server, with one account and one bucket.

It knows the parts of the XML API that object stores' clients in Rust use. Objects are in its memory.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from testkit.go_modules import program
from testkit.paths import ROOT
from testkit.ports import LOOPBACK, free_port, is_listening
from testkit.processes import Server

__all__ = ["BUCKET", "GoogleStorage", "google_storage", "write_account"]

SOURCES: Final = ROOT / "testkit" / "google_storage" / "fake_gcs"
BUCKET: Final = "lake"
MAIL: Final = "kustos-tests@lake.iam.gserviceaccount.com"
START_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class GoogleStorage:
    """A running server; `log` has a line for each request, `account` is the file with the account's key."""

    url: str
    account: Path
    log: Path

    @property
    def environment(self) -> dict[str, str]:
        """The account, with the address, where clients of Google's store look for it."""
        return {"GOOGLE_SERVICE_ACCOUNT": str(self.account)}

    def address(self, path: str) -> str:
        """Return the address of a path in the bucket."""
        return f"gs://{BUCKET}/{path}"


@cache
def _program() -> str:
    return str(program(SOURCES))


def write_account(file: Path, url: str) -> rsa.RSAPublicKey:
    """Write the file of an account with a new key, as Google gives it out; return the public key.

    `url`: the server that clients with this file ask.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {"client_email": MAIL, "private_key": private, "private_key_id": "1", "gcs_base_url": url}
    file.write_text(json.dumps({"type": "service_account", **account}))
    return key.public_key()


@contextmanager
def google_storage(folder: Path) -> Iterator[GoogleStorage]:
    """Yield a server, with its log and its account's file in `folder`; it is gone at the end."""
    port = free_port()
    store = GoogleStorage(f"http://{LOOPBACK}:{port}", folder / "account.json", folder / "google.log")
    key = folder / "account.pem"
    public = write_account(store.account, store.url)
    key.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    command = [_program(), "-address", f"{LOOPBACK}:{port}", "-bucket", BUCKET, "-key", str(key)]
    server = Server("google storage", command, store.log)
    try:
        server.wait_ready(lambda: is_listening(port), timeout_s=START_S)
        yield store
    finally:
        server.kill()
