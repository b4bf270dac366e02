"""A broker with a plug-in for its clients' metrics (KIP-714): only such a broker offers them to send any."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from testkit.jars import KAFKA
from testkit.processes import ChildError

SOURCE: Final = Path(__file__).with_name("TelemetryWriter.java")
COMPILE_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class TelemetryPlugin:
    """The compiled plug-in, and the file to which it writes a line for each push."""

    jar: Path
    lines: Path

    @classmethod
    def made_in(cls, directory: Path) -> "TelemetryPlugin":
        """Compile the plug-in into a directory, which need not exist; raise `ChildError` if that fails."""
        classes = directory / "classes"
        classes.mkdir(parents=True)
        line = ["javac", "-proc:none", "-cp", KAFKA.classpath, "-d", str(classes), str(SOURCE)]
        outcome = subprocess.run(line, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
        if outcome.returncode:
            raise ChildError(f"the plug-in does not compile\n{outcome.stdout}{outcome.stderr}")
        jar = directory / "telemetry-writer.jar"
        with ZipFile(jar, "w") as archive:
            for file in sorted(classes.iterdir()):
                archive.write(file, file.name)
        return cls(jar, directory / "pushes")

    @property
    def properties(self) -> Mapping[str, str]:
        """The settings of its broker."""
        return {"metric.reporters": SOURCE.stem, "telemetry.writer.file": str(self.lines)}

    def pushes(self) -> list[tuple[str, int, bool]]:
        """Return the pushes so far: the client instance, the bytes, whether it was the last."""
        if not self.lines.exists():
            return []
        lines = [line.split() for line in self.lines.read_text().splitlines()]
        return [(instance, int(size), last == "true") for instance, size, last in lines]
