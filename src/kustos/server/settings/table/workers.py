"""The settings of worker processes, and of how long a change waits for requests under way."""

from typing import Any, Final

from kustos.server.settings.kinds import Setting, whole_number

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
    "How long a worker may make no progress with changes that it has to put in force, or not say that it "
    "lives. One that is later is cut off its clients and started anew if another one serves; changes "
    "are answered after that.",
)
REVOCATION_GRACE_MS: Final = Setting(
    "kustos.revocation.grace.ms",
    whole_number(0, 60_000, "milliseconds"),
    1_000,
    "Authorization",
    "How long a change that takes rights away waits for the answers to requests that were allowed before it "
    "and would be denied now. Then their clients are disconnected.",
)
REVOCATION_TIMEOUT_MS: Final = Setting(
    "kustos.revocation.timeout.ms",
    whole_number(100, 600_000, "milliseconds"),
    10_000,
    "Authorization",
    "How long such a change waits in all, until no broker can work on those requests any more. Then it is "
    "answered REQUEST_TIMED_OUT: it is in force for what comes, but may be outlived by what came before.",
)

WORKER_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    WORKERS,
    APPLY_TIMEOUT_MS,
    REVOCATION_GRACE_MS,
    REVOCATION_TIMEOUT_MS,
)
