"""Reads a ZooKeeper and can do nothing else: no request that would change a node leaves the process.

The only trace on the server is a session. Reads are pipelined, since each takes a round trip.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.migrate.zookeeper_settings import ZookeeperSettings
from kustos.cli.migrate.zookeeper_tree import COUNTED, READ_ROOTS, Tree
from kustos.extras import needs_extra

with needs_extra("zookeeper", "reading a ZooKeeper"):
    from kazoo.client import KazooClient
    from kazoo.exceptions import (
        AuthFailedError,
        ConnectionClosedError,
        ConnectionLoss,
        KazooException,
        NoAuthError,
        NoNodeError,
        SessionExpiredError,
    )
    from kazoo.handlers.threading import KazooTimeoutError
    from kazoo.protocol.serialization import Close, Exists, GetChildren, GetChildren2, GetData, Sync
    from kazoo.protocol.states import KeeperState

NODES_MAX: Final = 1_000_000
"""Limit of nodes, more than any Kafka on ZooKeeper could ever have; bounds time and memory."""

TREE_BYTES_MAX: Final = 512 << 20
"""Limit of the data kept from all nodes; one node may hold 1 MiB."""

DEPTH_MAX: Final = 16
"""Path levels below a root; Kafka uses four."""

REQUESTS_AT_ONCE: Final = 256
"""Reads in flight: hides the round trip, and never fills the server's queue."""

_READS: Final = (Exists, GetData, GetChildren, GetChildren2, Sync, Close)
"""Sync makes a follower catch up with its leader before it answers; it changes nothing."""


class WriteRefusedError(RuntimeError):
    """A caller tried to send a request other than a read; nothing was sent."""


class ReadOnlyClient(KazooClient):  # type: ignore[misc]
    """A client that only sends reads, by a list of allowed requests rather than of forbidden ones."""

    login_refused = False
    """Whether the server rejected our credentials."""

    def _session_callback(self, state: Any) -> None:
        if state == KeeperState.AUTH_FAILED:
            self.login_refused = True
        super()._session_callback(state)

    def _call(self, request: Any, async_object: Any) -> Any:
        if type(request) not in _READS:
            raise WriteRefusedError(f"`{type(request).__name__}` is not a read, so it is not sent")
        return super()._call(request, async_object)


def read_zookeeper(settings: ZookeeperSettings, *, acls_only: bool = False) -> Tree:
    """Return Kafka's nodes for ACLs and users, in the state during the read.

    Raises `CommandError`: unreachable, not authorized to read a node, not used by a Kafka, or too large.
    """
    with _connected(settings) as client:
        client.sync("/")
        found = client.get_children("/") if client.exists("/") else []
        if not {"brokers", "config", "kafka-acl", "kafka-acls"} & set(found):
            raise CommandError(
                ExitCode.FAILED,
                "NO_KAFKA",
                f"there is no Kafka in {settings.name}, give the chroot of its `zookeeper.connect`",
            )
        roots = [root for root in READ_ROOTS if not (acls_only and root.startswith("/config"))]
        nodes = _Walk(client).nodes(roots)
        counts = {} if acls_only else {path: len(_children(client, path)) for path in COUNTED}
    return Tree(nodes, counts)


@contextmanager
def _connected(settings: ZookeeperSettings) -> Iterator[ReadOnlyClient]:
    """Yield a connected client; turn its errors into a `CommandError`."""
    client = client_of(settings)
    try:
        with warnings.catch_warnings():
            # about a missing chroot, which we report as an error
            warnings.simplefilter("ignore")
            client.start(timeout=settings.connection_timeout_ms / 1000)
        yield client
    except (KazooTimeoutError, KazooException) as error:
        raise _failure_of(error, client, settings) from error
    finally:
        client.stop()
        client.close()


def _failure_of(error: Exception, client: ReadOnlyClient, settings: ZookeeperSettings) -> CommandError:
    # a refused login also closes the connection, and either may be seen first
    if client.login_refused or isinstance(error, AuthFailedError):
        code, text = "AUTHENTICATION_FAILED", "refused the login of `--source-config`"
        return CommandError(ExitCode.UNREACHABLE, code, f"{settings.name} {text}")
    if isinstance(error, NoAuthError):
        return CommandError(
            ExitCode.NOT_AUTHORIZED,
            "NO_AUTH",
            f"{settings.name} does not let this client read all of ACLs and users; log in with "
            "`--source-config`, or leave users out with `--acls-only`",
        )
    if isinstance(error, KazooTimeoutError | ConnectionClosedError | ConnectionLoss | SessionExpiredError):
        text = f"{settings.name} does not answer, or no longer: {error}".rstrip(": ")
        return CommandError(ExitCode.UNREACHABLE, "CANNOT_CONNECT", text)
    return CommandError(ExitCode.FAILED, "ZOOKEEPER", f"{settings.name} answered `{type(error).__name__}`")


def client_of(settings: ZookeeperSettings) -> ReadOnlyClient:
    """Return an unconnected client."""
    sasl = None
    if settings.sasl_username is not None:
        sasl = {
            "mechanism": "DIGEST-MD5",
            "username": settings.sasl_username,
            "password": settings.sasl_password,
        }
    # the library logs each attempt; we report what matters once, as an error
    quiet = logging.Logger("kustos.zookeeper", logging.CRITICAL)
    return ReadOnlyClient(
        hosts=settings.hosts + settings.chroot,
        timeout=settings.session_timeout_ms / 1000,
        auth_data=[("digest", settings.digest)] if settings.digest else None,
        sasl_options=sasl,
        # a server that has lost its ensemble would return an old state, perhaps without a Deny
        read_only=False,
        logger=quiet,
        use_ssl=settings.is_tls,
        ca=str(settings.truststore) if settings.truststore else None,
        certfile=str(settings.keystore) if settings.keystore else None,
        keyfile=str(settings.keystore) if settings.keystore else None,
        keyfile_password=settings.keystore_password,
        check_hostname=settings.is_tls and settings.checks_host_name,
    )


class _Walk:
    """Reads whole subtrees, level by level, within the limits."""

    def __init__(self, client: ReadOnlyClient) -> None:
        self._client: Final = client
        self._nodes: Final[dict[str, bytes]] = {}
        self._size_bytes = 0

    def nodes(self, roots: Iterable[str]) -> dict[str, bytes]:
        """Return path -> data of the roots and all below; a node deleted during the read counts as absent."""
        level = list(roots)
        for _ in range(DEPTH_MAX + 1):
            level = [child for paths in _windows(level) for child in self._read(paths)]
            if not level:
                return self._nodes
        raise _too_large(f"it nests deeper than {DEPTH_MAX} names at `{level[0]}`")

    def _read(self, paths: list[str]) -> list[str]:
        answers = [
            (path, self._client.get_async(path), self._client.get_children_async(path)) for path in paths
        ]
        below: list[str] = []
        for path, data_answer, children_answer in answers:
            try:
                data, _ = data_answer.get()
                names = children_answer.get()
            except NoNodeError:
                continue
            self._nodes[path] = data or b""
            self._size_bytes += len(path) + len(data or b"")
            below += [f"{path}/{name}" for name in names]
        if len(self._nodes) + len(below) > NODES_MAX:
            raise _too_large(f"it has more than {NODES_MAX} nodes of ACLs and users")
        if self._size_bytes > TREE_BYTES_MAX:
            raise _too_large(f"its ACLs and users hold more than {TREE_BYTES_MAX} bytes")
        return below


def _windows(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), REQUESTS_AT_ONCE):
        yield paths[start : start + REQUESTS_AT_ONCE]


def _children(client: ReadOnlyClient, path: str) -> list[str]:
    try:
        return list(client.get_children(path))
    except (NoNodeError, NoAuthError):
        return []


def _too_large(what: str) -> CommandError:
    return CommandError(ExitCode.FAILED, "TOO_LARGE", f"the ZooKeeper is not read whole: {what}")
