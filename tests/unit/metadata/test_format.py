"""Formatting: which ids and levels are taken, and in which words others are not."""

from pathlib import Path
from uuid import UUID

import pytest

from kustos.acl import AclBinding
from kustos.metadata.directory.format import (
    InitialScramUser,
    describe_directory,
    format_directory,
    read_decoy_secret,
)
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import DirectoryError
from kustos.metadata.features import (
    DEFAULT_LEVEL,
    METADATA_VERSION_NAMES,
    SCRAM_LEVEL,
    metadata_version_level,
    metadata_version_name,
    unknown_level_text,
)
from kustos.metadata.log import snapshot_batches
from kustos.metadata.log.snapshot import last_contained_timestamp_ms
from kustos.metadata.scram import ScramCredential, ScramMechanism
from kustos.metadata.store.store import MetadataStore
from testkit.clocks import ManualClock
from testkit.metadata_logs import acl, partition

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
USER = InitialScramUser(
    "ann", ScramMechanism.SCRAM_SHA_256, ScramCredential(b"salt", bytes(32), bytes(32), 4096)
)


def refusal(directory: Path, **wanted: object) -> str:
    with pytest.raises(DirectoryError) as caught:
        format_directory(directory, **wanted)  # type: ignore[arg-type]
    assert not (directory / "meta.properties").exists()
    return str(caught.value)


def test_a_formatted_directory_is_described(tmp_path: Path) -> None:
    clock = ManualClock(7_000)
    made = format_directory(tmp_path, cluster_id=CLUSTER, node_id=3, acls=[acl("a")], clock=clock)
    found = describe_directory(tmp_path)
    assert found.properties == made
    assert (made.cluster_id, made.node_id) == (CLUSTER, 3)
    assert isinstance(made.directory_id, UUID)
    assert (found.directory, found.segment_base_offsets, found.torn_tail) == (tmp_path, (), None)
    assert found.snapshot_id is not None
    assert (found.snapshot_id.end_offset, found.snapshot_id.epoch) == (0, 0)
    assert found.image.metadata_version == DEFAULT_LEVEL
    assert [binding.pattern.name for binding in found.image.acls.values()] == ["a"]
    assert found.has_decoy_secret
    snapshot = (partition(tmp_path) / found.snapshot_id.file_name).read_bytes()
    # its age counts from here on (KIP-630)
    assert last_contained_timestamp_ms(snapshot, "it") == 7_000
    assert {batch.max_timestamp_ms for batch in snapshot_batches(snapshot, "it")} == {7_000}
    (tmp_path / "kustos.secret").unlink()
    assert not describe_directory(tmp_path).has_decoy_secret
    store = MetadataStore.open(tmp_path)
    store.close()
    assert describe_directory(tmp_path).segment_base_offsets == (0,)


def test_without_a_cluster_id_each_directory_has_its_own(tmp_path: Path) -> None:
    ids = {format_directory(tmp_path / str(number)).cluster_id for number in range(3)}
    assert len(ids) == 3
    assert all(len(each) == 22 for each in ids)


@pytest.mark.parametrize("node_id", [0, 1, 2**31 - 1])
def test_a_node_id_is_any_number_that_java_has(node_id: int, tmp_path: Path) -> None:
    assert format_directory(tmp_path, node_id=node_id).node_id == node_id


def test_what_cannot_be_formatted_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    for node_id in (-1, 2**31):
        assert refusal(tmp_path, node_id=node_id) == (
            f"node id `{node_id}` is not usable, choose one from 0 to 2147483647"
        )
    assert refusal(tmp_path, cluster_id="x") == (
        "cluster id `x` is not usable: `x` is not a UUID in 22 characters of URL-safe Base64"
    )
    for level in (6, 34):
        assert refusal(tmp_path, metadata_version=level) == (
            f"metadata.version level `{level}` is not known, choose one from 7 to 33"
        )
    assert refusal(tmp_path, metadata_version=SCRAM_LEVEL - 1, scram_users=[USER]) == (
        "SCRAM users need metadata.version 3.5-IV2 or higher"
    )
    nameless = AclBinding(acl("").pattern, acl("").entry)
    assert refusal(tmp_path, acls=[acl("a"), nameless]) == (
        f"the ACL {nameless.audit_text()} is not acceptable: Invalid empty resource name"
    )
    assert list(tmp_path.iterdir()) == []


def test_from_the_level_of_scram_on_there_are_users(tmp_path: Path) -> None:
    format_directory(tmp_path, metadata_version=SCRAM_LEVEL, scram_users=[USER])
    assert set(read_image(tmp_path).scram_credentials) == {("ann", 1)}


def test_what_is_formatted_or_in_use_is_left_alone(tmp_path: Path) -> None:
    format_directory(tmp_path)
    before = (tmp_path / "meta.properties").read_bytes()
    with pytest.raises(DirectoryError) as caught:
        format_directory(tmp_path)
    assert str(caught.value) == (f"`{tmp_path}` is formatted already; choose another directory or remove it")
    assert (tmp_path / "meta.properties").read_bytes() == before
    # killed before it was done: the same command finishes it
    (tmp_path / "meta.properties").unlink()
    format_directory(tmp_path)
    for name in (f"{0:020d}.log", f"{5:020d}-{1:010d}.checkpoint"):
        (tmp_path / "meta.properties").unlink(missing_ok=True)
        (partition(tmp_path) / name).write_bytes(b"")
        assert refusal(tmp_path) == (
            f"`{partition(tmp_path)}` holds a log already; choose another directory or remove it"
        )
        (partition(tmp_path) / name).unlink()


def test_a_directory_that_is_not_formatted_is_not_described(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError) as caught:
        describe_directory(tmp_path)
    assert str(caught.value) == f"`{tmp_path}` is not formatted; run `kustos storage format` on it"


def test_the_secret_of_decoys_is_random_and_whole(tmp_path: Path) -> None:
    secrets = set()
    for number in range(3):
        format_directory(tmp_path / str(number))
        secrets.add(read_decoy_secret(tmp_path / str(number)))
    assert {len(secret) for secret in secrets} == {32}
    assert len(secrets) == 3
    path = tmp_path / "0" / "kustos.secret"
    path.write_bytes(bytes(31))
    with pytest.raises(DirectoryError) as caught:
        read_decoy_secret(tmp_path / "0")
    assert str(caught.value) == f"`{path}` must have 32 bytes; restore it from a copy"
    path.unlink()
    with pytest.raises(DirectoryError, match=r"cannot be read \(.*\); restore it from a copy$"):
        read_decoy_secret(tmp_path / "0")


def test_levels_have_names_and_releases() -> None:
    assert [metadata_version_name(level) for level in (7, 30, 33, 34)] == [
        "3.3-IV3",
        "4.3-IV0",
        "4.4-IV2",
        "34",
    ]
    for level, name in METADATA_VERSION_NAMES.items():
        assert metadata_version_level(name) == level
    found = [metadata_version_level(name) for name in ("3.5", "4.4", "4.3", "5.0", "4", "", "4.4-IV9")]
    assert found == [11, 33, 30, None, None, None, None]


@pytest.mark.parametrize(
    ("name", "level", "words"),
    [
        ("metadata.version", 6, "metadata.version level 6 is not known here, only levels 7 to 33 are"),
        ("metadata.version", 7, None),
        ("metadata.version", 33, None),
        ("metadata.version", 34, "metadata.version level 34 is not known here, only levels 7 to 33 are"),
        ("transaction.version", 2, None),
        ("transaction.version", 3, "transaction.version level 3 is not known here, only up to 2 is"),
        ("group.version", 2, "group.version level 2 is not known here, only up to 1 is"),
        ("x", 1, "the feature `x` (at level 1) is not known here"),
    ],
)
def test_levels_that_nobody_knows_are_told_with_those_that_are(
    name: str, level: int, words: str | None
) -> None:
    assert unknown_level_text(name, level) == words
