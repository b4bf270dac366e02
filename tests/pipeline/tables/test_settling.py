"""Copies are told from repetitions as plain Python tells them, in one run and over two."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables import IngestOptions, Tables, ingest
from kustos.pipeline.tables.deduplication.outcomes import EVENT, QUARANTINED
from tests.pipeline.events import event_line, kafka_line

WORLDS = 40
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Line:
    """A line where it stands; worlds share no log, file or event id."""

    world: int
    file: str
    text: str
    log: str
    position: int | None

    @property
    def row(self) -> tuple[str, str, str, int | None, None, None, None]:
        return (
            f"{self.world}/{self.file}",
            self.text,
            f"{self.world}-{self.log}",
            self.position,
            None,
            None,
            None,
        )

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal for copies, and for repetitions within a file."""
        if self.text.startswith("{"):
            return (self.world, self.text)
        return (self.world, self.log, self.position, self.text.rstrip("\r"))


def lines_of(world: int, random: Random) -> list[Line]:
    texts = [event_line(world * 100 + number) for number in range(3)]
    texts += [event_line(world * 100, time_ms=1_795_233_600_123 + DAY_MS)]  # an id of another day
    texts += [kafka_line(), kafka_line() + "\r", kafka_line(principal="User:eve"), "junk", "", "\ufffd"]
    made = []
    for file in ("a", "a.gz", "b", "t/0"):
        log = {"t/0": "topic"}.get(file, file[0])
        for number in range(random.randrange(6)):
            position = random.randrange(number + 1) if log == "topic" else None
            text = random.choice(texts) if position is None else texts[position % len(texts)]
            made.append(Line(world, file, text, log, position))
    return made


def kept_by_python(lines: list[Line]) -> Counter[tuple[int, str]]:
    """Count what is kept, by world and outcome: of each key as many as one file has of it."""
    counts: dict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
    texts: dict[tuple[object, ...], Line] = {}
    for line in lines:
        counts[line.key][line.file] += 1
        texts[line.key] = line
    kept: Counter[tuple[int, str]] = Counter()
    for key, by_file in counts.items():
        line = texts[key]
        counted = line.position is None and not line.text.startswith("{")
        outcome = QUARANTINED if line.text.strip() in {"junk", "", "\ufffd"} else EVENT
        kept[line.world, outcome] += max(by_file.values()) if counted else 1
    return kept


def frame(spark: SparkSession, lines: list[Line]) -> DataFrame:
    return spark.createDataFrame([line.row for line in lines], INPUT_LINES_SCHEMA)


def tally(rows: DataFrame) -> Counter[tuple[int, str]]:
    world = sql.substring_index("source_file", "/", 1).cast("int").alias("world")
    found = rows.groupBy(world, "outcome").count().collect()
    return Counter({(row["world"], row["outcome"]): row["count"] for row in found})


def settled(spark: SparkSession, parts: list[list[Line]], folder: Path) -> Counter[tuple[int, str]]:
    """Take the parts in, one run after the other, and count what the tables have."""
    tables, options = Tables(folder), IngestOptions(with_rollup=False)
    for number, part in enumerate(parts):
        run = ingest(spark, frame(spark, part), tables, f"s@{number}", options=options)
        assert run.lines == len(part)
    found: Counter[tuple[int, str]] = Counter()
    for table, column, outcome in (
        ("audit_events", "source_file", EVENT),
        ("quarantine", "file", QUARANTINED),
    ):
        found += tally(
            tables.read(spark, table).select(
                sql.col(column).alias("source_file"), sql.lit(outcome).alias("outcome")
            )
        )
    return found


def test_one_run_keeps_what_plain_python_keeps_and_two_runs_keep_no_more(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    lines = [line for world in range(WORLDS) for line in lines_of(world, random)]
    random.shuffle(lines)
    wanted = kept_by_python(lines)
    assert settled(spark, [lines], tmp_path / "one") == wanted
    first_files = {
        (world, file) for world in range(WORLDS) for file in random.sample(["a", "a.gz", "b", "t/0"], 2)
    }
    parts: list[list[Line]] = [[], []]
    for line in lines:
        parts[(line.world, line.file) in first_files].append(line)
    assert settled(spark, parts, tmp_path / "two") == wanted
