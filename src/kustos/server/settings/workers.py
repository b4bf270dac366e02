"""How many processes serve, and what rules out more than one."""

import sys
from dataclasses import dataclass

from kustos.client import SettingsError
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table import workers as table
from kustos.server.settings.table.quorum import METADATA_STORE


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """`count` 1: the node is one process."""

    count: int = 1
    apply_timeout_ms: int = 3_000


def worker_name(index: int) -> str:
    """Return the name of the worker's folder of audit files and of its journal."""
    return f"worker-{index}"


def worker_settings(given: GivenSettings, *, is_quorum: bool, is_foreign: bool) -> WorkerSettings:
    """Return the settings; raise `SettingsError` if the other settings exclude several processes.

    `is_quorum`: the node is in cluster mode; `is_foreign`: a custom authorizer decides.
    """
    count = given.require(table.WORKERS)
    if count > 1:
        name = f"`{table.WORKERS.name}` is `{count}`"
        if is_quorum:
            raise SettingsError(
                f"{name}, but with `{METADATA_STORE.name}=kraft` a node is one process; leave it out, and "
                "run several nodes instead"
            )
        if is_foreign:
            raise SettingsError(
                f"{name}, but the processes would not share the state of an authorizer of your own; "
                "leave it out, or use StandardAuthorizer"
            )
        if sys.platform != "linux":
            raise SettingsError(f"{name}, which needs Linux; leave it out")
    return WorkerSettings(count=count, apply_timeout_ms=given.require(table.APPLY_TIMEOUT_MS))
