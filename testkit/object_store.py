"""A real S3 server on the loopback: versitygw, over a folder, with one account and one bucket."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from testkit.go_modules import VERSITYGW
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

BUCKET = "lake"
START_S = 60.0
KEY = "kustos-tests"


class Store(Protocol):
    """A running server of any kind, as its clients need it."""

    @property
    def log(self) -> Path:
        """The file with a line for each request."""

    @property
    def environment(self) -> dict[str, str]:
        """What clients look for in their environment."""

    def address(self, path: str) -> str:
        """Return the address of a path in the bucket."""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A running server; `folder` has what the bucket holds, `log` a line for each request."""

    url: str
    folder: Path
    log: Path
    secret: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """The credentials and the address, where clients of S3 look for them."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
        }

    def address(self, path: str) -> str:
        """Return the address of a path in the bucket."""
        return f"s3://{BUCKET}/{path}"


@contextmanager
def object_store(folder: Path, *, optimized: bool = False) -> Iterator[ObjectStore]:
    """Yield a server that keeps its files below `folder`; it is gone at the end.

    `optimized`: it is to be measured.
    """
    port, secret = free_port(), secrets.token_hex(16)
    bucket = folder / "store" / BUCKET
    bucket.mkdir(parents=True)
    store = ObjectStore(f"http://{LOOPBACK}:{port}", bucket, folder / "versitygw.log", secret)
    program = VERSITYGW.binary("./cmd/versitygw", optimized=optimized)
    command = [str(program), "--port", f"{LOOPBACK}:{port}", "posix"]
    account = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": secret}
    server = Server("versitygw", [*command, str(bucket.parent)], store.log, account)
    try:
        server.wait_ready(lambda: _answers(store.url), timeout_s=START_S)
        yield store
    finally:
        server.kill()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except HTTPError:
        return True  # it wants credentials
    except (URLError, OSError):
        return False
