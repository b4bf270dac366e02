"""Directories that are not ours, newer than we are, or cannot be used: a clear error, and nothing changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load
from kustos.metadata.errors import DirectoryError, LogDamagedError, MetadataError
from kustos.metadata.features import OTHER_FEATURES_MAX
from kustos.metadata.records import KRaftVersion, control_batch
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage, StorageLockedError
from kustos.wire.record_batch import batch_of
from testkit.metadata_logs import acl, append, contents, finalize, partition, segment


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "log", cluster_id="AKVSuQ5WSpWpmdttEIhTSA", acls=[acl("first")])
    store = MetadataStore.open(tmp_path / "log")
    store.create_acls([acl("second")])
    store.close()
    return tmp_path / "log"


def newer_record_version(directory: Path) -> None:
    append(directory, b"\x01\x12\x01" + bytes(20))


def unknown_record(directory: Path) -> None:
    append(directory, b"\x01\x7b\x00\x00")


def newer_frame(directory: Path) -> None:
    append(directory, b"\x02\x12\x00\x00")


def unknown_level(directory: Path) -> None:
    finalize(directory, "metadata.version", 99)


def unknown_level_of_another_feature(directory: Path) -> None:
    finalize(directory, "transaction.version", 3)


def unknown_feature(directory: Path) -> None:
    finalize(directory, "acl.version", 1)


def unknown_kraft_version(directory: Path) -> None:
    reader, _ = load(directory, FileSystemStorage())
    list(reader.batches())
    batch = control_batch(reader.next_offset, reader.epoch, 0, (KRaftVersion(2),))
    with segment(directory, 0).open("ab") as file:
        file.write(batch.encode())


def newer_meta_properties(directory: Path) -> None:
    path = directory / "meta.properties"
    path.write_text(path.read_text().replace("version=1", "version=2"))


def no_meta_properties(directory: Path) -> None:
    (directory / "meta.properties").unlink()


def meta_properties_of_nobody(directory: Path) -> None:
    (directory / "meta.properties").write_text("version=1\n")


def log_is_a_file(directory: Path) -> None:
    for path in partition(directory).iterdir():
        path.unlink()
    partition(directory).rmdir()
    partition(directory).write_text("no directory")


def half_a_snapshot(directory: Path) -> None:
    (path,) = partition(directory).glob("*.checkpoint")
    path.write_bytes(path.read_bytes()[:100])


def no_quorum_state(directory: Path) -> None:
    (partition(directory) / "quorum-state").write_text("{}")


def copy_of_a_quorum(directory: Path) -> None:
    (partition(directory) / "quorum-state").unlink()


def torn_end(directory: Path) -> None:
    with segment(directory, 0).open("ab") as file:
        file.write(batch_of(2, 1, 0, [b"\x01\x07" + bytes(90)]).encode()[:100])


def torn_and_beyond_its_epoch(directory: Path) -> None:
    torn_end(directory)
    (partition(directory) / "quorum-state").write_text('{"leaderEpoch":0}')


def torn_and_of_nobody(directory: Path) -> None:
    torn_end(directory)
    copy_of_a_quorum(directory)


def torn_and_before_an_epoch(directory: Path) -> None:
    torn_end(directory)
    (partition(directory) / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n2 2\n")


def torn_and_before_its_recovery_point(directory: Path) -> None:
    torn_end(directory)
    (partition(directory) / "kustos.recovery-point").write_bytes(b"%020d\n" % 3)


def torn_and_newer(directory: Path) -> None:
    unknown_feature(directory)
    with segment(directory, 0).open("ab") as file:
        file.write(bytes(600))


def no_recovery_point(directory: Path) -> None:
    (partition(directory) / "kustos.recovery-point").write_bytes(b"")


def torn_epochs(directory: Path) -> None:
    (partition(directory) / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n")


BAD: dict[Callable[[Path], None], tuple[type[MetadataError], str]] = {
    newer_record_version: (LogDamagedError, "offset 2 .* kind 18 in version 1, .* newer Kafka"),
    unknown_record: (LogDamagedError, "offset 2 .* kind 123 in version 0, .* newer Kafka"),
    newer_frame: (LogDamagedError, "offset 2 .* frame version 2, only 1"),
    unknown_level: (
        DirectoryError,
        "was written by a newer Kafka or kustos: metadata.version level 99 is not known here, only levels 7 "
        "to 33 are; use a newer kustos",
    ),
    unknown_level_of_another_feature: (
        DirectoryError,
        "newer Kafka or kustos: transaction.version level 3 is not known here, only up to 2 is; use a newer",
    ),
    unknown_feature: (
        DirectoryError,
        r"newer Kafka or kustos: the feature `acl.version` \(at level 1\) is not known here; use a newer",
    ),
    unknown_kraft_version: (LogDamagedError, "sets kraft.version to 2, .* newer kustos"),
    newer_meta_properties: (DirectoryError, "version `2`, only 0 and 1 are known"),
    no_meta_properties: (DirectoryError, "not formatted; run `kustos storage format`"),
    meta_properties_of_nobody: (DirectoryError, "lacks `cluster.id`"),
    log_is_a_file: (LogDamagedError, "lacks its beginning|is missing"),
    half_a_snapshot: (LogDamagedError, "snapshot .* damaged: at byte 83"),
    no_quorum_state: (LogDamagedError, "`.*quorum-state` is not a quorum state"),
    copy_of_a_quorum: (DirectoryError, "holds a log without `quorum-state`: a copy of another's"),
    torn_and_beyond_its_epoch: (LogDamagedError, "ends in epoch 1, but `quorum-state` knows only 0"),
    torn_and_of_nobody: (DirectoryError, "holds a log without `quorum-state`"),
    torn_and_before_an_epoch: (LogDamagedError, "knows of epoch 2 from offset 2 on: its end is missing"),
    torn_and_before_its_recovery_point: (LogDamagedError, "is damaged at offset 2"),
    torn_and_newer: (DirectoryError, "the feature `acl.version`"),
    no_recovery_point: (LogDamagedError, "`.*kustos.recovery-point` names no offset"),
    torn_epochs: (LogDamagedError, "`.*leader-epoch-checkpoint` is not a leader-epoch checkpoint"),
}


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_a_directory_that_cannot_be_used_is_refused_and_left_alone(
    directory: Path, spoil: Callable[[Path], None]
) -> None:
    kind, text = BAD[spoil]
    spoil(directory)
    before = contents(directory)
    for _ in range(2):
        with pytest.raises(kind, match=text):
            MetadataStore.open(directory)
    assert contents(directory) == before


def test_features_that_a_real_kafka_finalizes_are_no_hindrance(directory: Path) -> None:
    # as `kafka-storage format` of 4.4.0 does it, and as a feature is given up
    for feature, level in {**OTHER_FEATURES_MAX, "acl.version": 0}.items():
        finalize(directory, feature, level)
    store = MetadataStore.open(directory)
    assert {name: store.image.features[name] for name in OTHER_FEATURES_MAX} == OTHER_FEATURES_MAX
    store.close()


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ({"node_id": 2}, "belongs to node 1, but `node.id` is 2"),
        ({"cluster_id": "other"}, "belongs to cluster `AKVSuQ5WSpWpmdttEIhTSA`, not to `other`"),
    ],
)
def test_a_directory_of_another_node_or_cluster_is_refused(
    directory: Path, expected: dict[str, object], text: str
) -> None:
    before = contents(directory)
    with pytest.raises(DirectoryError, match=text):
        MetadataStore.open(directory, **expected)  # type: ignore[arg-type]
    assert contents(directory) == before
    MetadataStore.open(directory, node_id=1, cluster_id="AKVSuQ5WSpWpmdttEIhTSA").close()


def test_a_second_writer_is_kept_out(directory: Path) -> None:
    first = MetadataStore.open(directory)
    before = contents(directory)
    with pytest.raises(StorageLockedError, match="already open for writing"):
        MetadataStore.open(directory)
    assert contents(directory) == before
    first.create_acls([acl("still-works")])
    first.close()
    MetadataStore.open(directory).close()
