"""Kafka's jars: downloaded by Maven once, checked against pinned digests, used offline from then on.

`python -m testkit.jars [SET...]` downloads the named sets (`kafka-legacy-2.8.2`), by default all; it needs no
third-party package.
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
from typing import Final, Self

from testkit import versions
from testkit.paths import CACHE, MAVEN_PROJECTS

MAVEN_TIMEOUT_S = 600
"""A cold local repository downloads about 50 MB; a longer download means a dead network."""

DIGITS: Final = 16
"""How much of a digest is in the name of a folder: enough that no two sets of pins share one."""


class JarsError(Exception):
    """The jars could not be downloaded, or differ from the pinned ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JarSet:
    """The runtime jars of one Maven project under `testkit/maven`.

    `version` is the release of Kafka, for a project that leaves it open.
    """

    name: str
    version: str | None = None

    @classmethod
    def labelled(cls, label: str) -> Self:
        """Return the set with this label; raise `JarsError` if there is none."""
        name, _, version = label.rpartition("-")
        jars = cls(name=label) if _project(label).exists() else cls(name=name, version=version)
        if not jars.digests.exists() or not jars.project.exists():
            raise JarsError(f"no set of jars `{label}`; use {', '.join(labels())}")
        return jars

    @property
    def label(self) -> str:
        """The name, with the version if the project leaves it open."""
        return self.name if self.version is None else f"{self.name}-{self.version}"

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers; none if the project names it."""
        return tuple(int(part) for part in (self.version or "").split(".") if part)

    @property
    def project(self) -> Path:
        """The Maven project that names the jars."""
        return _project(self.name)

    @property
    def digests(self) -> Path:
        """The SHA-256 of each jar, in the format of sha256sum(1)."""
        return MAVEN_PROJECTS / f"{self.label}.sha256"

    @property
    def home(self) -> Path:
        """The folder with everything kept for this set: another one if a pin changes, since JVMs may run."""
        pins = hashlib.sha256(self.project.read_bytes() + self.digests.read_bytes()).hexdigest()
        return CACHE / f"{self.label}-{pins[:DIGITS]}"

    @property
    def libs(self) -> Path:
        """The folder of the jars; complete if it exists."""
        return self.home / "libs"

    @property
    def classpath(self) -> str:
        """The argument of `java -cp`, in a fixed order: a class data archive is valid for this text only."""
        return ":".join(str(jar) for jar in sorted(self.resolve().glob("*.jar")))

    def resolve(self) -> Path:
        """Return the folder of the jars, downloaded by Maven the first time; `JarsError` if that fails.

        Safe to call from several processes at once: one downloads, the others wait for it.
        """
        if not self.digests.exists():
            raise JarsError(f"no digests for `{self.label}` in {MAVEN_PROJECTS.name}")
        if not self.libs.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            with (self.home / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not self.libs.exists():
                    self._download()
        return self.libs

    def _download(self) -> None:
        maven = shutil.which("mvn")
        if maven is None:
            raise JarsError("`mvn` is not installed; run `make setup`")
        fresh = self.home / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        if self.version is not None:
            goal.append(f"-Dkafka.version={self.version}")
        result = subprocess.run(
            [maven, "-q", "-B", "-f", str(self.project), *goal],
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if result.returncode:
            raise JarsError(f"maven could not download `{self.label}`\n{result.stdout}{result.stderr}")
        self._check(fresh)
        fresh.rename(self.libs)

    def _check(self, libs: Path) -> None:
        lines = (line.split() for line in self.digests.read_text().splitlines())
        pinned = {name: digest for digest, name in lines}
        found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in libs.glob("*.jar")}
        differing = sorted(
            name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name)
        )
        if differing:
            raise JarsError(f"jars of `{self.label}` are not the pinned ones: {', '.join(differing)}")


def labels() -> list[str]:
    """Return the labels of all sets."""
    return sorted(digests.stem for digests in MAVEN_PROJECTS.glob("*.sha256"))


def _project(name: str) -> Path:
    return MAVEN_PROJECTS / f"{name}.xml"


KAFKA = JarSet(name="kafka", version=versions.chosen())
"""The broker and its tools."""

KAFKA_STREAMS = JarSet(name="kafka-streams", version=versions.chosen())
"""Kafka Streams, to be used with the jars of `KAFKA`."""

WHOLE_KAFKA = JarSet(name="kafka", version=versions.WHOLE)
"""The jars below the two sets that the newest release lacks: their classes fit no other release."""

KAFKA_CONNECT = JarSet(name="kafka-connect", version=versions.WHOLE)
"""Kafka Connect, its file connectors and MirrorMaker 2, to be used with the jars of `WHOLE_KAFKA`."""

KAFKA_SHELL = JarSet(name="kafka-shell", version=versions.WHOLE)
"""The metadata shell, to be used with the jars of `WHOLE_KAFKA`."""

KAFKA_ORACLE = JarSet(name="kafka-oracle", version=versions.KAFKA)
"""The authorizer by itself, with logging of its own."""

LEGACY_KAFKA = JarSet(name="kafka-legacy", version=versions.LEGACY)
"""Tests call the classes of this release and run its broker."""

LEGACY_KAFKA_LOGGING = JarSet(name="kafka-legacy-logging", version=versions.LEGACY)
"""The logging of that broker, instead of the jar that silences its classes."""


def main(names: Sequence[str]) -> int:
    """Download the missing jars of the named sets, by default of all; return 1 after the first failure."""
    try:
        for label in names or labels():
            JarSet.labelled(label).resolve()
    except JarsError as error:
        sys.stderr.write(f"setup: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
