"""The number of worker processes, and the settings that exclude more than one."""

import sys
from dataclasses import dataclass
from typing import Final

from kustos.client import SettingsError
from kustos.server.settings.properties import GivenSettings
from kustos.settings import Setting, whole_number

WORKERS_MAX: Final = 64
"""The maximum number of workers: each holds the whole metadata, and more workers than processors have no
benefit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """`count` 1: the node is one process."""

    count: int = Setting(
        "kustos.workers",
        whole_number(1, WORKERS_MAX),
        1,
        "Workers",
        "The number of processes that serve clients. With 1 the node is one process. With more, one further "
        "process writes the metadata log, or follows the quorum, and serves the admin listeners, metrics and "
        "health; the workers share the other listeners, and a change is answered when it is in force in all "
        "of them. More than 1 needs Linux, and StandardAuthorizer or none.",
    ).field()
    apply_timeout_ms: int = Setting(
        "kustos.workers.apply.timeout.ms",
        whole_number(100, 60_000, "milliseconds"),
        3_000,
        "Workers",
        "How long a worker may apply changes without progress, or not answer the writer. After that kustos "
        "disconnects its clients and restarts it, if another worker serves; changes are answered afterwards.",
    ).field()


def worker_name(index: int) -> str:
    """Return the name of the worker's folder of audit files and of its journal."""
    return f"worker-{index}"


def worker_settings(given: GivenSettings, *, is_foreign: bool) -> WorkerSettings:
    """Return the settings; raise `SettingsError` if the other settings exclude several processes.

    `is_foreign`: a custom authorizer decides.
    """
    settings = WorkerSettings(**given.fields(WorkerSettings))
    if settings.count > 1:
        name = f"`kustos.workers` is `{settings.count}`"
        if is_foreign:
            raise SettingsError(
                f"{name}, but the processes would not share the state of an authorizer of your own; "
                "leave it out, or use StandardAuthorizer"
            )
        if sys.platform != "linux":
            raise SettingsError(f"{name}, which needs Linux; leave it out")
    return settings


def share_of(limit: int, processes: int) -> int:
    """Return the part of a limit for one of several processes; the kernel spreads connections evenly."""
    return -(-limit // processes)
