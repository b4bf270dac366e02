"""A current context, and its replacement by a tested one when its stores change.

Connections keep the context that they started with. A replacement is read, compared and tested completely
before the next connection uses it; if it has any error, the current one stays in force (KIP-226).
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from kustos.tls.contexts import MadeContext, Side, make_context, prove
from kustos.tls.values import TlsError, TlsSettings

LOOKED_AT_EVERY_S: Final = 2.0
"""The interval of file checks, which take microseconds each: a certificate is renewed days before it
expires."""

Stamp = tuple[tuple[int, int, int, int] | None, ...]


class TlsContexts:
    """The context of one listener, or of the connections to one cluster.

    The constructor raises `TlsError` for stores that cannot be used.
    """

    def __init__(self, settings: TlsSettings, side: Side) -> None:
        self._side: Final = side
        self._settings = settings
        self._seen = stamp_of(settings.files)
        self._made = make_context(settings, side)

    def __repr__(self) -> str:
        return f"TlsContexts({self._side.name})"

    @property
    def settings(self) -> TlsSettings:
        """The current settings."""
        return self._settings

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._made.context

    @property
    def made(self) -> MadeContext:
        """The context with the key store that it presents."""
        return self._made

    def has_new_files(self) -> bool:
        """Return whether a file has changed since it was last read, even if its content was refused."""
        return stamp_of(self._settings.files) != self._seen

    def replace(self, settings: TlsSettings | None = None) -> None:
        """Read the stores again, with other settings if given, and put them in force.

        Raise `TlsError` if they cannot be used or the change is not allowed; then the current ones stay in
        force.
        """
        wanted = self._settings if settings is None else settings
        # before reading: a change during the read causes another read
        seen = stamp_of(wanted.files)
        if settings is None:
            self._seen = seen
        self.put_in_force(wanted, self.checked(wanted), seen)

    def renew(self, log: FilteringBoundLogger) -> None:
        """Put changed files in force if they can be used, else keep the current ones; log the result."""
        files = list(map(str, self._settings.files))
        try:
            self.replace()
        except TlsError as error:
            log.error("changed key and trust stores are not in force, the old ones stay", reason=str(error))
        else:
            log.info("changed key and trust stores are in force", files=files)
            self._made.report_expired_trust(log)

    def checked(self, settings: TlsSettings) -> MadeContext:
        """Return the tested context of these settings; raise `TlsError` if it may not replace the current
        one."""
        for name, old, new in (
            ("keystore", self._settings.keystore, settings.keystore),
            ("truststore", self._settings.truststore, settings.truststore),
        ):
            if (old is None) != (new is None):
                verb = "added" if old is None else "removed"
                raise TlsError(f"`ssl.{name}.*` cannot be {verb} while the node runs, restart it for that")
        made = make_context(settings, self._side)
        self._check_names(settings, made)
        prove(made, self._side)
        return made

    def put_in_force(self, settings: TlsSettings, made: MadeContext, seen: Stamp | None = None) -> None:
        """Use a context that `checked` returned for these settings."""
        self._settings, self._made = settings, made
        self._seen = stamp_of(settings.files) if seen is None else seen

    def _check_names(self, settings: TlsSettings, made: MadeContext) -> None:
        old, new = self._made.certificate, made.certificate
        if old is None or new is None:
            return
        if old.subject != new.subject and not settings.allow_dn_changes:
            raise TlsError(
                "the key store's certificate has another subject than the former; use one with the same "
                "distinguished name, or set `ssl.allow.dn.changes=true`"
            )
        if old.alternative_names != new.alternative_names and not settings.allow_san_changes:
            raise TlsError(
                "the key store's certificate has other subject alternative names than the former; use one "
                "with the same names, or set `ssl.allow.san.changes=true`"
            )


async def follow_files(
    contexts: Mapping[str, TlsContexts], log: FilteringBoundLogger, every_s: float = LOOKED_AT_EVERY_S
) -> None:
    """Watch the files of all listeners' contexts, by name, without end.

    The task compares files periodically, because a change may be a write, a rename, or a link as in
    Kubernetes volumes. It tries each change once.
    """
    while contexts:
        await asyncio.sleep(every_s)
        for name, each in contexts.items():
            if each.has_new_files():
                # reading and testing takes milliseconds, too long for the event loop
                await asyncio.to_thread(each.renew, log.bind(listener=name))


def stamp_of(files: tuple[Path, ...]) -> Stamp:
    """Return the values that change when a file is written or replaced; None if it does not exist."""
    return tuple(_stamp(path) for path in files)


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - follows links, as those of Kubernetes' secrets
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
