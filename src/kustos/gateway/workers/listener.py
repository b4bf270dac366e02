"""The worker listener: a Unix socket in a directory of this user, and a lock that reveals old workers.

Each worker holds the lock, shared, while it lives. If a writer cannot get the lock exclusively, a process of
an earlier run still lives, stopped or hanging, with client connections. The writer must not start then,
because that process would miss the changes that the writer acknowledges.
"""

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from kustos.gateway.workers.channel import SOCKET_NAME, Channel, peer_of, socket_path
from kustos.gateway.workers.errors import WorkerStartError
from kustos.gateway.workers.handle import WorkerHandle
from kustos.gateway.workers.messages import FROM_WORKER

LOG: Final = structlog.get_logger("kustos.gateway")

LOCK_NAME: Final = "lock"
DIRECTORY_MODE: Final = 0o700
BACKLOG: Final = 64
"""The backlog of the socket; there are fewer workers than this."""

EARLIER_WORKERS_S: Final = 10.0
"""How long the workers of an earlier run may take to end; they start ending when their writer is gone."""

LOOK_AGAIN_S: Final = 0.05

Welcome = Callable[[int, Channel], WorkerHandle | None]


def hold_lock(directory: Path) -> int:
    """Take the shared lock; it is released with the process, or with the returned descriptor."""
    descriptor = _open_lock(directory)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


async def await_earlier_workers(directory: Path) -> None:
    """Return when no worker of an earlier run lives; raise `WorkerStartError` if one remains."""
    try:
        descriptor = _open_lock(directory)
    except FileNotFoundError:
        return  # no workers existed
    deadline_s = asyncio.get_running_loop().time() + EARLIER_WORKERS_S
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if asyncio.get_running_loop().time() > deadline_s:
                raise WorkerStartError(
                    f"a worker process of an earlier run still holds `{directory / LOCK_NAME}`; end it "
                    "(`fuser -k -KILL` on that file), it may serve clients by old metadata"
                )
            await asyncio.sleep(LOOK_AGAIN_S)
    finally:
        os.close(descriptor)


def _open_lock(directory: Path) -> int:
    return os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class WorkerListener:
    """Listens between `open` and `close`; closes a channel at once if its peer is not a worker."""

    def __init__(
        self,
        directory: Path,
        welcome: Welcome,
        received: Callable[[WorkerHandle, object], None],
        lost: Callable[[WorkerHandle, str], object],
    ) -> None:
        self._directory: Final = directory
        self._welcome: Final = welcome
        self._received: Final = received
        self._lost: Final = lost
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; raise `WorkerStartError` or OSError."""
        self._directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        self._directory.chmod(DIRECTORY_MODE)
        await await_earlier_workers(self._directory)
        (self._directory / SOCKET_NAME).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            with socket_path(self._directory) as path:
                listening.bind(path)
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._incoming, sock=listening, backlog=BACKLOG)
        except BaseException:
            listening.close()
            raise

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            (self._directory / SOCKET_NAME).unlink(missing_ok=True)

    def _incoming(self) -> Channel:
        return _Incoming(self)

    def admit(self, channel: Channel, transport: asyncio.BaseTransport) -> WorkerHandle | None:
        """Return the worker that the kernel reports at the other end; None if the pool has no such worker."""
        process_id, user_id = peer_of(transport)
        if user_id == os.getuid():
            worker = self._welcome(process_id, channel)
            if worker is not None:
                return worker
        LOG.error("an unknown process connected to the workers' socket", pid=process_id, uid=user_id)
        return None

    def received(self, worker: WorkerHandle | None, message: object) -> None:
        """Pass on a worker's message."""
        if worker is not None:
            self._received(worker, message)

    def lost(self, worker: WorkerHandle | None, reason: str) -> None:
        """Report that a worker's channel is closed."""
        if worker is not None:
            self._lost(worker, reason)


class _Incoming(Channel):
    """A channel that gets its worker when the kernel has identified the peer."""

    def __init__(self, listener: WorkerListener) -> None:
        super().__init__(
            FROM_WORKER,
            lambda message: listener.received(self._worker, message),
            lambda reason: listener.lost(self._worker, reason),
        )
        self._listener: Final = listener
        self._worker: WorkerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Identify the worker, and reject any other process."""
        super().connection_made(transport)
        try:
            self._worker = self._listener.admit(self, transport)
        finally:
            # also after a bug in the gateway: a worker without a channel ends, and is restarted
            if self._worker is None:
                self.close("it is not a worker of this node")
