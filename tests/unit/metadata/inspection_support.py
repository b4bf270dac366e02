"""Files and directories of a metadata log with every kind of record in them."""

from pathlib import Path
from uuid import UUID

from kustos.metadata.log import METADATA_PARTITION, encode_snapshot
from kustos.metadata.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    LeaderChange,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
    control_batch,
    encode_record,
)
from kustos.wire.record_batch import batch_of

T0_MS = 1_700_000_000_000
"""2023-11-14T22:13:20Z, when the first batch was appended."""
SECRETS = (b"the-salt", b"the-stored-key", b"the-server-key")


def acl(number: int, principal: str = "User:alice", permission: int = 3) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(UUID(int=number), 2, f"t{number}", 3, principal, "*", 3, permission)


def user(name: str = "alice") -> UserScramCredentialRecord:
    return UserScramCredentialRecord(name, 1, *SECRETS, 4096)


def token(name: str = "token-1") -> DelegationTokenRecord:
    return DelegationTokenRecord("User:a", "User:b", ("User:c",), 1, 3, 2, name)


BATCHES: tuple[tuple[MetadataRecord, ...], ...] = (
    (FeatureLevelRecord("metadata.version", 30), user(), acl(1)),
    (acl(2), acl(3), NoOpRecord()),
    (RemoveAccessControlEntryRecord(UUID(int=2)), OpaqueRecord(2, 0, b"a topic\x00")),
    (token(), acl(4, "User:bob", 2)),
)
"""Data batches of a log, after the batch of its leader: offsets 1-3, 4-6, 7-8, 9-10."""


def log_bytes(
    batches: tuple[tuple[MetadataRecord, ...], ...] = BATCHES, base_offset: int = 0, epoch: int = 1
) -> bytes:
    """A segment in which each batch came a second after the one before, the leader's first."""
    data = bytearray(control_batch(base_offset, epoch, T0_MS, (LeaderChange(1, (1,), (1,)),)).encode())
    offset = base_offset + 1
    for number, records in enumerate(batches, start=1):
        data += batch_of(offset, epoch, T0_MS + 1000 * number, map(encode_record, records)).encode()
        offset += len(records)
    return bytes(data)


def directory_with(tmp_path: Path, **files: bytes) -> Path:
    """A metadata directory whose partition has these files; `log_5` is the segment from offset 5 on,
    `snapshot_5_1` the snapshot of what is below offset 5, in epoch 1."""
    directory = tmp_path / "meta"
    partition = directory / METADATA_PARTITION
    partition.mkdir(parents=True, exist_ok=True)
    (directory / "meta.properties").write_text("cluster.id=4L6g3nShT-eMCtK--X86sw\nnode.id=1\nversion=1\n")
    for name, data in files.items():
        kind, *numbers = name.split("_")
        if kind == "log":
            (partition / f"{int(numbers[0]):020d}.log").write_bytes(data)
        else:
            (partition / f"{int(numbers[0]):020d}-{int(numbers[1]):010d}.checkpoint").write_bytes(data)
    return directory


def snapshot_bytes(*records: MetadataRecord, last_contained_ms: int = T0_MS, epoch: int = 1) -> bytes:
    return encode_snapshot(
        records, epoch=epoch, timestamp_ms=T0_MS + 60_000, last_contained_timestamp_ms=last_contained_ms
    )
