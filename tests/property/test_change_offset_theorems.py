"""The results of ACL changes report the base offset of their batch, which agrees with the log."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.image import AclAdded, AclRemoved
from kustos.metadata.inspection.timeline import Timeline
from kustos.metadata.store.store import CreateAcls, DeleteAcls, MetadataStore
from kustos.runtime import FileSystemStorage
from testkit.protocol.random_requests import allow

Change = CreateAcls | DeleteAcls

NAMES = st.sampled_from(["a", "b", "c", ""])
"""Names for requests; the empty name is refused."""


def binding(name: str) -> AclBinding:
    return allow(ResourceType.TOPIC, name, AclOperation.READ)


def only(name: str) -> AclBindingFilter:
    """Return the filter for a topic's ACLs; for the empty name one of UNKNOWN type, which is refused."""
    pattern_type = PatternType.LITERAL if name else PatternType.UNKNOWN
    return AclBindingFilter(
        ResourcePatternFilter(ResourceType.TOPIC, name, pattern_type),
        AccessControlEntryFilter(None, None, AclOperation.ANY, AclPermissionType.ANY),
    )


REQUESTS = st.builds(CreateAcls, st.lists(NAMES.map(binding), max_size=3).map(tuple)) | st.builds(
    DeleteAcls, st.lists(NAMES.map(only), max_size=2).map(tuple)
)


def effect(request: Change, there: set[str]) -> set[str]:
    """Apply a request to `there` and return the names that it changes."""
    match request:
        case CreateAcls(bindings):
            changed = {each.pattern.name for each in bindings} - there - {""}
            there |= changed
        case DeleteAcls(filters):
            changed = {each.pattern_filter.name or "" for each in filters} & there
            there -= changed
    return changed


def said(results: Sequence[Any]) -> set[int | None]:
    """Return the offsets that the items report; a failed item must report none."""
    assert all(each.change_offset is None for each in results if each.error is not None)
    return {each.change_offset for each in results if each.error is None}


@settings(max_examples=40, deadline=None)  # each example syncs the disk several times
@given(st.lists(st.lists(REQUESTS, max_size=5), max_size=4))
def test_the_reported_offset_is_the_batch_offset_in_the_log(
    groups: Sequence[Sequence[Change]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "meta"
        format_directory(directory)
        store = MetadataStore.open(directory)
        there: set[str] = set()
        expected: dict[int, set[str]] = {}
        try:
            for group in groups:
                for request, results in zip(group, store.append_many(group), strict=True):
                    changed, offsets = effect(request, there), said(results)
                    if changed:
                        (offset,) = offsets
                        assert offset is not None
                        assert offset not in expected, "no two requests share a batch"
                        expected[offset] = changed
                    else:
                        assert offsets <= {None}
        finally:
            store.close()
        logged: dict[int, set[str]] = {}
        for each in Timeline(directory, FileSystemStorage()).changes():
            if isinstance(each.change, AclAdded | AclRemoved):
                logged.setdefault(each.batch_base_offset, set()).add(each.change.binding.pattern.name)
        assert logged == expected
