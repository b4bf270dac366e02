"""Which files are new, and which are copies of one log."""

import gzip
import os
import tarfile
from pathlib import Path

import pytest

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.run.files.new_files import FoundFile, find_new_files, with_damage
from kustos.pipeline.tables import Tables
from kustos.pipeline.tables.runs import RUN

TEXT = b"\r\n\nfirst line\r\nsecond\n"


def commit(tables: Tables, *files: FoundFile) -> None:
    with tables.transaction() as change:
        change.commit(f"r{change.state.number}", RUN, [], inputs=[file.identity for file in files])


def new_names(audit: Path, tables: Tables) -> list[str]:
    return [file.name for file in find_new_files(audit, tables).new]


def test_only_what_changed_since_it_was_read_is_new(tmp_path: Path) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    (audit / "x").mkdir(parents=True)
    for name in ("a", "x/b", "c"):
        (audit / name).write_text(f"{name} begins\n")
    found = find_new_files(audit, tables)
    assert (found.count, found.new_bytes) == (3, 29)
    assert [file.name for file in found.new] == ["a", "c", "x/b"]
    commit(tables, *found.new)
    assert new_names(audit, tables) == []
    (audit / "a").rename(audit / "a.1")
    assert new_names(audit, tables) == []
    (audit / "a").write_text("begins again\n")
    with (audit / "c").open("a") as file:
        file.write("and goes on\n")
    os.utime(audit / "x" / "b", ns=(1, 1))
    assert new_names(audit, tables) == ["a", "c", "x/b"]


def test_folders_that_cannot_be_read_or_hold_the_tables_are_refused(tmp_path: Path) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()
    with pytest.raises(AuditInputError, match="holds no audit files"):
        find_new_files(audit, tables)
    with pytest.raises(AuditInputError, match="does not exist"):
        find_new_files([tmp_path / "no"], tables)
    with pytest.raises(AuditInputError, match="no audit folder was given"):
        find_new_files([], tables)
    for inner in (Tables(audit / "tables"), Tables(tmp_path), Tables(audit)):
        with pytest.raises(AuditInputError, match="must lie apart"):
            find_new_files(audit, inner)


def test_all_packed_files_that_are_damaged_are_found_at_once(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT * 1000)
    contents = {
        "cut.gz": whole[:-20],
        "flipped.gz": whole[:30] + bytes([whole[30] ^ 255]) + whole[31:],
        "named.lz4": b"?\n",
        "no.gz": b"hello\n",
        "plain": b"\xff\xfe\n",
        "whole.gz": whole,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    found = find_new_files(tmp_path, Tables(tmp_path.parent / "tables")).new
    judged = with_damage(found, str(tmp_path.resolve() / "named.lz4"))
    assert {file.name: file.fault for file in judged} == {
        "cut.gz": "file_damaged: it ends too early",
        "flipped.gz": "file_damaged: it cannot be unpacked",
        "named.lz4": "file_damaged: it cannot be read to its end",
        "no.gz": "file_damaged: it cannot be unpacked",
        "plain": None,
        "whole.gz": None,
    }


@pytest.mark.parametrize("packing", ["", "gz", "bz2"])
def test_a_tar_archive_is_refused(tmp_path: Path, packing: str) -> None:
    audit = tmp_path / "audit"
    audit.mkdir()
    (tmp_path / "kafka.log").write_bytes(TEXT)
    with tarfile.open(audit / "logs.tar", f"w:{packing}") as archive:  # type: ignore[call-overload]
        archive.add(tmp_path / "kafka.log", "kafka.log")
    with pytest.raises(AuditInputError, match=r"logs.tar` is a tar archive: unpack it"):
        find_new_files(audit, Tables(tmp_path / "tables"))


def test_folders_that_links_lead_to_are_read_too_and_each_once(tmp_path: Path) -> None:
    audit, data, tables = tmp_path / "audit", tmp_path / "data", Tables(tmp_path / "tables")
    (audit / "in").mkdir(parents=True)
    (data / "deeper").mkdir(parents=True)
    for path in (audit / "in" / "a", data / "b", data / "deeper" / "c"):
        path.write_text(f"{path.name} begins\n")
    (audit / "data").symlink_to(data)
    (audit / "again").symlink_to(audit / "in")
    (data / "ring").symlink_to(data)
    (data / "back").symlink_to(audit / "in")
    found = find_new_files(audit, tables)
    assert ([file.name for file in found.new], found.count) == (["data/b", "data/deeper/c", "in/a"], 3)
    commit(tables, *found.new)
    assert new_names(audit, tables) == []
    (audit / "tables").symlink_to(tmp_path / "tables")
    with pytest.raises(AuditInputError, match="must lie apart"):
        find_new_files(audit, tables)
    (audit / "tables").unlink()
    (audit / "up").symlink_to(tmp_path)
    with pytest.raises(AuditInputError, match=r"up` leads to `.*`, which holds it: take the link out"):
        find_new_files(audit, tables)
