"""The worker pool: several processes serve one node's clients, and the writer process owns its metadata."""

from kustos.gateway.workers.errors import WorkerStartError
from kustos.gateway.workers.figures import NodeFigures, WatchedWorkerPool
from kustos.gateway.workers.followers import WorkerFollowers
from kustos.gateway.workers.gateway import WorkerGateway, WriterGateway
from kustos.gateway.workers.handle import WorkerHandle, WorkerPhase
from kustos.gateway.workers.link import WriterLink
from kustos.gateway.workers.listener import await_earlier_workers, hold_lock
from kustos.gateway.workers.messages import Levels, QuorumLost, Reload, Welcome
from kustos.gateway.workers.pool import WorkerPool, WorkerPoolSettings
from kustos.gateway.workers.store import WorkerStore

__all__ = [
    "Levels",
    "NodeFigures",
    "QuorumLost",
    "Reload",
    "WatchedWorkerPool",
    "Welcome",
    "WorkerFollowers",
    "WorkerGateway",
    "WorkerHandle",
    "WorkerPhase",
    "WorkerPool",
    "WorkerPoolSettings",
    "WorkerStartError",
    "WorkerStore",
    "WriterGateway",
    "WriterLink",
    "await_earlier_workers",
    "hold_lock",
]
