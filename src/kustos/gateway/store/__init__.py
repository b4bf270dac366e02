"""The sources of a node's metadata, the single writer of its log, and the publishers that follow it."""

from kustos.gateway.store.local import LocalLog
from kustos.gateway.store.publisher import AuthorizerPublisher, DecidedOffset
from kustos.gateway.store.snapshots import SnapshotTaker
from kustos.gateway.store.source import MetadataSource, Submitted
from kustos.gateway.store.writer import ALONE, Followers, MetadataWriter

__all__ = [
    "ALONE",
    "AuthorizerPublisher",
    "DecidedOffset",
    "Followers",
    "LocalLog",
    "MetadataSource",
    "MetadataWriter",
    "SnapshotTaker",
    "Submitted",
]
