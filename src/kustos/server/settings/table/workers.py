"""The settings of worker processes, and of how long a change waits for requests in flight."""

from typing import Any, Final

from kustos.server.settings.kinds import Setting, whole_number

WORKERS_MAX: Final = 64
"""Each worker holds the whole metadata; more workers than processors gain nothing."""

WORKERS: Final = Setting(
    "kustos.workers",
    whole_number(1, WORKERS_MAX),
    1,
    "Workers",
    "The number of processes that serve clients. With 1 the node is one process. With more, one further "
    "process owns the metadata and serves the admin listeners, metrics and health; the workers share the "
    "other listeners, and a change is answered when it is in force in all of them. More than 1 needs Linux, "
    "StandardAuthorizer (or none), and a metadata log of the node's own.",
)
APPLY_TIMEOUT_MS: Final = Setting(
    "kustos.workers.apply.timeout.ms",
    whole_number(100, 60_000, "milliseconds"),
    3_000,
    "Workers",
    "How long a worker may apply changes without progress, or not answer the writer. After that kustos "
    "disconnects its clients and restarts it, if another worker serves; changes are answered afterwards.",
)
REVOCATION_GRACE_MS: Final = Setting(
    "kustos.revocation.grace.ms",
    whole_number(0, 60_000, "milliseconds"),
    1_000,
    "Authorization",
    "How long a change that revokes rights waits for answers to requests that were allowed before it and "
    "would be denied now. After that kustos disconnects their clients.",
)
REVOCATION_TIMEOUT_MS: Final = Setting(
    "kustos.revocation.timeout.ms",
    whole_number(100, 600_000, "milliseconds"),
    10_000,
    "Authorization",
    "How long such a change waits in all until no broker works on those requests. After that the answer is "
    "REQUEST_TIMED_OUT: the change is in force for new requests, but brokers may still work on earlier "
    "ones.",
)

WORKER_SETTINGS: Final[tuple[Setting[Any], ...]] = (
    WORKERS,
    APPLY_TIMEOUT_MS,
    REVOCATION_GRACE_MS,
    REVOCATION_TIMEOUT_MS,
)
