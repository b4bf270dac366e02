"""Copies are told from repetitions as plain Python tells them, in one run and over two."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.stages.classify import classify, parse_lines
from kustos.pipeline.stages.dedupe import (
    DUPLICATE,
    EVENT,
    QUARANTINED,
    identify,
    of_keys,
    repeated_keys,
    resolve_alone,
    resolve_copies,
)
from kustos.pipeline.stages.dedupe_known import conflicting_events, judge, known_events
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
    def row(self) -> tuple[str, str, str, int | None, None, None]:
        return (f"{self.world}/{self.file}", self.text, f"{self.world}-{self.log}", self.position, None, None)

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


def classified(spark: SparkSession, lines: list[Line]) -> DataFrame:
    return spark.createDataFrame([line.row for line in lines], INPUT_LINES_SCHEMA).transform(classify)


def tally(rows: DataFrame) -> Counter[tuple[int, str]]:
    world = sql.substring_index("source_file", "/", 1).cast("int").alias("world")
    found = rows.groupBy(world, "outcome").count().collect()
    return Counter({(row["world"], row["outcome"]): row["count"] for row in found})


def kept(counted: Counter[tuple[int, str]]) -> Counter[tuple[int, str]]:
    return Counter({key: count for key, count in counted.items() if key[1] != DUPLICATE})


def test_one_run_keeps_what_plain_python_keeps_and_two_runs_keep_no_more(
    spark: SparkSession, seed: int
) -> None:
    random = Random(seed)
    lines = [line for world in range(WORLDS) for line in lines_of(world, random)]
    random.shuffle(lines)
    wanted = kept_by_python(lines)
    counted = tally(classified(spark, lines))
    assert kept(counted) == wanted
    assert counted.total() == len(lines)
    first_files = {
        (world, file) for world in range(WORLDS) for file in random.sample(["a", "a.gz", "b", "t/0"], 2)
    }
    first = classified(spark, [line for line in lines if (line.world, line.file) in first_files])
    then = classified(spark, [line for line in lines if (line.world, line.file) not in first_files])
    stored = first.filter(sql.col("outcome") == EVENT)
    known = known_events(then, stored)
    second = judge(
        then,
        known=known,
        conflicting=conflicting_events(then, stored, known),
        known_lines=first.filter(sql.col("outcome") == QUARANTINED),
    )
    both = tally(first) + tally(second)
    assert kept(both) == wanted
    assert both.total() == len(lines)


def test_lines_without_a_copy_need_not_be_brought_together(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    lines = [line for world in range(WORLDS) for line in lines_of(world, random)]
    lines += [  # a forged id that is what a line without one is known by
        Line(
            WORLDS,
            "a",
            event_line(1).replace("00000000-0000-0000-0000-000000000001", row["line_key"]),
            "a",
            None,
        )
        for row in identified(spark, [line for line in lines if "Principal" in line.text][:4]).collect()
    ]
    known = identified(spark, lines)
    keys = repeated_keys(known)
    apart = of_keys(known, keys).transform(resolve_copies)
    alone = of_keys(known, keys, others=True).transform(resolve_alone)
    assert alone.columns == apart.columns
    assert 0 < alone.count() < len(lines)
    found = Counter(apart.collect()) + Counter(alone.collect())
    assert found == Counter(known.transform(resolve_copies).collect())


def identified(spark: SparkSession, lines: list[Line]) -> DataFrame:
    rows = spark.createDataFrame([line.row for line in lines], INPUT_LINES_SCHEMA)
    return rows.transform(parse_lines).transform(identify)
