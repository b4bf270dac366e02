"""Go modules that tests use: downloaded by Go once, checked against pinned digests, then used offline.

A server of S3 is built from one; two others hold the schemas of what Kubernetes and the Prometheus operator
accept. A client of Kafka and a server of Google's store are modules of this repository.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testkit.paths import CACHE

HOME = CACHE / "go"
GO_TIMEOUT_S = 1_200
"""A server of S3 is compiled in a minute of two cores; twenty times that means a dead network."""


class GoError(Exception):
    """A module could not be downloaded or compiled, or differs from the pinned one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModule:
    """A module at a version; `digest` is the hash of its files as go.sum has it."""

    path: str
    version: str
    digest: str

    def source(self) -> Path:
        """Return the folder of its files; raise `GoError`."""
        told = json.loads(_go("mod", "download", "-json", f"{self.path}@{self.version}"))
        if told.get("Sum") != self.digest:
            raise GoError(
                f"`{self.path}` {self.version} has the digest {told.get('Sum')}, not the pinned one"
            )
        return Path(told["Dir"])

    def binary(self, package: str, *, optimized: bool = False) -> Path:
        """Return the program that one of its packages is, compiled the first time; raise `GoError`.

        The module's own go.sum pins what it is compiled with. Whoever measures wants it `optimized`, which
        takes twice as long to compile.
        """
        name = f"{Path(package).name}-{self.version}"
        return _built(f"{name}-optimized" if optimized else name, package, self.source, optimized=optimized)


def program(folder: Path) -> Path:
    """Return the program that a module of this repository is, compiled the first time; raise `GoError`.

    Its go.sum pins what it is compiled with.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return _built(f"{folder.name}-{digest[:16]}", ".", lambda: folder)


UNOPTIMIZED = ("-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w")
"""What compiler and linker are told where only what a program does counts: no optimization, no debugging."""

GARBAGE_PERCENT = "400"
"""How much the compiler's memory grows before it collects garbage, by default 100: a tenth less work."""


def _built(name: str, package: str, source: Callable[[], Path], *, optimized: bool = False) -> Path:
    made = HOME / "bin" / name
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_name(f"{made.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            fresh = made.with_name(f"{made.name}.new")
            flags = () if optimized else UNOPTIMIZED
            _go("build", "-mod=readonly", *flags, "-o", str(fresh), package, cwd=source())
            fresh.rename(made)
    return made


@cache
def _environment() -> Mapping[str, str]:
    # writable, since everything in the cache may be deleted
    own = {
        "GOMODCACHE": str(HOME / "mod"),
        # one for all, 350 MB: Go's own packages are a fifth of a server of S3
        "GOCACHE": str(HOME / "build"),
        "GOFLAGS": "-modcacherw",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
        "GOGC": GARBAGE_PERCENT,
    }
    return {**os.environ, **own}


def _go(*arguments: str, cwd: Path | None = None) -> str:
    HOME.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        # the package's own script names the interpreter of the environment that it was installed into
        [sys.executable, "-c", "from go import main; main()", *arguments],
        cwd=cwd or HOME,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=GO_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise GoError(f"go {arguments[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


KUBERNETES = GoModule(
    path="k8s.io/kubernetes", version="v1.31.4", digest="h1:VQDX52gTQnq8C/jCo48AQuDsWbWMh9XXxhQRDYjgakw="
)
PROMETHEUS_OPERATOR = GoModule(
    path="github.com/prometheus-operator/prometheus-operator",
    version="v0.79.2",
    digest="h1:H/HCiMS4dXQyiFHw28PFlWMh15YUraL3MFe8u7k7dGA=",
)
VERSITYGW = GoModule(
    path="github.com/versity/versitygw",
    version="v1.8.0",
    digest="h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc=",
)
"""A server of S3 over a folder, with conditional puts."""
