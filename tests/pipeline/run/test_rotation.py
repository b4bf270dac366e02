"""Files that rotation renames or replaces: each line counts once, and none is lost."""

import bz2
import gzip
import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.run import run_pipeline
from tests.pipeline.run.homes import Home, log_lines

pytestmark = pytest.mark.usefixtures("users_plans")

LOG = "kafka-authorizer.log"


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Home:
    return Home(spark, tmp_path)


def rotate(folder: Path) -> None:
    """Rename the log and its rotated files as log4j's RollingFileAppender does."""
    for number in (2, 1):
        if (folder / f"{LOG}.{number}").exists():
            (folder / f"{LOG}.{number}").rename(folder / f"{LOG}.{number + 1}")
    (folder / LOG).rename(folder / f"{LOG}.1")


def test_a_log_that_was_first_seen_empty_counts_once_after_rotations(home: Home) -> None:
    home.run(**{LOG: ""})
    with (home.audit / LOG).open("a") as file:
        file.write(log_lines(1, 0, 10))
    assert home.run().events == 10
    for number in range(1, 4):
        rotate(home.audit)
        summary = home.run(**{LOG: log_lines(1, 10 * number, 10 * number + 10)})
        assert (summary.events, summary.duplicates, summary.new_files) == (10, 0, 1)
        assert home.run().lines == 0
    (home.audit / f"{LOG}.1").touch()
    (home.audit / f"{LOG}.3").touch()
    again = home.run()
    assert (again.events, again.duplicates, home.events()) == (0, 20, 40)


def test_a_log_whose_cluster_was_declared_later_keeps_its_own_after_a_rotation(home: Home) -> None:
    home.run(**{LOG: log_lines(1, 0, 10)})
    rotate(home.audit)
    for number in (1, 2):
        home.run(cluster="east", **{LOG: log_lines(1, 10, 10 + 5 * number)})
    (home.audit / f"{LOG}.1").touch()
    assert home.run(cluster="east").duplicates == 10
    assert home.events() == 20


def rotated(folder: Path) -> None:
    rotate(folder)
    (folder / LOG).write_text(log_lines(1, 20, 21))


def replaced_by_a_longer_one(folder: Path) -> None:
    rotate(folder)
    (folder / LOG).write_text(log_lines(1, 20, 60))


def truncated(folder: Path) -> None:
    with (folder / LOG).open("r+b") as file:  # copytruncate keeps the inode
        file.truncate(len(log_lines(1, 0, 3)))


def copied_and_truncated(folder: Path, first: int = 20, last: int = 60) -> None:
    """Do as logrotate's copytruncate, after which the log has grown beyond what it was."""
    shutil.copy(folder / LOG, folder / f"{LOG}.1")
    with (folder / LOG).open("r+b") as file:
        file.truncate(0)
        file.write(log_lines(1, first, last).encode())


@pytest.mark.parametrize("change", [rotated, replaced_by_a_longer_one, truncated, copied_and_truncated])
def test_a_file_that_changed_between_listing_and_reading_stops_the_run(
    home: Home, change: Callable[[Path], None]
) -> None:
    home.write(**{LOG: log_lines(1, 0, 20)})

    def progress(step: str) -> None:
        if step == "looking for overlaps":  # the files are listed, and their logs known
            change(home.audit)

    with pytest.raises(AuditInputError, match=rf"`[^`]*{LOG}` changed while it was read, run again"):
        run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert home.tables.inputs() == {}
    lines = sum(len(file.read_text().splitlines()) for file in home.audit.iterdir())
    assert (home.run().events, home.events()) == (lines, lines)


def test_a_file_that_grew_meanwhile_is_read_as_it_was_listed(home: Home) -> None:
    home.write(**{LOG: log_lines(1, 0, 20)})

    def progress(step: str) -> None:
        if step == "looking for overlaps":
            with (home.audit / LOG).open("a") as file:
                file.write(log_lines(1, 20, 25))

    summary = run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert (summary.events, home.run().events) == (20, 5)


def test_a_log_that_was_truncated_and_has_grown_beyond_what_was_read_is_another(home: Home) -> None:
    assert home.run(**{LOG: log_lines(1, 0, 20)}).events == 20
    with (home.audit / LOG).open("a") as file:
        file.write(log_lines(1, 20, 25))
    copied_and_truncated(home.audit, 25, 60)
    summary = home.run()
    assert (summary.events, summary.duplicates, summary.warnings) == (40, 20, ())
    assert (home.run().lines, home.events()) == (0, 60)


def zipped(text: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log", text)
    return file.getvalue()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, zipped])
@pytest.mark.parametrize("is_in_place", [False, True])
def test_a_packed_file_that_is_replaced_between_listing_and_reading_stops_the_run(
    home: Home, pack: Callable[[bytes], bytes], is_in_place: bool
) -> None:
    home.write(packed=pack(log_lines(1, 0, 20).encode()))

    def progress(step: str) -> None:
        if step == "looking for overlaps":
            home.write(**{"packed" if is_in_place else "other": pack(log_lines(2, 0, 40).encode())})
            if not is_in_place:
                (home.audit / "other").replace(home.audit / "packed")

    with pytest.raises(AuditInputError, match=r"packed(!/log)?` changed while it was read"):
        run_pipeline(home.spark, tables=home.tables, audit=home.audit, progress=progress)
    assert home.run().events == 40


def packed_and_moved(log: Path, into: Path) -> None:
    into.with_name(f"{into.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


def grown_and_moved(log: Path, into: Path) -> None:
    with log.open("a") as file:
        file.write(log_lines(1, 18, 20))
    log.rename(into)


@pytest.mark.parametrize("order", [("live", "archive"), ("archive", "live")])
@pytest.mark.parametrize("move", [Path.rename, packed_and_moved, grown_and_moved])
def test_a_log_that_was_moved_into_the_folder_of_another_input_counts_once(
    home: Home, order: tuple[str, str], move: Callable[[Path, Path], object]
) -> None:
    home.write(live__log=log_lines(1, 0, 18), archive__log=log_lines(3, 0, 5))

    def take(name: str) -> int:
        source = "broker 1" if name == "live" else None  # by which logs are named
        return run_pipeline(home.spark, tables=home.tables, audit=home.audit / name, source=source).events

    assert [take(name) for name in order] == ([18, 5] if order[0] == "live" else [5, 18])
    move(home.audit / "live" / "log", home.audit / "archive" / "log.1")
    home.write(live__log=log_lines(1, 20, 40))
    for _ in range(2):
        for name in order:
            take(name)
    for name in order:  # what is recorded with a new file does not make others forgotten
        with (home.audit / name / "log").open("a") as file:
            file.write(log_lines(1, 50, 51))
        take(name)
    for path in (home.audit / "archive").iterdir():
        path.touch()
    assert take("archive") == 0
    grown = 2 if move is grown_and_moved else 0
    assert home.events() == 18 + grown + 5 + 20 + 2


def test_copies_of_one_name_in_two_folders_of_a_run_count_once(home: Home) -> None:
    burst = "".join(log_lines(1, at, at + 1) * 2 for at in range(20))
    home.write(one__log=burst, two__log=burst)
    folders = [home.audit / name for name in ("one", "two")]
    summary = run_pipeline(home.spark, tables=home.tables, audit=folders)
    assert (summary.events, summary.duplicates) == (40, 40)


def test_a_file_that_shrinks_and_grows_again_counts_each_line_once(home: Home) -> None:
    home.run(**{LOG: log_lines(1, 0, 20)})
    with (home.audit / LOG).open("r+b") as file:
        file.truncate(len(log_lines(1, 0, 10)))
    shrunk = home.run()
    with (home.audit / LOG).open("a") as file:
        file.write(log_lines(1, 30, 35))
    grown = home.run()
    assert [(each.events, each.duplicates) for each in (shrunk, grown)] == [(0, 10), (5, 10)]
    assert home.events() == 25


def test_logs_of_two_brokers_with_one_header_count_each_line(home: Home) -> None:
    header = "===> Configuring ...\n===> Running preflight checks ...\n"
    summary = home.run(one=header + log_lines(1), two=header + log_lines(2))
    assert (summary.events, summary.quarantined, summary.warnings) == (60, 4, ())


def test_a_packed_copy_of_a_file_that_was_read_adds_nothing(home: Home) -> None:
    home.run(**{LOG: log_lines(1, 0, 20)})
    home.write(**{f"{LOG}.2026-11-21.gz": gzip.compress(log_lines(1, 0, 20).encode())})
    summary = home.run()
    assert (summary.events, summary.duplicates, summary.warnings) == (0, 20, ())


def test_a_file_that_grows_between_two_inputs_counts_each_line_once(home: Home) -> None:
    home.run("broker 1", **{LOG: log_lines(1, 0, 20)})
    assert home.run("broker 2").lines == 0
    with (home.audit / LOG).open("a") as file:
        file.write(log_lines(1, 20, 25))
    summary = home.run("broker 2")
    assert (summary.events, summary.duplicates, home.events()) == (5, 20, 25)
    assert ["stays of that log" in each for each in summary.warnings] == [True]
