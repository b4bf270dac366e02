"""Exports of a log that were appended to one file: each line counts once, or it is said that it may not."""

import bz2
import gzip
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.run.files import pieces
from kustos.pipeline.run.files.appended_exports import PARTS_MAX
from kustos.pipeline.run.files.beginnings import FIRST_LINES
from kustos.pipeline.run.files.pieces import file_of
from kustos.pipeline.tables import summary as summaries
from testkit.seeds import seed_of_run
from tests.pipeline.run.homes import Home, log_lines, strimzi, to_the_second

ONCE, MAYBE = "each line counts once", "may hold lines twice"
WORLDS = 120
SECONDS = 40


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


@pytest.mark.parametrize("shown", [str, strimzi])
@pytest.mark.parametrize("packed", [str.encode, lambda text: gzip.compress(text.encode())])
def test_exports_appended_to_one_file_count_once_and_it_is_said(
    home: Home, shown: Callable[[str], str], packed: Callable[[str], bytes]
) -> None:
    first, second = shown(log_lines(1, 0, 20)), shown(log_lines(1, 15, 40))
    summary = home.run(a=packed(first + second))
    assert (summary.events, summary.duplicates, summary.overlapping_files) == (40, 5, 1)
    assert [each.count(ONCE) for each in summary.warnings] == [1]
    grown = home.run(a=packed(first + second + shown(log_lines(1, 30, 50))))
    assert (grown.events, grown.duplicates, home.events()) == (10, 10 + 5 + 40, 50)
    later = home.run(b=shown(log_lines(1, 45, 60)))
    assert (later.events, home.events(), later.overlapping_files) == (10, 60, 1)


def test_all_of_a_log_exported_again_and_again_counts_once_wherever_pieces_end(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = log_lines(1, 0, 9)
    monkeypatch.setattr(pieces, "TASK_BYTES_MIN", len(export))
    monkeypatch.setattr(pieces, "FILE_COST_BYTES", 0)
    summary = home.run(a=export * 7, b=bz2.compress(log_lines(2, 0, 5).encode() * 3))
    assert (summary.events, summary.duplicates, summary.overlapping_files) == (14, 9 * 6 + 5 * 2, 2)


def test_time_may_go_back_where_no_line_comes_again(home: Home) -> None:
    summary = home.run(both=log_lines(1, 10, 20) + log_lines(2, 0, 30), burst=log_lines(3, 0, 1) * 9)
    assert (summary.events, summary.warnings) == (49, ())


def test_a_few_lines_in_common_are_a_doubt(home: Home) -> None:
    one = log_lines(1, 10, 20) + log_lines(1, 12, 15) + log_lines(2, 15, 30)
    summary = home.run(one=one, seconds=to_the_second(0, 30) * 2)
    assert (summary.events, summary.overlapping_files) == (28 + 60, 0)
    assert [MAYBE in each for each in summary.warnings].count(True) == 2


def test_more_exports_than_are_compared_are_a_doubt(home: Home) -> None:
    more = 3
    summary = home.run(a=log_lines(1, 0, 4) * (PARTS_MAX - 1), b=log_lines(2, 0, 4) * (PARTS_MAX + more))
    assert summary.events == 4 + 4 * (1 + more)
    assert [MAYBE in each for each in summary.warnings].count(True) == 1


def by_a_clock(draw: random.Random) -> list[range]:
    """Return exports as a timer writes them: each begins and ends no earlier than the one before."""
    exports = [range(draw.randrange(8), draw.randint(13, 20))]
    for _ in range(draw.randint(1, 5)):
        former = exports[-1]
        begin = draw.choice((former.stop, draw.randrange(former.start, former.stop - FIRST_LINES)))
        end = max(begin + FIRST_LINES + 1, former.stop) + draw.randrange(6)
        if end <= SECONDS:
            exports.append(range(begin, end))
    return exports


def in_any_order(draw: random.Random) -> list[range]:
    """Return exports of any lines; a line does not come twice on end, as it may be a longer burst."""
    exports: list[range] = []
    for _ in range(draw.randint(1, 6)):
        begin = draw.randrange(SECONDS - 1)
        begin += bool(exports) and exports[-1].stop == begin + 1
        exports.append(range(begin, min(SECONDS, begin + draw.randint(1, draw.choice((3, 8, SECONDS))))))
    return exports


def test_theorem_each_line_counts_once_or_is_said_to_be_in_doubt(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of drawn exports, with bursts of equal lines, in one run; none of a clock's is in doubt."""
    monkeypatch.setattr(summaries, "WARNINGS_MAX", 3 * WORLDS)
    draw = random.Random(seed_of_run())
    written, texts, counts = {}, {}, {}
    for node in range(WORLDS):
        name = f"log{node}"
        exports = in_any_order(draw) if node % 2 else by_a_clock(draw)
        lines = [log_lines(node, at, at + 1) * draw.choice((1, 1, 1, 3)) for at in range(SECONDS)]
        written[name] = [at for export in exports for at in export]
        texts[name] = "".join(lines[at] for at in written[name])
        counts[name] = sum(lines[at].count("\n") for at in set(written[name]))
    summary = home.run(**texts)
    events = home.tables.read(home.spark, "audit_events").select("source_file").collect()
    found = Counter(file_of(row.source_file) for row in events)
    said = {name: [each for each in summary.warnings if f"/{name}`" in each] for name in texts}
    in_doubt = {name for name in texts if any(MAYBE in each for each in said[name])}
    settled = {name for name in texts if any(ONCE in each for each in said[name])}
    for name, seconds in written.items():
        most = texts[name].count("\n") if name in in_doubt else counts[name]
        assert counts[name] <= found[name] <= most, name
        assert (max(Counter(seconds).values()) > 1) == (name in in_doubt | settled), name
    assert not {f"log{node}" for node in range(0, WORLDS, 2)} & in_doubt
    assert len(settled) > WORLDS / 2
    assert in_doubt
