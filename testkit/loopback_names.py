"""Host names that lead to this machine, for clients under test only: nothing outside of them changes.

Java reads a file of its own, aiokafka asks its event loop, and what asks the C library gets a mount namespace
whose `/etc/hosts` is another file (util-linux's `unshare`, as a user without rights in a user namespace).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from testkit.ports import LOOPBACK
from testkit.processes import unshared


class LoopbackNames:
    """Some names of loopback, in a file of the directory."""

    def __init__(self, directory: Path, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        self.file = directory / "hosts"
        self.file.write_text("".join(f"{LOOPBACK} {name}\n" for name in sorted(self.names)))

    @property
    def java(self) -> dict[str, str]:
        """The environment of a JVM that knows these names, and no others."""
        return {"JAVA_TOOL_OPTIONS": f"-Djdk.net.hosts.file={self.file}"}

    def before(self, *command: str) -> list[str]:
        """Return the command line that runs a command which knows these names."""
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        return [*unshared("mount"), "sh", "-c", script, str(self.file), *command]

    @asynccontextmanager
    async def known(self) -> AsyncIterator[None]:
        """Let this event loop know these names."""
        loop: Any = asyncio.get_running_loop()
        former = loop.getaddrinfo

        async def getaddrinfo(host: Any, *arguments: Any, **more: Any) -> Any:
            return await former(LOOPBACK if host in self.names else host, *arguments, **more)

        loop.getaddrinfo = getaddrinfo
        try:
            yield
        finally:
            loop.getaddrinfo = former
