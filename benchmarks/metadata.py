"""ACLs created over the wire and recovered from disk: kustos beside a single-node Kafka.

Creations go as CreateAcls v3, one ACL each, over PLAINTEXT: to Kafka with StandardAuthorizer, combined
broker and controller, linger 0; and to a kustos node with its own metadata log. Both answer when the record
is on the disk (fsync). One client, then 32 at a time; rounds alternate.

`recover-*`: a snapshot file, from its first byte to the first decision, each round in a process of its own;
Java decodes the same file with Kafka's own classes into a delta, an image and `loadSnapshot`. Memory is the
most that was resident. `…-processor` is the processor time of all threads, which says more than the wall
where the machine is shared.
"""

import asyncio
import itertools
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from benchmarks.authorizing.changes import distinct_acls
from benchmarks.authorizing.drawing import Panel, drawing
from benchmarks.authorizing.recovering import Recovered, snapshot_file
from benchmarks.figures import QUICK, Figure, emit, progress
from kustos.metadata.image import acl_record
from kustos.metadata.log import snapshot_pieces
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord
from testkit.differential.oracle import build
from testkit.kafka import KAFKA, PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kustos import KustosNode, KustosSettings

CLIENTS: Final = 32
ALONE: Final = 100 if QUICK else 1000
EACH_OF_MANY: Final = 10 if QUICK else 100
WARM_UP: Final = 5 if QUICK else 60
ROUNDS: Final = 1 if QUICK else 5
RECOVERED: Final = [10_000] if QUICK else [10_000, 100_000, 1_000_000]
RECOVERIES: Final = 1 if QUICK else 3
JAVA_HEAP_MB_MIN: Final = 256
JAVA_HEAP_BYTES_PER_ACL: Final = 1000
"""What the million needs, and some room for the collector."""
LIMIT_S: Final = 600
ASSETS: Final = Path(__file__).parents[1] / "docs" / "assets"

_NUMBERS: Final = itertools.count()


def create_acl(number: int) -> bytes:
    """Return the frame of a CreateAcls v3 that makes one ACL, unlike any other."""
    name = f"topic-{number}".encode()
    acl = bytes([2, len(name) + 1]) + name + b"\x03" + b"\x0bUser:alice" + b"\x02*" + b"\x03\x03\x00"
    body = b"\x00\x1e\x00\x03" + number.to_bytes(4) + b"\x00\x05bench\x00" + b"\x02" + acl + b"\x00"
    return len(body).to_bytes(4) + body


def require_success(answer: bytes) -> None:
    """Raise unless the one ACL was made: correlation id, tags, throttle time, one result, its code."""
    if answer[9] != 2 or answer[10:12] != b"\x00\x00":
        raise SystemExit(f"an ACL was not made: {answer.hex()}")


class Client:
    """One connection that creates ACLs, one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, bootstrap: str) -> "Client":
        host, port = bootstrap.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    async def create(self, count: int) -> list[float]:
        """Create so many; return the milliseconds of each."""
        took = []
        for _ in range(count):
            frame = create_acl(next(_NUMBERS))
            begun = time.perf_counter()
            self._writer.write(frame)
            size = int.from_bytes(await self._reader.readexactly(4))
            answer = await self._reader.readexactly(size)
            took.append((time.perf_counter() - begun) * 1000)
            require_success(answer)
        return took

    def close(self) -> None:
        self._writer.close()


async def crowd(bootstrap: str, clients: int, each: int) -> tuple[list[float], float]:
    """Return the milliseconds of each creation by so many clients at once, and creations per second."""
    connected = [await Client.connect(bootstrap) for _ in range(clients)]
    await asyncio.gather(*(client.create(2) for client in connected))
    begun = time.perf_counter()
    took = await asyncio.gather(*(client.create(each) for client in connected))
    seconds = time.perf_counter() - begun
    for client in connected:
        client.close()
    return [one for several in took for one in several], clients * each / seconds


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


Found = dict[str, list[float]]


def measure(bootstrap: str, found: Found) -> None:
    """Add the figures of one round."""
    alone, _ = asyncio.run(crowd(bootstrap, 1, ALONE))
    many, rate = asyncio.run(crowd(bootstrap, CLIENTS, EACH_OF_MANY))
    found["create-acl-p50-1"].append(percentile(alone, 0.5))
    found["create-acl-p99-1"].append(percentile(alone, 0.99))
    found["create-acl-p50-32"].append(percentile(many, 0.5))
    found["create-acl-rate-32"].append(rate)


NAMES: Final = ("create-acl-p50-1", "create-acl-p99-1", "create-acl-p50-32", "create-acl-rate-32")


def creations() -> list[Figure]:
    """Create ACLs on both sides in turn."""
    directory = Path(tempfile.mkdtemp(prefix="kustos-bench-"))
    broker = NodeSettings(
        listeners=(PLAINTEXT,), authorizer=STANDARD_AUTHORIZER, super_users=("User:ANONYMOUS",), peak=True,
        heap="1g",
    )  # fmt: skip
    guard = KustosSettings(protocol="PLAINTEXT", super_users=("ANONYMOUS",), audit=False)
    ours: Found = {name: [] for name in NAMES}
    theirs: Found = {name: [] for name in NAMES}
    try:
        progress(f"starting Kafka {KAFKA.version} and kustos")
        with (
            KafkaNode(directory / "kafka", broker) as kafka,
            KustosNode(directory / "kustos", kafka.address("PLAINTEXT"), guard) as kustos,
        ):
            for bootstrap in (kafka.bootstrap, kustos.bootstrap):
                asyncio.run(crowd(bootstrap, CLIENTS, WARM_UP))
            for number in range(1, ROUNDS + 1):
                measure(kafka.bootstrap, theirs)
                measure(kustos.bootstrap, ours)
                for name in NAMES:
                    progress(
                        f"  {name} {number}/{ROUNDS}: {theirs[name][-1]:.2f}, kustos {ours[name][-1]:.2f}"
                    )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return [
        Figure(
            name=name,
            unit="ACLs/s" if "rate" in name else "ms",
            ours=statistics.median(ours[name]),
            theirs=statistics.median(theirs[name]),
            size=ALONE if name.endswith("-1") else CLIENTS * EACH_OF_MANY,
            higher_is_better="rate" in name,
            floor=1.0,
        )
        for name in NAMES
    ]


def write_snapshot(directory: Path, size: int) -> None:
    """Write a metadata directory that is one snapshot of so many mixed ACLs."""
    rng = random.Random(size)

    def records() -> Iterator[MetadataRecord]:
        yield FeatureLevelRecord("metadata.version", 30)
        for binding in distinct_acls(size):
            yield acl_record(UUID(int=rng.getrandbits(128)), binding)

    path = snapshot_file(directory)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.writelines(snapshot_pieces(records(), epoch=0, timestamp_ms=1))


def our_recovery(directory: Path) -> Recovered:
    command = [sys.executable, "-m", "benchmarks.authorizing.recovering", str(directory)]
    return Recovered.parse(_run(command))


def their_recovery(directory: Path, size: int) -> Recovered:
    heap_mb = max(JAVA_HEAP_MB_MIN, size * JAVA_HEAP_BYTES_PER_ACL >> 20)
    command = ["java", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-cp", build(), "kustos.oracle.LogFiles"]
    return Recovered.parse(_run([*command, "recover", str(snapshot_file(directory))]))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
    return done.stdout


PARTS: Final = (
    ("", "ms", "milliseconds"),
    ("-processor", "ms", "processor_ms"),
    ("-memory", "MB", "peak_mb"),
)


def recoveries() -> list[Figure]:
    """Recover snapshots of several sizes on both sides in turn."""
    figures = []
    for size in RECOVERED:
        with tempfile.TemporaryDirectory(prefix="kustos-bench-") as folder:
            progress(f"recover: writing a snapshot of {size} ACLs")
            write_snapshot(Path(folder) / "log", size)
            pairs = []
            for number in range(1, RECOVERIES + 1):
                pairs.append((their_recovery(Path(folder) / "log", size), our_recovery(Path(folder) / "log")))
                progress(f"  recover {size} {number}/{RECOVERIES}: {pairs[-1][0]}, kustos {pairs[-1][1]}")
        shown = re.sub("000$", "k", re.sub("000000$", "m", str(size)))
        for suffix, unit, field in PARTS:
            figures.append(
                Figure(
                    name=f"recover-{shown}{suffix}",
                    unit=unit,
                    ours=statistics.median(getattr(ours, field) for _, ours in pairs),
                    theirs=statistics.median(getattr(theirs, field) for theirs, _ in pairs),
                    size=size,
                    floor=1.0 if shown == "1m" else None,
                )
            )
    return figures


def write_growth(figures: list[Figure]) -> None:
    """Draw how recovering grows with the number of ACLs."""

    def curves(suffix: str) -> dict[str, list[tuple[float, float]]]:
        chosen = [each for each in figures if re.fullmatch(rf"recover-\d+[km]{suffix}", each.name)]
        return {
            "kustos": [(float(each.size), each.ours) for each in chosen],
            "Kafka": [(float(each.size), each.theirs) for each in chosen],
        }

    titles = {"": "to the first decision, ms", "-processor": "processor time, ms", "-memory": "memory, MB"}
    panels = [Panel(title, curves(suffix)) for suffix, title in titles.items()]
    version = ".".join(str(part) for part in sys.version_info[:2])
    text = drawing(panels, f"ACLs in a snapshot; CPython {version}, Kafka {KAFKA.version}'s classes")
    (ASSETS / "metadata-recovery.svg").write_text(text, encoding="utf-8")


def main() -> None:
    """Run what was asked for (`create`, `recover`; both without a word) and print its figures."""
    wanted = sys.argv[1:] or ["create", "recover"]
    figures = creations() if "create" in wanted else []
    if "recover" in wanted:
        recovered = recoveries()
        figures += recovered
        if not QUICK:
            write_growth(recovered)
    for figure in figures:
        progress(figure.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
