"""A folder of logs and the tables that they are read into, for tests of what is one log."""

from pathlib import Path

from pyspark.sql import SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import DeclaredCluster, IngestOptions, RunSummary, Tables
from tests.pipeline.events import kafka_line


def log_lines(node: int, first: int = 0, last: int = 30) -> str:
    """Return the lines of these seconds of a broker's log."""
    times = (f"2026-11-21 04:00:{at:02d},{node:03d}" for at in range(first, last))
    return "".join(f"{kafka_line(time=time, principal=f'User:u{time[-6:-4]}')}\n" for time in times)


def strimzi(text: str) -> str:
    """Return lines of Kafka's own layout in Strimzi's, as `kubectl logs` shows them."""
    return "".join(
        f"{line[1:24]} {line[26:]} [data-plane-kafka-request-handler-3]\n" for line in text.splitlines()
    )


def to_the_second(first: int, last: int) -> str:
    """Return lines of these seconds in a layout whose times have no milliseconds."""
    lines = log_lines(1, first, last).splitlines()
    bare = [line.removesuffix(" (kafka.authorizer.logger)")[32:] for line in lines]
    return "".join(
        f"2026-11-21 04:00:{at:02d} DEBUG [worker-3] kafka.authorizer.logger:42 - {text}\n"
        for at, text in enumerate(bare, first)
    )


class Home:
    """A folder of logs and its tables."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.audit, self.tables = spark, folder / "audit", Tables(folder / "tables")

    def write(self, **files: str | bytes) -> None:
        """Write files; `__` in a name stands for a folder."""
        for name, content in files.items():
            path = self.audit / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def run(self, source: str | None = None, cluster: str | None = None, **files: str | bytes) -> RunSummary:
        """Write files, and read what is new of all."""
        self.write(**files)
        options = IngestOptions(cluster=DeclaredCluster(cluster))
        return run_pipeline(self.spark, tables=self.tables, audit=self.audit, source=source, options=options)

    def events(self) -> int:
        """Return how many events the tables hold."""
        return self.tables.read(self.spark, "audit_events").count()
