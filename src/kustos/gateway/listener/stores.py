"""Watches the stores of listeners: changed files are put in force without a restart, if they can be used.

Files are looked at, since a change may come in any way: written, renamed, or by a link as in the volumes of
Kubernetes. Each change is tried once: a bad one is reported, and the former stores stay in force.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from kustos.tls import TlsContexts, TlsError

LOG: Final = structlog.get_logger("kustos.gateway")

LOOKED_AT_EVERY_S: Final = 2.0
"""How often files are looked at, in microseconds each: a certificate is renewed days before it ends."""


async def follow_files(contexts: Mapping[str, TlsContexts], every_s: float = LOOKED_AT_EVERY_S) -> None:
    """Keep the contexts of listeners, by name, in step with their files, for ever."""
    while contexts:
        await asyncio.sleep(every_s)
        for name, each in contexts.items():
            if each.has_new_files():
                await _replace(name, each)


async def _replace(name: str, contexts: TlsContexts) -> None:
    files = list(map(str, contexts.settings.files))
    try:
        # reading and proving takes milliseconds, too long for the event loop
        await asyncio.to_thread(contexts.replace)
    except TlsError as error:
        LOG.error(
            "changed key and trust stores are not in force, the old ones stay",
            listener=name,
            reason=str(error),
        )
    else:
        LOG.info("changed key and trust stores are in force", listener=name, files=files)
