"""However files are cut into pieces, each whole line is read once."""

import bz2
import gzip
import io
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.run.files import pieces
from kustos.pipeline.run.files.compression import Packing, members_of, packing_of, split_place, unpacked
from kustos.pipeline.run.files.pieces import TASK_BYTES_MAX, Readable, lines_of, tasks_of, whole_bytes
from tests.pipeline.events import event_line, kafka_line

CONTENTS = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\xff"]), max_size=60).map(b"".join)


def lines_in(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def texts(lines: Iterable[tuple[int, bytes]]) -> list[bytes]:
    return [line for _, line in lines]


@given(CONTENTS, st.integers(1, 20))
def test_pieces_have_each_line_once_in_order(content: bytes, step: int) -> None:
    end = len(content)
    found = [
        line
        for start in range(0, end, step)
        for line in lines_of(io.BytesIO(content), start, min(start + step, end), end)
    ]
    assert [line for _, line in found] == lines_in(content)
    assert all(content[at:].startswith(line) and content[:at][-1:] in (b"", b"\n") for at, line in found)
    assert list(lines_of(io.BytesIO(content), 0, None, None)) == found


@given(CONTENTS, CONTENTS)
def test_what_comes_after_a_file_was_looked_at_is_not_read(content: bytes, more: bytes) -> None:
    whole = content[: content.rfind(b"\n") + 1]
    end = len(whole)
    assert texts(lines_of(io.BytesIO(content + more), 0, end, end)) == lines_in(whole)


@given(CONTENTS)
def test_a_file_is_whole_up_to_its_last_line_feed_or_all_of_it_if_closed(content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.NamedTemporaryFile() as file:
        patch.setattr(pieces, "_TAIL_BYTES", 2)  # a tail of many steps
        file.write(content)
        file.flush()
        path = Path(file.name)
        assert whole_bytes(path, len(content), is_closed=False) == content.rfind(b"\n") + 1
        assert whole_bytes(path, len(content), is_closed=True) == len(content)


def test_a_line_of_json_needs_no_end_and_half_of_one_does(tmp_path: Path) -> None:
    path, line = tmp_path / "x", f"junk\n{event_line()}".encode()
    path.write_bytes(line)
    assert whole_bytes(path, len(line), is_closed=False) == len(line)
    path.write_bytes(line[:-1])
    assert whole_bytes(path, len(line) - 1, is_closed=False) == len("junk\n")


def test_a_line_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LINE_BYTES_MAX", 10)
    content = b"x" * 25 + b"\nnext\n" + b"y" * 10 + b"\n" + b"z" * 9 + b"\nlast"
    wanted = [b"x" * 10, b"next", b"y" * 10, b"z" * 9, b"last"]
    assert texts(lines_of(io.BytesIO(content), 0, None, None)) == wanted
    for step in range(1, len(content)):
        found = [
            line
            for start in range(0, len(content), step)
            for _, line in lines_of(io.BytesIO(content), start, min(start + step, len(content)), len(content))
        ]
        assert found == wanted


def test_tasks_share_the_work(tmp_path: Path) -> None:
    def readable(name: str, size: int, packing: Packing = Packing.PLAIN) -> Readable:
        return Readable(name, name, None, packing, size if packing is Packing.PLAIN else None, size)

    small = [readable(f"s{at}", 1000) for at in range(5000)]
    great = [readable("great", 10 * TASK_BYTES_MAX), readable("packed", 10 * TASK_BYTES_MAX, Packing.GZIP)]
    tasks = tasks_of([*small, *great])
    read = [(piece.file.place, piece.start, piece.stop) for task in tasks for piece in task]
    assert len(read) == len(set(read))
    assert {place for place, _, _ in read} == {file.place for file in (*small, *great)}
    assert (
        sum(stop - start for place, start, stop in read if place == "great" and stop) == 10 * TASK_BYTES_MAX
    )
    assert [piece for piece in read if piece[0] == "packed"] == [("packed", 0, None)]
    assert max(len(task) for task in tasks) <= TASK_BYTES_MAX // pieces.FILE_COST_BYTES
    assert tasks_of([]) == []


TEXT = f"{kafka_line()}\n".encode() * 3


def test_packed_files_are_known_by_their_bytes_not_by_their_names(tmp_path: Path) -> None:
    for name, content, packing in (
        ("plain.log", TEXT, Packing.PLAIN),
        ("gzip.log", gzip.compress(TEXT), Packing.GZIP),
        ("bzip2", bz2.compress(TEXT), Packing.BZIP2),
        ("empty.gz", b"", Packing.PLAIN),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert packing_of(path) is packing
        with unpacked(str(path), packing) as file:
            assert file.read() == (TEXT if content else b"")
    (tmp_path / "text.gz").write_bytes(TEXT)
    assert packing_of(tmp_path / "text.gz") is Packing.GZIP  # and damaged
    (tmp_path / "zstd.log").write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(AuditInputError, match="packed with Zstandard: unpack it"):
        packing_of(tmp_path / "zstd.log")


def test_each_file_of_an_archive_is_an_input(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b1/server.log", TEXT)
        archive.writestr("b2/server.log", TEXT[:-1])
        archive.writestr("__MACOSX/b1/server.log", "junk")
        archive.mkdir("empty")
    assert packing_of(path) is Packing.ZIP
    assert members_of(path) == ["b1/server.log", "b2/server.log"]
    assert split_place(f"{path}!/b1/server.log") == (path, "b1/server.log")
    with unpacked(f"{path}!/b2/server.log", Packing.ZIP) as file:
        assert texts(lines_of(file, 0, None, None)) == lines_in(TEXT)
