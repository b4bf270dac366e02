"""What the programs have in common: their orders, their records, their notes."""

import json
import sys
import threading
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

FILLING_BYTES: Final = (50, 2_000)
BURST: Final = 5
"""Records that are sent at once."""

PAUSE_S: Final = 0.2
"""From one burst to the next: load enough for faults to meet it, and cores left for who shares them."""

TRANSACTION_RECORDS: Final = 8
ABORTED_SHARE: Final = 0.2
PATIENCE_S: Final = 60.0
"""How long a program waits for its last records when it is told to end."""

ENDS_S: Final = 150.0
"""How long a program may take to end: for its last records, and for its groups and transactions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a program is told; `prefix` begins its record ids, `notes` is its file."""

    bootstrap: str
    users: dict[str, str]
    prefix: str
    seed: int
    notes: str
    stop: str

    @classmethod
    def of_arguments(cls) -> Self:
        """Return the orders in the file that the command line names."""
        return cls(**json.loads(Path(sys.argv[1]).read_text()))

    def write(self, path: Path) -> Path:
        """Write them into a file."""
        path.write_text(json.dumps(asdict(self)))
        return path

    @property
    def goes_on(self) -> bool:
        """Whether the program is not to end yet."""
        return not Path(self.stop).exists()


class Notes:
    """Appends lines to the program's file, from any thread."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("a", buffering=1)  # noqa: SIM115 (open until the program ends)
        # a client that is collected while a line is written says then what became of its records
        self._lock = threading.RLock()

    def __call__(self, kind: str, *fields: object) -> None:
        """Note a line."""
        with self._lock:
            self._file.write("\t".join((kind, *map(str, fields))) + "\n")


def payload(name: str, topic: str, filling: int) -> bytes:
    """Return a record that says what it is and where it belongs, with a checksum."""
    body = f"{name}|{topic}|{'x' * filling}|".encode()
    return body + b"%08x" % zlib.crc32(body)
