"""From a snapshot on disk to the first decision, in a process that did nothing else before.

python -m benchmarks.authorizing.recovering DIRECTORY
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Recovered:
    """How it went: of how many ACLs, how long each part took, and how much was resident at most."""

    acls: int
    decoding_ms: float
    loading_ms: float
    deciding_ms: float
    peak_mb: float
    processor_ms: float
    """Of all threads."""

    @property
    def milliseconds(self) -> float:
        """From the first byte to the first decision."""
        return self.decoding_ms + self.loading_ms + self.deciding_ms

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read what either side prints: a count, three times in nanoseconds, kilobytes, processor time."""
        acls, decoding, loading, deciding, peak_kb, processor = (int(field) for field in line.split())
        return cls(acls, decoding / 1e6, loading / 1e6, deciding / 1e6, peak_kb / 1024, processor / 1e6)

    def __str__(self) -> str:
        parts = f"{self.decoding_ms:.0f} + {self.loading_ms:.0f} + {self.deciding_ms:.0f}"
        return f"{parts} ms, {self.processor_ms:.0f} ms of processor, {self.peak_mb:.0f} MB"


def snapshot_file(directory: Path) -> Path:
    """Where the snapshot is."""
    return directory / "__cluster_metadata-0" / f"{0:020d}-{0:010d}.checkpoint"


def main() -> None:
    from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
    from kustos.authorizer import StandardAuthorizer
    from kustos.metadata.directory import read_image

    clock = time.perf_counter_ns
    before = time.process_time_ns()
    begun = clock()
    image = read_image(Path(sys.argv[1]))
    decoded = clock()
    authorizer = StandardAuthorizer()
    authorizer.load_snapshot(image.acls.items())
    authorizer.complete_initial_load()
    loaded = clock()
    session = authorizer.session(KafkaPrincipal.parse("User:nobody"), "10.0.0.1")
    session.decide(AclOperation.READ, ResourceType.TOPIC, "first")
    decided = clock()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (peak_kb,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    processor = time.process_time_ns() - before
    print(len(image.acls), decoded - begun, loaded - decoded, decided - loaded, peak_kb, processor)


if __name__ == "__main__":
    main()
