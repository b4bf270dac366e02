"""The explicit way out of damage: what is whole remains, what is cut is kept, and the start goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.directory.repair import carry_out, plan_repair
from kustos.metadata.errors import LogDamagedError, LogError, MetadataError
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage, StorageLockedError
from testkit.metadata_logs import (
    OFTEN,
    acl,
    append,
    contents,
    finalize,
    many_segments,
    partition,
    segment,
    segments,
    snapshots,
    take_snapshot,
)

STORAGE = FileSystemStorage()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Thirteen ACLs, the first of them in the bootstrap snapshot, in several segments."""
    return many_segments(tmp_path / "log")


def names(directory: Path) -> set[str]:
    return {binding.pattern.name for binding in read_image(directory).acls.values()}


def spoil(path: Path, position: int, size: int = 40) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + size] = b"\xa5" * size
    path.write_bytes(data)


def garbage_over_the_last_head(directory: Path) -> None:
    last = segment(directory, segments(directory)[-1])
    spoil(last, last.stat().st_size - 100)


def garbage_in_the_middle(directory: Path) -> None:
    spoil(segment(directory, segments(directory)[2]), 70)


def garbage_at_the_beginning(directory: Path) -> None:
    spoil(segment(directory, 0), 0)


def no_segment_in_the_middle(directory: Path) -> None:
    segment(directory, segments(directory)[1]).unlink()


def no_last_segment(directory: Path) -> None:
    segment(directory, segments(directory)[-1]).unlink()


def no_segment_at_all(directory: Path) -> None:
    for base in segments(directory):
        segment(directory, base).unlink()


def a_batch_less(directory: Path) -> None:
    last = segment(directory, segments(directory)[-1])
    last.write_bytes(b"")


def a_torn_tail(directory: Path) -> None:
    with segment(directory, segments(directory)[-1]).open("ab") as file:
        file.write(bytes(700))


def epochs_of_nothing(directory: Path) -> None:
    (partition(directory) / "leader-epoch-checkpoint").write_text("nonsense")


def point_of_nothing(directory: Path) -> None:
    (partition(directory) / "kustos.recovery-point").write_text("nonsense")


def active_of_nothing(directory: Path) -> None:
    (partition(directory) / "kustos.active-segment").write_text("nonsense")


def a_snapshot_that_cannot_be_read(directory: Path) -> None:
    (partition(directory) / f"{100:020d}-{1:010d}.checkpoint").write_bytes(b"nonsense")


DAMAGES: dict[Callable[[Path], None], int] = {
    garbage_over_the_last_head: 12,
    garbage_in_the_middle: 7,
    garbage_at_the_beginning: 1,
    no_segment_in_the_middle: 3,
    no_last_segment: 12,
    no_segment_at_all: 1,
    a_batch_less: 12,
    a_torn_tail: 13,
    epochs_of_nothing: 13,
    point_of_nothing: 13,
    active_of_nothing: 13,
    a_snapshot_that_cannot_be_read: 13,
}
"""How many ACLs remain of thirteen, at least."""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_whole_up_to_the_damage_remains_and_the_rest_is_kept(
    damage: Callable[[Path], None], directory: Path, tmp_path: Path
) -> None:
    damage(directory)
    with pytest.raises(LogError):
        read_image(directory)
    before = contents(directory)
    sizes = {path.name: path.read_bytes() for path in partition(directory).iterdir()}
    plan = plan_repair(directory, STORAGE)
    assert plan is not None
    assert contents(directory) == before, "a plan changes nothing"
    carry_out(plan, STORAGE)
    remaining = names(directory)
    every = ["first", *(f"t{number}" for number in range(12))]
    assert remaining == set(every[: len(remaining)]), "what remains has no hole"
    assert 0 <= DAMAGES[damage] - len(remaining) <= 2
    for cut in plan.cuts:
        assert cut.kept_as.read_bytes() == sizes[cut.path.name][cut.position :]
        assert not cut.path.exists() or cut.path.stat().st_size == cut.position
    assert plan_repair(directory, STORAGE) is None, "a second run finds nothing to do"
    for number in range(2):
        store = MetadataStore.open(directory)
        store.create_acls([acl(f"later-{number}")])
        store.close()
    assert names(directory) == remaining | {"later-0", "later-1"}


def test_a_log_that_ends_before_its_snapshot_goes_on_from_it(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory)
    store = MetadataStore.open(directory, policy=OFTEN)
    for number in range(5):
        store.create_acls([acl(f"t{number}")])
    assert take_snapshot(store)
    store.create_acls([acl("after")])
    store.close()
    spoil(segment(directory, segments(directory)[-1]), 0)
    plan = plan_repair(directory, STORAGE)
    assert plan is not None
    carry_out(plan, STORAGE)
    assert {f"t{number}" for number in range(5)} <= names(directory)
    MetadataStore.open(directory).close()


def test_nothing_is_cut_where_nothing_would_be_left(directory: Path) -> None:
    for id_ in snapshots(directory):
        (partition(directory) / f"{id_}.checkpoint").write_bytes(b"nonsense")
    before = contents(directory)
    with pytest.raises(LogDamagedError, match="lacks its beginning"):
        plan_repair(directory, STORAGE)
    assert contents(directory) == before


def test_records_of_a_newer_kafka_are_not_cut(directory: Path) -> None:
    finalize(directory, "acl.version", 1)
    assert plan_repair(directory, STORAGE) is None
    append(directory, b"\x01\x7b\x00\x00")
    before = contents(directory)
    with pytest.raises(LogDamagedError, match="newer Kafka"):
        plan_repair(directory, STORAGE)
    assert contents(directory) == before


def test_a_directory_in_use_is_not_repaired(directory: Path) -> None:
    garbage_in_the_middle(directory)
    plan = plan_repair(directory, STORAGE)
    assert plan is not None
    lock = STORAGE.lock(directory / ".lock")
    before = contents(directory)
    with pytest.raises(StorageLockedError):
        carry_out(plan, STORAGE)
    lock.release()
    assert contents(directory) == before


def test_a_plan_is_carried_out_only_where_it_was_made(directory: Path) -> None:
    garbage_in_the_middle(directory)
    plan = plan_repair(directory, STORAGE)
    assert plan is not None
    garbage_at_the_beginning(directory)
    before = contents(directory)
    with pytest.raises(MetadataError, match="was changed meanwhile; look at it once more"):
        carry_out(plan, STORAGE)
    assert contents(directory) == before


def test_a_repair_that_crashed_can_be_done_again(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    garbage_in_the_middle(directory)
    for steps in range(12):
        copy = tmp_path / f"copy-{steps}"
        shutil.copytree(directory, copy)
        plan = plan_repair(copy, STORAGE)
        assert plan is not None
        left = [steps]

        def counted(call: Callable[..., object], left: list[int] = left) -> Callable[..., object]:
            def step(*arguments: object, **named: object) -> object:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
                return call(*arguments, **named)

            return step

        with monkeypatch.context() as patched:
            for name in ("write", "remove", "open_append"):
                patched.setattr(FileSystemStorage, name, counted(getattr(FileSystemStorage, name)))
            try:
                carry_out(plan, STORAGE)
            except KeyboardInterrupt:
                pass
            else:
                assert steps > 3
                break
        again = plan_repair(copy, STORAGE)
        if again is not None:
            carry_out(again, STORAGE)
        assert "first" in names(copy)
        MetadataStore.open(copy).close()
    else:
        raise AssertionError("a repair takes more steps than that")


def test_the_command_says_what_it_cuts_and_asks(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["metadata", "repair", str(directory)]
    assert run(command) == ExitCode.OK
    assert "nothing to repair" in capsys.readouterr().out
    garbage_in_the_middle(directory)
    before = contents(directory)
    assert run([*command, "--dry-run"]) == ExitCode.NO
    said = " ".join(capsys.readouterr().out.split())
    assert "given up: offsets" in said
    assert "which were acknowledged" in said
    assert "would end at offset" in said
    assert run(command) == ExitCode.USAGE
    assert "give `--yes`" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert run(command) == ExitCode.FAILED
    assert contents(directory) == before
    assert run([*command, "--yes", "-o", "json"]) == ExitCode.OK
    capsys.readouterr()
    assert run([*command, "--yes", "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document == {"directory": str(directory), "needed": False, "done": False}


def test_the_document_of_a_repair(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bases = segments(directory)
    garbage_in_the_middle(directory)
    assert run(["metadata", "repair", str(directory), "--yes", "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["needed"], document["done"]) == (True, True)
    assert document["last_offset"] < document["known_last_offset"]
    first = document["cut"][0]
    assert Path(first["file"]) == segment(directory, bases[2])
    assert Path(first["kept_as"]).name == f"{Path(first['file']).name}.cut-from-{first['position']}"
    assert [Path(cut["file"]) for cut in document["cut"][1:]] == [
        segment(directory, base) for base in bases[3:]
    ]
