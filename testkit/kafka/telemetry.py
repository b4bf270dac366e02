"""A broker with a plug-in for its clients' metrics (KIP-714): only such a broker offers them to send any."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from testkit.kafka.compiled import compiled
from testkit.waiting import whole_lines

SOURCE: Final = Path(__file__).with_name("TelemetryWriter.java")


@dataclass(frozen=True, slots=True)
class TelemetryPlugin:
    """The compiled plug-in, and the file to which it writes a line for each push."""

    jar: Path
    lines: Path

    @classmethod
    def made_in(cls, directory: Path) -> "TelemetryPlugin":
        """Pack the plug-in into a directory, made if necessary; raise `ChildError` if it does not compile."""
        directory.mkdir(parents=True, exist_ok=True)
        jar = directory / "telemetry-writer.jar"
        with ZipFile(jar, "w") as archive:
            for file in sorted(compiled(SOURCE).iterdir()):
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
        lines = [line.split() for line in whole_lines(self.lines)]
        return [(instance, int(size), last == "true") for instance, size, last in lines]
