"""Kafka's jars: downloaded by Maven once, checked against pinned digests, used offline from then on.

`python -m testkit.jars [SET...]` downloads the named sets, by default all; it needs no third-party package.
Later test runs are concurrent, and two Mavens must not write to one local repository.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testkit.paths import CACHE, MAVEN_PROJECTS

MAVEN_TIMEOUT_S = 600
"""A cold local repository downloads about 50 MB; a longer download means a dead network."""


class JarsError(Exception):
    """The jars could not be downloaded, or differ from the pinned ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """The runtime jars of one Maven project under `testkit/maven`."""

    name: str

    @property
    def project(self) -> Path:
        """The Maven project that pins the versions."""
        return MAVEN_PROJECTS / f"{self.name}.xml"

    @property
    def digests(self) -> Path:
        """The SHA-256 of each jar, in the format of sha256sum(1)."""
        return MAVEN_PROJECTS / f"{self.name}.sha256"

    @property
    def home(self) -> Path:
        """The folder with everything kept for this set."""
        return CACHE / self.name

    @property
    def libs(self) -> Path:
        """The folder of the jars; complete only after `resolve`."""
        return self.home / "libs"

    @property
    def classpath(self) -> str:
        """The argument of `java -cp`, in a fixed order: a class data archive is valid for this text only."""
        return ":".join(str(jar) for jar in sorted(self.resolve().glob("*.jar")))

    def resolve(self) -> Path:
        """Return the folder of the jars, downloaded by Maven the first time; `JarsError` if that fails.

        Safe to call from several processes at once: one downloads, the others wait for it.
        """
        stamp = self.home / "complete"
        wanted = hashlib.sha256(self.project.read_bytes() + self.digests.read_bytes()).hexdigest()
        if _reads(stamp, wanted):
            return self.libs
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _reads(stamp, wanted):
                self._bring()
                stamp.write_text(wanted)
        return self.libs

    def _bring(self) -> None:
        maven = shutil.which("mvn")
        if maven is None:
            raise JarsError("`mvn` is not installed; run `make setup`")
        shutil.rmtree(self.libs, ignore_errors=True)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={self.libs}"]
        result = subprocess.run(
            [maven, "-q", "-B", "-f", str(self.project), *goal],
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if result.returncode:
            raise JarsError(f"maven could not bring `{self.name}`\n{result.stdout}{result.stderr}")
        self._check()

    def _check(self) -> None:
        lines = (line.split() for line in self.digests.read_text().splitlines())
        pinned = {name: digest for digest, name in lines}
        found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in self.libs.glob("*.jar")}
        differing = sorted(
            name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name)
        )
        if differing:
            raise JarsError(f"jars of `{self.name}` are not the pinned ones: {', '.join(differing)}")


def _reads(file: Path, text: str) -> bool:
    return file.exists() and file.read_text() == text


KAFKA = JarSet(name="kafka-4.3.1")
"""The broker and its tools: the newest version that has all of them."""

KAFKA_STREAMS = JarSet(name="kafka-streams-4.3.1")
"""Kafka Streams, to be used with the jars of `KAFKA`."""

LEGACY_KAFKA = JarSet(name="kafka-2.8.2")
"""The last Kafka with the interface of KIP-11: tests call its classes and run its broker."""

LEGACY_KAFKA_LOGGING = JarSet(name="kafka-2.8.2-logging")
"""The logging of that broker, instead of the jar that silences its classes."""

KAFKA_CONNECT = JarSet(name="kafka-connect-4.3.1")
"""Kafka Connect, its file connectors and MirrorMaker 2, to be used with the jars of `KAFKA`."""


def main(names: Sequence[str]) -> int:
    """Download the missing jars of the named sets, by default of all; return 1 after the first failure."""
    try:
        for name in names or sorted(project.stem for project in MAVEN_PROJECTS.glob("*.xml")):
            JarSet(name=name).resolve()
    except JarsError as error:
        sys.stderr.write(f"setup: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
