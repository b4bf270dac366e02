"""The metadata store, which validates, appends and applies; its requests and snapshots."""

from kustos.metadata.store.snapshots import SnapshotJob
from kustos.metadata.store.store import (
    AlterScram,
    CreateAcls,
    DeleteAcls,
    MetadataStore,
    StoreRequest,
    SweepTokens,
)

__all__ = [
    "AlterScram",
    "CreateAcls",
    "DeleteAcls",
    "MetadataStore",
    "SnapshotJob",
    "StoreRequest",
    "SweepTokens",
]
