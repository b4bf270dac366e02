"""A node of several processes: the one that owns the metadata, and the workers that serve clients."""

from kustos.server.workers.node import WorkerPoolNode

__all__ = [
    "WorkerPoolNode",
]
