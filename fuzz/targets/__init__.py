"""What is searched: each target is a module with `check`, `seeds` and `INPUT_MAX_BYTES`.

`check` raises for a find; anything else that it raises is one too. A target may have a
`mutate(data, size_max, seed)` in the place of libFuzzer's own. It imports what it searches at its
top, so that the runner can instrument it; nothing else imports a target before.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

LOGINS: Final = ("frames", "scram", "jwt", "gssapi", "tls", "mapping", "hosts")
"""What a stranger can reach before he is logged in."""

SEARCHED: Final = (*LOGINS, "requests")
"""What anybody can send: every test run and every long run searches these."""

INCLUDED: Final[dict[str, tuple[str, ...]]] = {
    "authorizer": ("kustos.acl", "kustos.authorizer", "kustos.metadata.control"),
    **dict.fromkeys(
        LOGINS,
        (
            "kustos.auth",
            "kustos.wire",
            "kustos.tls",
            "kustos.gateway.listener.handshakes",
            "kustos.gateway.listener.server_names",
            "kustos.gateway.upstream.host_names",
            "kustos.server.tls",
        ),
    ),
    "requests": ("kustos.wire", "kustos.protocol"),
}
"""Target → the packages whose coverage guides it."""


class FoundError(Exception):
    """An input for which a property does not hold."""


class Target(Protocol):
    """A module of this folder."""

    INPUT_MAX_BYTES: int
    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def require(holds: bool, what: str) -> None:
    """Raise `FoundError` if a property does not hold."""
    if not holds:
        raise FoundError(what)
