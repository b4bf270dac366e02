"""What a node keeps of its quorum: in memory, on disk, over restarts, and what it publishes when."""

from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c
from structlog.testing import capture_logs

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.control import TokenRules
from kustos.metadata.directory.format import format_directory
from kustos.metadata.errors import DirectoryError, LogDamagedError, RecordError, ReplayError
from kustos.metadata.features import LATEST_LEVEL
from kustos.metadata.image import EMPTY_IMAGE, AclAdded, MetadataDelta, MetadataImage, acl_record, image_of
from kustos.metadata.log import METADATA_PARTITION, SnapshotId, encode_snapshot
from kustos.metadata.quorum import (
    Appended,
    CaughtUp,
    Committed,
    CommittedImage,
    FetchedBatch,
    FollowedStore,
    SnapshotFetched,
    Truncated,
    copy,
)
from kustos.metadata.quorum.values import Effect
from kustos.metadata.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    OpaqueRecord,
    decode_record,
    encode_record,
)
from kustos.runtime import FileSystemStorage, StorageLockedError, SystemClock
from kustos.wire import CRC_COVERS_FROM, HEADER_SIZE_BYTES, batch_end
from kustos.wire.record_batch import batch_of


class Publisher:
    def __init__(self) -> None:
        self.heard: list[MetadataImage | MetadataDelta] = []

    def publish_snapshot(self, image: MetadataImage) -> None:
        self.heard.append(image)

    def publish_delta(self, delta: MetadataDelta) -> None:
        self.heard.append(delta)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    format_directory(tmp_path / "metadata", cluster_id="5L6g3nShT-eMCtK--X86sw")
    return tmp_path / "metadata"


def opened(directory: Path) -> FollowedStore:
    return FollowedStore.open(directory, FileSystemStorage(), SystemClock())


def acl(number: int) -> AclBinding:
    pattern = ResourcePattern(ResourceType.TOPIC, f"topic-{number}", PatternType.LITERAL)
    entry = AccessControlEntry("User:ann", "*", AclOperation.READ, AclPermissionType.DENY)
    return AclBinding(pattern, entry)


def record(number: int) -> MetadataRecord:
    return acl_record(UUID(int=number), acl(number))


def fetched(base_offset: int, *records: MetadataRecord, epoch: int = 1) -> FetchedBatch:
    batch = batch_of(base_offset, epoch, 0, map(encode_record, records))
    return FetchedBatch(batch, batch.encode())


def committed(*batches: FetchedBatch) -> Committed:
    last = batches[-1].batch
    first = batches[0].batch.base_offset
    return Committed(batches, first, last.last_offset + 1, last.partition_leader_epoch)


def snapshot(end_offset: int, *records: MetadataRecord, epoch: int = 1) -> SnapshotFetched:
    data = encode_snapshot(records, epoch=epoch, timestamp_ms=0)
    return SnapshotFetched(SnapshotId(end_offset, epoch), data)


def files(directory: Path) -> list[str]:
    names = [path.name for path in (directory / METADATA_PARTITION).iterdir()]
    return sorted(name for name in names if name.endswith((".log", ".checkpoint")))


def test_nothing_is_published_before_the_node_has_caught_up(directory: Path) -> None:
    store, publisher = opened(directory), Publisher()
    store.add_publisher(publisher)
    first, second = fetched(0, record(1)), fetched(1, record(2))
    store.perform((Appended((first, second)), committed(first)))
    assert publisher.heard == []
    assert (store.image, store.last_offset) == (EMPTY_IMAGE, -1)
    with capture_logs() as logs:
        store.perform((committed(second), CaughtUp(2)))
    assert logs == [
        {"event": "caught up with the quorum", "log_level": "info", "offset": 1, "epoch": 1, "acls": 2}
    ]
    [image] = publisher.heard
    assert isinstance(image, MetadataImage)
    assert set(image.acls.values()) == {acl(1), acl(2)}
    third = fetched(2, record(3))
    store.perform((Appended((third,)), committed(third), CaughtUp(3)))
    assert publisher.heard[1:] == [MetadataDelta(2, 1, (AclAdded(UUID(int=3), acl(3)),))]
    assert store.last_offset == 2
    store.close()


def test_a_publisher_that_comes_later_is_handed_the_image(directory: Path) -> None:
    store, publisher = opened(directory), Publisher()
    first = fetched(0, record(1))
    store.perform((Appended((first,)), committed(first), CaughtUp(1)))
    store.add_publisher(publisher)
    assert publisher.heard == [store.image]
    store.close()


def test_a_snapshot_takes_the_place_of_everything(directory: Path) -> None:
    store, publisher = opened(directory), Publisher()
    store.add_publisher(publisher)
    first = fetched(0, record(1))
    store.perform((Appended((first,)), committed(first), CaughtUp(1)))
    with capture_logs() as logs:
        store.perform((snapshot(50, record(7)),))
    assert logs == [
        {"event": "took over a snapshot of the quorum", "log_level": "info", "offset": 49, "epoch": 1}
    ]
    image = publisher.heard[-1]
    assert isinstance(image, MetadataImage)
    assert (dict(image.acls), image.offset) == ({UUID(int=7): acl(7)}, 49)
    assert files(directory) == ["00000000000000000050-0000000001.checkpoint", "00000000000000000050.log"]
    store.close()


def test_records_below_what_was_applied_are_not_applied_again(directory: Path) -> None:
    store = opened(directory)
    store.perform((snapshot(2, record(1), record(2)),))
    straddling = fetched(1, record(2), record(3))
    store.perform((Committed((straddling,), 2, 3, 1), CaughtUp(3)))
    assert len(store.image.acls) == 3
    store.close()


def test_what_cannot_be_applied_is_an_error(directory: Path) -> None:
    store = opened(directory)
    twice = (fetched(0, record(1)), fetched(1, record(1)))
    with pytest.raises(ReplayError):
        store.perform((committed(*twice),))
    store.close()


def test_records_of_a_kind_that_nobody_knows_end_it(directory: Path) -> None:
    store = opened(directory)
    unknown = fetched(0, OpaqueRecord(99, 0, b""))
    with pytest.raises(RecordError, match="newer Kafka"):
        store.perform((committed(unknown),))
    store.close()


@pytest.mark.parametrize(
    "level",
    [
        FeatureLevelRecord("metadata.version", LATEST_LEVEL + 1),
        FeatureLevelRecord("transaction.version", 99),
        FeatureLevelRecord("tomorrow.version", 1),
    ],
)
def test_a_feature_at_a_level_that_nobody_knows_ends_it(directory: Path, level: FeatureLevelRecord) -> None:
    known = FeatureLevelRecord("metadata.version", LATEST_LEVEL)
    for effects in (
        (committed(fetched(0, record(1), level)),),
        (snapshot(50, known, record(1), level),),
    ):
        store, publisher = opened(directory), Publisher()
        store.add_publisher(publisher)
        first = fetched(0, known)
        store.perform((committed(first), CaughtUp(1)))
        with pytest.raises(ReplayError, match="newer Kafka"):
            store.perform(effects)
        assert len(publisher.heard) == 1
        assert dict(store.image.acls) == {}
        store.close()


def test_a_feature_that_is_gone_again_is_none_whoever_knew_it(directory: Path) -> None:
    store = opened(directory)
    store.perform((committed(fetched(0, FeatureLevelRecord("tomorrow.version", 0))), CaughtUp(1)))
    assert store.last_offset == 0
    store.close()


@pytest.mark.parametrize("value", [record(1), BeginTransactionRecord("n"), BeginTransactionRecord(None)])
def test_a_tagged_field_that_nobody_knows_is_passed_over(directory: Path, value: MetadataRecord) -> None:
    tagged = with_tag(encode_record(value), isinstance(value, BeginTransactionRecord) and value.name)
    with pytest.raises(RecordError, match="tagged field"):
        decode_record(tagged)
    assert decode_record(tagged, passes_unknown_tags=True) == value
    store = opened(directory)
    batch = batch_of(0, 1, 0, [tagged])
    data = FetchedBatch(batch, batch.encode())
    store.perform((Appended((data,)), committed(data), CaughtUp(1)))
    # an image within a transaction would not be one that the next batches continue
    assert store.last_offset == (-1 if isinstance(value, BeginTransactionRecord) else 0)
    store.close()


def test_a_metadata_transaction_is_published_as_a_whole_at_its_end(directory: Path) -> None:
    store, publisher = opened(directory), Publisher()
    store.add_publisher(publisher)
    batches = (
        fetched(0, record(1), BeginTransactionRecord("bootstrap"), record(2)),
        fetched(3, record(3)),
        fetched(4, EndTransactionRecord(), record(4)),
    )
    store.perform((CaughtUp(0),))
    for each in batches[:2]:
        store.perform((Appended((each,)), committed(each)))
        assert (store.last_offset, dict(store.image.acls)) == (-1, {})
    store.perform((Appended(batches[2:]), committed(*batches[2:])))
    [_, delta] = publisher.heard
    assert isinstance(delta, MetadataDelta)
    assert (delta.last_offset, store.last_offset) == (5, 5)
    assert delta.batches == tuple(each.data for each in batches)
    assert set(store.image.acls) == {UUID(int=number) for number in (1, 2, 3, 4)}
    store.close()


def with_tag(value: bytes, has_tag: object) -> bytes:
    """Return a record value with one more tagged field, of number 5, at its end."""
    if not has_tag:
        assert value.endswith(b"\0")
        return value[:-1] + b"\x01\x05\x02??"
    # its own tag is the last thing in it: one tag, number 0
    at = value.index(b"\x01\x00", 3)
    return value[:at] + b"\x02" + value[at + 1 :] + b"\x05\x02??"


def restarted(directory: Path, *effects: Effect) -> FollowedStore:
    store = opened(directory)
    store.perform(effects)
    store.close()
    return opened(directory)


def test_a_restart_goes_on_where_it_ended_and_believes_nothing_yet(directory: Path) -> None:
    batches = (fetched(50, record(8)), fetched(51, record(9)))
    store = restarted(directory, snapshot(50, record(7)), Appended(batches), committed(batches[0]))
    machine = store.machine
    assert (machine.base, machine.end_offset, machine.applied_end) == (SnapshotId(50, 1), 52, 50)
    assert (machine.high_watermark, machine.leader, machine.epoch) == (-1, None, 1)
    assert store.image is EMPTY_IMAGE
    store.close()


@pytest.mark.parametrize("end_offset", [1, 2, 3])
def test_what_was_cut_is_cut_on_disk(directory: Path, end_offset: int) -> None:
    batches = (fetched(0, record(1)), fetched(1, record(2)), fetched(2, record(3)))
    store = restarted(directory, Appended(batches), committed(batches[0]), Truncated(end_offset))
    assert store.machine.end_offset == end_offset
    store.close()


def test_a_write_that_was_not_finished_is_cut_and_fetched_again(directory: Path) -> None:
    batches = (fetched(0, record(1)), fetched(1, record(2)))
    restarted(directory, Appended(batches)).close()
    path = directory / METADATA_PARTITION / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-3])
    store = opened(directory)
    assert store.machine.end_offset == 1
    store.perform((Appended((batches[1],)),))
    store.close()
    assert path.read_bytes() == batches[0].data + batches[1].data


def damage(directory: Path, name: str, at: int) -> None:
    path = directory / METADATA_PARTITION / name
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("00000000000000000050.log", 70),
        ("00000000000000000050.log", 7),
        ("00000000000000000050-0000000001.checkpoint", 80),
    ],
)
def test_a_damaged_copy_is_thrown_away_with_a_word(directory: Path, name: str, at: int) -> None:
    batches = (fetched(50, record(8)), fetched(51, record(9)))
    restarted(directory, snapshot(50, record(7)), Appended(batches)).close()
    damage(directory, name, at)
    with capture_logs() as logs:
        store = opened(directory)
    assert [each["event"] for each in logs] == [
        "the local copy of the metadata is discarded and fetched again"
    ]
    assert (store.machine.end_offset, store.machine.base) == (0, SnapshotId(0, 0))
    assert files(directory) == ["00000000000000000000.log"]
    store.close()


def test_a_snapshot_whose_records_do_not_fill_their_batch_is_refused_by_its_name() -> None:
    whole = snapshot(50, record(7))
    data, batch_starts = bytearray(whole.data), [0]
    while batch_starts[-1] < len(data):
        batch_starts.append(batch_end(whole.data, batch_starts[-1]))
    begin, end = batch_starts[1:3]
    # one byte of the ACL's batch says another size of its record, and the checksum is right
    data[begin + HEADER_SIZE_BYTES] += 2
    covered = begin + CRC_COVERS_FROM
    data[covered - 4 : covered] = crc32c(data[covered:end]).to_bytes(4, "big")
    with pytest.raises(LogDamagedError, match=f"`{whole.snapshot_id.file_name}` is damaged"):
        CommittedImage().replace(SnapshotFetched(whole.snapshot_id, bytes(data)))


def test_a_snapshot_that_contradicts_itself_is_thrown_away(directory: Path) -> None:
    store = opened(directory)
    store._copy.replace(snapshot(50, record(7), record(7)))
    store.close()
    with capture_logs() as logs:
        store = opened(directory)
    assert logs == [
        {
            "event": "the local copy of the metadata is discarded and fetched again",
            "log_level": "warning",
            "reason": f"two ACLs have the id `{UUID(int=7)}`",
        }
    ]
    assert store.machine.end_offset == 0
    store.close()


def test_a_long_log_becomes_a_snapshot(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "LOG_MAX_BYTES", 500)
    store = opened(directory)
    level = fetched(0, FeatureLevelRecord("metadata.version", 30))
    batches = [level, *(fetched(number, record(number)) for number in range(1, 20))]
    for each in batches:
        store.perform((Appended((each,)), committed(each), CaughtUp(each.batch.last_offset + 1)))
    image = store.image
    names = files(directory)
    assert len(names) == 2
    assert (
        sum(path.stat().st_size for path in (directory / METADATA_PARTITION).iterdir())
        < sum(len(each.data) for each in batches) + 1_000
    )
    store.close()
    store = opened(directory)
    machine = store.machine
    assert machine.base.end_offset > 0
    rest = tuple(each for each in batches if each.batch.base_offset >= machine.base.end_offset)
    if rest:
        store.perform((Committed(rest, machine.applied_end, 20, 1),))
    store.perform((CaughtUp(20),))
    assert store.image.same_state(image)
    assert image_of(image.records()).same_state(store.image)
    store.close()


def test_a_disk_that_fails_costs_the_copy_only(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(directory)

    def fails(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(type(store._copy._file), "append", fails)
    first = fetched(0, record(1))
    with capture_logs() as logs:
        store.perform((Appended((first,)), committed(first), CaughtUp(1)))
    assert "cannot be written" in logs[0]["event"]
    assert len(store.image.acls) == 1
    store.close()


def test_a_log_of_the_nodes_own_is_never_overwritten(directory: Path) -> None:
    (directory / METADATA_PARTITION / "quorum-state").write_text("{}")
    with pytest.raises(DirectoryError, match=r"wrote itself.*formatted with the id of the cluster$"):
        opened(directory)


def test_an_unformatted_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DirectoryError,
        match=r"`kustos storage format` on it with the id of the cluster, or correct `metadata.log.dir`$",
    ):
        opened(tmp_path)


def test_two_nodes_cannot_share_a_directory(directory: Path) -> None:
    store = opened(directory)
    with pytest.raises(StorageLockedError):
        opened(directory)
    store.close()


def test_the_directory_of_another_node_is_refused(directory: Path) -> None:
    storage, clock = FileSystemStorage(), SystemClock()
    with pytest.raises(DirectoryError, match=r"belongs to node 1, but `node.id` is 2; name the node's own"):
        FollowedStore.open(directory, storage, clock, node_id=2)
    FollowedStore.open(directory, storage, clock, node_id=1).close()


def test_the_rules_of_tokens_are_those_given(directory: Path) -> None:
    rules = TokenRules(max_lifetime_ms=7)
    store = FollowedStore.open(directory, FileSystemStorage(), SystemClock(), rules)
    assert store.token_rules is rules
    store.close()
    store = opened(directory)
    assert store.token_rules == TokenRules()
    store.close()


def test_before_anything_is_applied_there_is_nothing() -> None:
    assert CommittedImage().image is EMPTY_IMAGE
