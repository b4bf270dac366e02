"""ACLs out of metadata files and into a snapshot; what is damaged or partial is refused."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.acl.forms import AclFormatError
from kustos.metadata.directory.acl_files import encode_acl_snapshot, read_acl_files
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.errors import MetadataError
from kustos.metadata.store.store import MetadataStore


def acl(name: str, operation: AclOperation = AclOperation.READ, host: str = "*") -> AclBinding:
    entry = AccessControlEntry("User:a", host, operation, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, PatternType.PREFIXED), entry)


ACLS = [acl(f"t{number}") for number in range(2000)] + [acl("range", host="10.0.0.0/8")]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "acls.checkpoint"
    file.write_bytes(encode_acl_snapshot(ACLS + ACLS))
    assert set(read_acl_files(file)) == set(ACLS)


def test_a_written_snapshot_starts_a_directory(tmp_path: Path) -> None:
    format_directory(tmp_path / "meta", acls=[acl("other")])
    partition = tmp_path / "meta" / "__cluster_metadata-0"
    (partition / f"{0:020d}-{0:010d}.checkpoint").write_bytes(encode_acl_snapshot(ACLS))
    MetadataStore.open(tmp_path / "meta").close()
    image = read_image(tmp_path / "meta")
    assert set(image.acls.values()) == set(ACLS) == set(read_acl_files(partition))
    assert image.metadata_version == 32, "the first that knows address ranges"


@pytest.mark.parametrize("unknown", [AclOperation.UNKNOWN, AclPermissionType.UNKNOWN, PatternType.UNKNOWN])
def test_a_code_that_nobody_knows_is_not_written(unknown: object) -> None:
    pattern_type = unknown if isinstance(unknown, PatternType) else PatternType.LITERAL
    operation = unknown if isinstance(unknown, AclOperation) else AclOperation.READ
    permission = unknown if isinstance(unknown, AclPermissionType) else AclPermissionType.DENY
    pattern = ResourcePattern(ResourceType.TOPIC, "t", pattern_type)
    with pytest.raises(AclFormatError, match="UNKNOWN"):
        encode_acl_snapshot([AclBinding(pattern, AccessControlEntry("User:a", "*", operation, permission))])


def cut(directory: Path) -> Path:
    file = directory / "cut.checkpoint"
    file.write_bytes(encode_acl_snapshot(ACLS)[:-10])
    return file


def segment_alone(directory: Path) -> Path:
    """What a format put in stands in a snapshot; the segment alone lacks the beginning."""
    format_directory(directory / "meta", acls=[acl("other")])
    with closing(MetadataStore.open(directory / "meta")) as store:
        store.create_acls([acl("later")])
    (segment,) = (directory / "meta" / "__cluster_metadata-0").glob("*.log")
    return segment


def later_segment(directory: Path) -> Path:
    file = directory / f"{7:020d}.log"
    file.write_bytes(b"")
    return file


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (cut, "damaged"),
        (segment_alone, "lacks its beginning"),
        (later_segment, "not the beginning"),
        (lambda directory: directory, "not a metadata directory"),
        (lambda directory: directory / "absent.checkpoint", "cannot be read"),
    ],
)
def test_what_is_not_whole_is_refused(make: Callable[[Path], Path], rule: str, tmp_path: Path) -> None:
    with pytest.raises(MetadataError, match=rule):
        read_acl_files(make(tmp_path))
