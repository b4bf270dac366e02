"""`kustos metadata verify` compares the checkpoint of leader epochs with the log."""

from pathlib import Path

import pytest

from kustos.metadata.inspection.agreement import contradiction
from kustos.metadata.inspection.verification import verify
from kustos.metadata.log import METADATA_PARTITION
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from testkit.metadata_logs import OFTEN, many_segments, take_snapshot
from testkit.metadata_logs import acl as binding
from tests.unit.metadata.inspection_support import acl, directory_with, log_bytes, snapshot_bytes

LOG = ((1, 0), (2, 11), (4, 13))
"""Epochs of a log from offset 0 to 20."""
TRIMMED = ((2, 11), (4, 13))


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        (LOG, LOG),
        ((), LOG),
        (LOG[:2], LOG),
        # the file was written before the first batches were deleted, or trimmed with them
        (LOG, TRIMMED),
        (((2, 12), (4, 13)), TRIMMED),
        (((1, 3), (4, 13)), LOG),
        (((0, 0), (1, 4), (2, 11)), TRIMMED),
    ],
)
def test_what_the_log_has_or_had_is_no_contradiction(
    told: tuple[tuple[int, int], ...], seen: tuple[tuple[int, int], ...]
) -> None:
    assert contradiction(told, seen, 21) is None


@pytest.mark.parametrize(
    ("told", "seen", "words"),
    [
        ((*LOG, (5, 21)), LOG, "epoch 5 is to begin at offset 21, but the log ends at 20"),
        ((*LOG, (5, 20)), LOG, "epoch 5 is to begin at offset 20, where epoch 4 is under way"),
        (((1, 0), (2, 12)), LOG, "epoch 2 is to begin at offset 12, where epoch 2 is under way"),
        (((1, 0), (2, 10)), LOG, "epoch 2 is to begin at offset 10, where epoch 1 is under way"),
        (((2, 0),), LOG, "epoch 2 is to begin at offset 0, where epoch 1 is under way"),
        (((2, 11), (2, 13)), LOG, "epoch 2 from offset 13 cannot follow epoch 2 from 11"),
        (((2, 11), (4, 11)), LOG, "epoch 4 from offset 11 cannot follow epoch 2 from 11"),
        (((2, 11), (1, 12)), LOG, "epoch 1 from offset 12 cannot follow epoch 2 from 11"),
        (((-1, 0),), LOG, "epoch -1 from offset 0 cannot follow epoch -1 from -1"),
        (((1, -1),), LOG, "epoch 1 from offset -1 cannot follow epoch -1 from -1"),
        (((3, 5),), TRIMMED, "epoch 3 is to begin before the log does, in epoch 2"),
    ],
)
def test_what_the_log_has_not_is_a_contradiction(
    told: tuple[tuple[int, int], ...], seen: tuple[tuple[int, int], ...], words: str
) -> None:
    assert contradiction(told, seen, 21) == words


def checkpoint_of(directory: Path) -> Path:
    return directory / METADATA_PARTITION / "leader-epoch-checkpoint"


def messages(directory: Path) -> list[str]:
    return [damage.message for damage in verify([directory], FileSystemStorage()).damage]


def test_what_kustos_writes_is_whole_also_after_old_files_went(tmp_path: Path) -> None:
    directory = many_segments(tmp_path / "log")
    assert messages(directory) == []
    for name in ("a", "b", "c"):
        store = MetadataStore.open(directory, policy=OFTEN)
        store.create_acls([binding(name)])
        assert take_snapshot(store)
        store.close()
        assert messages(directory) == []
    assert not (directory / METADATA_PARTITION / f"{0:020d}.log").exists()


def test_a_checkpoint_that_is_none_or_of_another_log_is_damage(tmp_path: Path) -> None:
    second = log_bytes(((acl(5),),), base_offset=11, epoch=2)
    directory = directory_with(tmp_path, log_0=log_bytes(), log_11=second)
    path = checkpoint_of(directory)
    for text in ("0\n2\n1 0\n2 11\n", "0\n1\n1 0\n", "0\n0\n"):
        path.write_text(text)
        assert messages(directory) == []
    path.write_text("0\n2\n1 0\n")
    assert messages(directory) == [f"`{path}` is not a leader-epoch checkpoint; restore it from a copy"]
    path.write_text("0\n2\n1 0\n2 13\n")
    assert messages(directory) == [
        f"`{path}` contradicts the log: epoch 2 is to begin at offset 13, but the log ends at 12; "
        "restore the directory from a copy"
    ]


def test_damage_of_the_log_is_told_and_not_its_shadow_on_the_checkpoint(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes(), log_20=log_bytes((), base_offset=20, epoch=2))
    checkpoint_of(directory).write_text("0\n1\n9 9\n")
    (message,) = messages(directory)
    assert "a segment is missing" in message
    alone = directory_with(tmp_path / "alone", snapshot_11_1=snapshot_bytes())
    checkpoint_of(alone).write_text("0\n1\n1 0\n")
    assert not any("contradicts" in message for message in messages(alone))
