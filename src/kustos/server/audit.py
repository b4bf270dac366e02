"""Opens the audit log of a process: its journal, its sinks, and the events that an earlier process left."""

from typing import Final

from kustos.gateway.audit import AuditEvents, AuditKeeper, AuditLog, open_audit_sinks
from kustos.runtime import SystemEntropy
from kustos.server.settings.node_settings import KustosSettings
from kustos.server.settings.workers import worker_name

JOURNALS: Final = "audit-journals"
"""The folder of decisions that are not written yet, beside the metadata log."""

NODE: Final = "node"
"""The name of the journal of a node in one process, or of the process that starts the workers."""


async def open_audit_log(settings: KustosSettings, name: str, cluster_id: str) -> AuditLog:
    """Return the audit log of the process of this name, its sinks opened; raise `AuditError`.

    `cluster_id` is that of the metadata, and of every event.
    """
    events = AuditEvents.of_node(settings.node_id, SystemEntropy(), cluster_id)
    keeper = _keeper(settings, name, events)
    try:
        sinks = await open_audit_sinks(settings.audit, settings.upstream, events)
    except BaseException:
        if keeper is not None:
            keeper.close()
        raise
    return AuditLog(
        sinks,
        queue_max_events=settings.audit.queue_max_events,
        on_full=settings.audit.on_full,
        allowed_one_in=settings.audit.allowed_one_in,
        denied_bytes_per_hour=settings.audit.denied_bytes_per_hour,
        keeper=keeper,
    )


def _keeper(settings: KustosSettings, name: str, events: AuditEvents) -> AuditKeeper | None:
    """Return the keeper of events that no sink has written yet, None if there are no sinks.

    A worker leaves the journals of others alone. The process that starts the workers takes over those of
    workers that no longer exist.
    """
    if not settings.audit.sinks:
        return None
    count = settings.workers.count
    living = {NODE, *(worker_name(index) for index in range(1, count + 1))} if count > 1 else set()
    return AuditKeeper.open(settings.metadata_directory / JOURNALS, name, living, events)
