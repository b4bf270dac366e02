"""Which files are copies of one log: what chance can share does not make two logs one."""

import bz2
import gzip
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.places import FileState, Place
from kustos.pipeline.run import find_new_files
from kustos.pipeline.run.files.beginnings import (
    BEGINNING_BYTES_MAX,
    FIRST_LINES,
    LINES_MAX,
    Beginning,
    read_beginning,
)
from kustos.pipeline.run.files.logs import broker_of, family_of
from kustos.pipeline.run.files.new_files import FoundFiles, closed_files, with_clusters
from kustos.pipeline.tables import InputFile, Tables
from kustos.pipeline.tables.runs import RUN
from tests.pipeline.events import event_line, kafka_line


def closed_of(times: dict[str, int]) -> set[str]:
    """Return the names of files that count as closed, of files with these times of change."""
    states: dict[Place, FileState] = {Path("/x", name): FileState(9, time) for name, time in times.items()}
    return {path.name for path in closed_files(states)}


def test_rotation_closes_files_but_the_one_that_is_written_to_or_copied() -> None:
    assert closed_of({"a.log": 5, "a.log.1": 4, "a.log.2": 3}) == {"a.log.1", "a.log.2"}
    # logrotate's copytruncate has not copied all of it yet
    assert closed_of({"a.log": 5, "a.log.1": 6, "a.log.2": 3}) == {"a.log.2"}
    assert closed_of({"a.log.3": 1}) == {"a.log.3"}
    # copies that keep no times, and what packs later, make no file closed that is written to
    assert closed_of({"a.log": 1, "a.log.2026-11-20": 8, "a.log.2026-11-19": 7}) == {"a.log.2026-11-19"}
    assert closed_of({"a.2026-11-21.log": 5, "a.2026-11-20.log.gz": 9}) == set()
    assert closed_of({"a.2026-11-21.log": 5, "a.2026-11-22.log": 6}) == {"a.2026-11-21.log"}


BANNER = "===> User\nuid=1000(appuser)\n\n===> Configuring ...\n"


def log_text(node: int, lines: int = 5, banner: str = BANNER) -> str:
    times = (f"2026-11-21 04:00:{at:02d},{node:03d}" for at in range(lines))
    return banner + "".join(f"{kafka_line(time=time)}\n" for time in times)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class Folder:
    """A folder of logs and the tables that they go into."""

    def __init__(self, home: Path) -> None:
        self.audit, self.tables = home / "audit", Tables(home / "tables")
        self.audit.mkdir()

    def write(self, name: str, content: str | bytes) -> Path:
        return write(self.audit, name, content)

    def look(self, source: str | None = None, cluster: str | None = None) -> FoundFiles:
        return find_new_files(self.audit, self.tables, source=source, cluster=cluster)

    def commit(self, source: str | None = None, cluster: str | None = None) -> dict[str, str]:
        """Record what is new as read; return the log of each file."""
        found = self.look(source, cluster)
        self.record(*(file.identity for file in found.new))
        return {file.name: file.identity.log for file in found.new}

    def record(self, *files: InputFile) -> None:
        with self.tables.transaction() as change:
            change.commit(f"r{change.state.number}", RUN, [], inputs=files)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_three_brokers_with_one_banner_are_three_logs(folder: Folder) -> None:
    for node in range(3):
        folder.write(f"b{node}.log", log_text(node))
    logs = folder.commit()
    assert len(set(logs.values())) == 3


def test_brokers_whose_first_lines_are_equal_by_chance_are_two_logs_and_it_is_said(folder: Folder) -> None:
    folder.write("x/server.log", log_text(7, 1))
    folder.write("y/server.log", log_text(7, 1))
    found = folder.look()
    assert len({file.identity.log for file in found.new}) == 2
    assert [("too little in common" in said, "`source`" in said) for said in found.said] == [(True, True)]
    folder.write("x/server.log", log_text(7, 1) + log_text(8, 3, ""))
    folder.write("y/server.log", log_text(7, 1) + log_text(9, 3, ""))
    found = folder.look()
    assert len({file.identity.log for file in found.new}) == 2
    assert found.said == ()


def test_a_log_is_one_log_however_it_is_renamed_copied_packed_or_grown(folder: Folder) -> None:
    path = folder.write("kafka.log", log_text(1, 3))
    log = folder.commit()["kafka.log"]
    path.rename(folder.audit / "kafka.log.1")
    assert folder.look().new == ()
    text = log_text(1, 20)
    folder.write("kafka.log.1", text)
    folder.write("kafka.log.2.gz", gzip.compress(text.encode()))
    folder.write("archive/anything.bz2", bz2.compress(log_text(1, 9).encode()))
    folder.write("elsewhere/windows", text.replace("\n", "\r\n"))
    found = folder.look()
    assert {file.identity.log for file in found.new} == {log}
    assert (len(found.new), found.said) == (4, ())


def test_a_log_of_one_line_is_still_its_own_packed_copy_and_it_is_said(folder: Folder) -> None:
    folder.write("kafka.log", log_text(1, 1))
    log = folder.commit()["kafka.log"]
    folder.write("kafka.log.2026-11-21-04.gz", gzip.compress(log_text(1, 1).encode()))
    (found,) = folder.look().new
    assert found.identity.log == log
    assert "by their names read as one log" in folder.look().said[0]


def test_a_file_that_begins_anew_in_its_place_is_a_new_log(folder: Folder) -> None:
    path = folder.write("kafka.log", log_text(1))
    shutil.copy(path, folder.audit / "kafka.log.1")
    logs = folder.commit()
    assert len(set(logs.values())) == 1
    with path.open("r+b") as file:  # copytruncate keeps the inode
        file.truncate(0)
        file.write(log_text(2, 9).encode())
    (again,) = folder.look().new
    assert again.identity.log not in logs.values()


def test_a_file_without_a_line_as_yet_takes_no_place_of_a_log(folder: Folder) -> None:
    path = folder.write("kafka.log", log_text(1))
    log = folder.commit()["kafka.log"]
    for content in ("", "[2026-11-21 04:"):
        with path.open("r+") as file:
            file.truncate(0)
            file.write(content)
        found = folder.look()
        assert (found.count, found.new, found.half_lines) == (1, (), int(content != ""))
    with path.open("r+") as file:
        file.write(log_text(2))
    folder.write("elsewhere", log_text(1))
    logs = folder.commit()
    assert logs["elsewhere"] == log != logs["kafka.log"]


def test_a_log_goes_on_in_a_folder_that_got_another_name(folder: Folder) -> None:
    folder.write("broker-1/server.log", log_text(1))
    log = folder.commit()["broker-1/server.log"]
    (folder.audit / "broker-1").rename(folder.audit / "old-broker-1")
    assert folder.look().new == ()
    with (folder.audit / "old-broker-1" / "server.log").open("a") as file:
        file.write(log_text(1, 9, ""))
    folder.write("broker-1/server.log", log_text(2))
    found = folder.look()
    assert found.said == ()
    assert {file.name: file.identity.log == log for file in found.new} == {
        "broker-1/server.log": False,
        "old-broker-1/server.log": True,
    }


def test_a_hard_link_is_no_second_file(folder: Folder) -> None:
    path = folder.write("kafka.log", log_text(1))
    os.link(path, folder.audit / "link")
    found = folder.look()
    assert (found.count, [file.name for file in found.new], found.renamed) == (2, ["kafka.log"], ())
    log = folder.commit()["kafka.log"]
    assert folder.look().new == ()
    path.unlink()
    assert folder.look().new == ()
    with (folder.audit / "link").open("a") as file:
        file.write(log_text(1, 9, ""))
    assert folder.commit() == {"link": log}


def test_equal_inodes_of_two_file_systems_make_no_log_one(folder: Folder) -> None:
    one = folder.write("x/server.log", log_text(1, 1))
    other = folder.write("y/server.log", log_text(1, 1))
    found = {file.name: file.identity for file in folder.look().new}
    alien = replace(
        found["x/server.log"],
        path=str(folder.audit / "z" / "server.log"),
        inode=other.stat().st_ino,
        size_bytes=99,
    )
    folder.record(alien)
    assert one.exists()
    assert alien.log not in {file.identity.log for file in folder.look().new if file.name == "y/server.log"}


def test_names_of_brokers_in_paths_keep_equal_beginnings_apart_and_it_is_said(folder: Folder) -> None:
    folder.write("broker-1/server.log", log_text(1))
    folder.write("broker-2/server.log", log_text(1))
    folder.write("archive/broker-1-server.log.gz", gzip.compress(log_text(1).encode()))
    found = folder.look()
    logs = {file.name: file.identity.log for file in found.new}
    assert logs["archive/broker-1-server.log.gz"] == logs["broker-1/server.log"]
    assert logs["broker-2/server.log"] != logs["broker-1/server.log"]
    assert any("`broker-2` and `broker-1`" in said for said in found.said)


def test_sources_keep_equal_beginnings_apart_and_hold_a_log_together(folder: Folder) -> None:
    folder.write("x/server.log", log_text(1, 1))
    one = folder.commit("broker one")["x/server.log"]
    folder.write("y/anything.gz", gzip.compress(log_text(1, 1).encode()))
    (same,) = folder.look("broker one").new
    (other,) = folder.look("broker two").new
    assert same.identity.log == one != other.identity.log
    assert folder.look("broker one").said == folder.look("broker two").said == ()
    os.utime(folder.audit / "x" / "server.log", ns=(1, 1))
    (again,) = [file for file in folder.look().new if file.name == "x/server.log"]
    assert again.identity.log == one


def replaced(path: Path, text: str) -> None:
    path.with_name("new").write_text(text)
    path.with_name("new").replace(path)


def written_on(path: Path, text: str) -> None:
    with path.open("r+") as file:
        file.write(text)


def written_on_and_renamed(path: Path, text: str) -> None:
    written_on(path, text)
    path.rename(f"{path}.1")


@pytest.mark.parametrize("change", [replaced, written_on, written_on_and_renamed])
@pytest.mark.parametrize("declared", [("broker 2", "east"), ("broker 1", "west")])
def test_a_file_stays_of_its_log_when_its_input_is_declared_otherwise_and_it_is_said(
    folder: Folder, change: Callable[[Path, str], None], declared: tuple[str, str]
) -> None:
    path = folder.write("x/kafka.log", log_text(1))
    log = folder.commit("broker 1", "east")["x/kafka.log"]
    change(path, log_text(1, 9))
    found = with_clusters(folder.look(*declared))
    assert [(file.identity.log, file.identity.cluster) for file in found.new] == [(log, "east")]
    assert ["stays" in said and "count twice" in said for said in found.said] == [True]


def test_a_copy_in_an_input_of_another_source_is_said(folder: Folder) -> None:
    folder.write("x/kafka.log", log_text(1))
    log = folder.commit("broker 1")["x/kafka.log"]
    folder.write("y/kafka.log", log_text(1))
    found = folder.look("broker 2")
    assert [file.identity.log != log for file in found.new] == [True]
    assert ["different `source`" in said and "take it out" in said for said in found.said] == [True]


def seconds_text(node: int, lines: int) -> str:
    """Return a log in a usual layout whose times have no milliseconds."""
    return "".join(
        f"2026-11-21 04:00:{at // 2:02d} DEBUG [worker-{node}] kafka.authorizer.logger:42 - event {at}\n"
        for at in range(lines)
    )


def test_logs_without_milliseconds_are_one_log_if_more_lines_agree(folder: Folder) -> None:
    folder.write("x/kafka.log", seconds_text(1, 9))
    log = folder.commit()["x/kafka.log"]
    folder.write("moved/anything.gz", gzip.compress(seconds_text(1, 20).encode()))
    folder.write("other/kafka.log", seconds_text(2, 20))
    folder.write("short/kafka.log", seconds_text(1, 4))
    found = folder.look()
    logs = {file.name: file.identity.log for file in found.new}
    assert logs["moved/anything.gz"] == log != logs["other/kafka.log"]
    assert logs["short/kafka.log"] != log
    assert ["too little in common" in said and "short" in said for said in found.said] == [True]


def test_rotated_logs_without_milliseconds_are_two_from_the_first_line_that_differs(folder: Folder) -> None:
    folder.write("kafka.log", BANNER + seconds_text(1, 2))
    folder.write("kafka.log.1", BANNER + seconds_text(2, 2))
    found = folder.look()
    assert (len({file.identity.log for file in found.new}), found.said) == (2, ())


def test_a_log_whose_lines_get_milliseconds_after_a_header_without_goes_on(folder: Folder) -> None:
    header = "[2026-11-21 03:59:59] starting\n"
    folder.write("kafka.log", header)
    log = folder.commit()["kafka.log"]
    folder.write("kafka.log", header + log_text(1, 9, ""))
    assert folder.commit() == {"kafka.log": log}


def test_json_lines_have_their_times_anywhere(folder: Folder) -> None:
    for name in ("x/1", "y/1"):
        folder.write(name, "".join(f"{event_line(at)}\n" for at in range(3)))
    assert len(set(folder.commit().values())) == 1


TIMED = st.builds(
    lambda ms, word: f"[2026-11-21 04:00:00,{ms:03d}] {word}", st.integers(0, 999), st.text("ab")
)
LINES = st.lists(st.one_of(TIMED, st.sampled_from(["", "banner", "===> x"])), max_size=40)


def beginning_of(lines: list[str]) -> Beginning:
    import io

    return read_beginning(io.BytesIO("".join(f"{line}\n" for line in lines).encode()))


@given(LINES, st.integers(0, 40))
def test_a_log_agrees_with_its_own_beginning(lines: list[str], shown: int) -> None:
    whole, part = beginning_of(lines), beginning_of(lines[:shown])
    stamped = [line for line in lines[:shown] if line.startswith("[")][:LINES_MAX]
    known = [line for at, line in enumerate(stamped) if len(set(stamped[:at])) < FIRST_LINES]
    assert whole.in_common(part) == part.in_common(whole) == len(known)
    assert Beginning.from_text(whole.to_text()) == whole


@given(LINES, LINES)
def test_logs_agree_on_no_line_that_only_one_has(one: list[str], other: list[str]) -> None:
    common = beginning_of(one).in_common(beginning_of(other))
    if common:
        stamped = [[line for line in lines if line.startswith("[")][:common] for lines in (one, other)]
        assert stamped[0] == stamped[1]


def test_a_beginning_ends_somewhere() -> None:
    import io

    endless = io.BytesIO(b"x" * (2 * BEGINNING_BYTES_MAX))
    assert read_beginning(endless).first_lines == ()
    assert endless.tell() <= BEGINNING_BYTES_MAX


@pytest.mark.parametrize(
    ("path", "broker", "family"),
    [
        ("/logs/broker-1/server.log.3", "broker-1", "/logs/broker-1/server.log"),
        ("/logs/prod-kafka-0/server.log.2026-11-21-04.gz", "prod-kafka-0", "/logs/prod-kafka-0/server.log"),
        ("/pods/ns_my-kafka-12_uid/kafka/0.log", "my-kafka-12", "/pods/ns_my-kafka-12_uid/kafka/0.log"),
        ("/opt/kafka-3.9.1/logs/kafka-authorizer.log", None, "/opt/kafka-3.9.1/logs/kafka-authorizer.log"),
        ("/opt/kafka_2.13-4.0.0/kafka_20261121.log", None, "/opt/kafka_2.13-4.0.0/kafka.log"),
        ("/x/kafka-0.2026-11-21.log.1.gz", "kafka-0", "/x/kafka-0.log"),
        ("/x/0.log.20261121-040000.gz", None, "/x/0.log"),
        ("/x/kafka.log-2026112104", None, "/x/kafka.log"),
        ("/x/kafka.log-20261121-1795233600.gz", None, "/x/kafka.log"),
    ],
)  # fmt: skip
def test_paths_tell_brokers_and_rotations(path: str, broker: str | None, family: str) -> None:
    assert (broker_of(path), family_of(path)) == (broker, family)
