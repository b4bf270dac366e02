"""The one writer of the metadata log, and the publishers that follow it."""

from kustos.gateway.store.publisher import AuthorizerPublisher
from kustos.gateway.store.snapshots import SnapshotTaker
from kustos.gateway.store.writer import MetadataWriter

__all__ = [
    "AuthorizerPublisher",
    "MetadataWriter",
    "SnapshotTaker",
]
