"""The settings of worker processes."""

from typing import Any, Final

from kustos.server.setting_kinds import Setting, whole_number

WORKERS_MAX: Final = 64
"""Each worker holds the whole metadata; more than a machine has processors help nobody."""

WORKERS: Final = Setting(
    "kustos.workers",
    whole_number(1, WORKERS_MAX),
    1,
    "Workers",
    "How many processes serve clients. With 1 the node is one process. With more, one process besides owns "
    "the metadata and serves the admin listeners, metrics and health, and the workers share the other "
    "listeners; a change is answered when it is in force in all of them. Only with StandardAuthorizer (or "
    "none) and a metadata log of the node's own, and on Linux.",
)
APPLY_TIMEOUT_MS: Final = Setting(
    "kustos.workers.apply.timeout.ms",
    whole_number(100, 60_000, "milliseconds"),
    3_000,
    "Workers",
    "How long a worker may take to put a change in force, or to say that it lives. One that is later is cut "
    "off its clients and started anew; changes are answered after that.",
)

WORKER_SETTINGS: Final[tuple[Setting[Any], ...]] = (WORKERS, APPLY_TIMEOUT_MS)
