"""Where workers come in: a Unix socket in a directory of this user's, and a lock that tells of old ones.

Each worker holds the lock, shared, for as long as it lives. A writer that cannot have it for itself knows
that a process of an earlier run lives on, stopped or hanging, with connections of clients: it must not
begin, or changes that it acknowledges would be missed there.
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
from kustos.gateway.workers.member import Member
from kustos.gateway.workers.messages import OF_A_WORKER, OF_THE_WRITER

LOG: Final = structlog.get_logger("kustos.gateway")

LOCK_NAME: Final = "lock"
DIRECTORY_MODE: Final = 0o700
BACKLOG: Final = 64
"""Workers that connect at once; there are fewer."""

EARLIER_WORKERS_S: Final = 10.0
"""How long the workers of an earlier run may take to end; they begin to when their writer is gone."""

LOOK_AGAIN_S: Final = 0.05

Welcome = Callable[[int, Channel], Member | None]


def hold_lock(directory: Path) -> int:
    """Hold the lock as one of the living; it is let go with the process, or with this descriptor."""
    descriptor = _open_lock(directory)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


async def outlive_earlier(directory: Path) -> None:
    """Return when no worker of an earlier run lives any more; raise `WorkerStartError` if one stays."""
    try:
        descriptor = _open_lock(directory)
    except FileNotFoundError:
        return  # there never were workers
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


class Doorstep:
    """Listens between `open` and `close`; each channel is a member's, or is closed at once."""

    def __init__(
        self,
        directory: Path,
        welcome: Welcome,
        received: Callable[[Member, object], object],
        lost: Callable[[Member, str], object],
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
        await outlive_earlier(self._directory)
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
        """Let nobody in any more."""
        if self._server is not None:
            self._server.close()
            (self._directory / SOCKET_NAME).unlink(missing_ok=True)

    def _incoming(self) -> Channel:
        return _Incoming(self)

    def admit(self, channel: Channel, transport: asyncio.BaseTransport) -> Member | None:
        """Return the member that the kernel says is at the other end; None: nobody that was hired."""
        process_id, user_id = peer_of(transport)
        if user_id == os.getuid():
            member = self._welcome(process_id, channel)
            if member is not None:
                return member
        LOG.error("a stranger came to the workers' socket", pid=process_id, uid=user_id)
        return None

    def received(self, member: Member | None, message: object) -> None:
        """Hand on what a member says."""
        if member is not None:
            self._received(member, message)

    def lost(self, member: Member | None, reason: str) -> None:
        """Hand on that a member's channel is gone."""
        if member is not None:
            self._lost(member, reason)


class _Incoming(Channel):
    """A channel that is somebody's once the kernel has said whose."""

    def __init__(self, doorstep: Doorstep) -> None:
        super().__init__(
            OF_THE_WRITER,
            OF_A_WORKER,
            lambda message: doorstep.received(self._member, message),
            lambda reason: doorstep.lost(self._member, reason),
        )
        self._doorstep: Final = doorstep
        self._member: Member | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask who it is, and turn strangers away."""
        super().connection_made(transport)
        self._member = self._doorstep.admit(self, transport)
        if self._member is None:
            self.close("a stranger")
