"""The worker pool: several processes that serve one node's clients, and the one that owns its metadata."""

from kustos.gateway.workers.encoding import WorkerStartError
from kustos.gateway.workers.figures import NodeFigures, WatchedWorkerPool
from kustos.gateway.workers.gateway import WorkerGateway, WorkerPoolWriter
from kustos.gateway.workers.handle import WorkerPhase
from kustos.gateway.workers.listener import hold_lock, outlive_earlier
from kustos.gateway.workers.messages import Levels, Reload, Welcome
from kustos.gateway.workers.pool import WorkerPool, WorkerPoolSettings
from kustos.gateway.workers.service import Service, WorkerWriter
from kustos.gateway.workers.store import WorkerStore

__all__ = [
    "Levels",
    "NodeFigures",
    "Reload",
    "Service",
    "WatchedWorkerPool",
    "Welcome",
    "WorkerGateway",
    "WorkerPhase",
    "WorkerPool",
    "WorkerPoolSettings",
    "WorkerPoolWriter",
    "WorkerStartError",
    "WorkerStore",
    "WorkerWriter",
    "hold_lock",
    "outlive_earlier",
]
