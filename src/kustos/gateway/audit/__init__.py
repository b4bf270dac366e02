"""The audit log: a ring of events that outlives the process, and the sinks that write the events."""

from kustos.gateway.audit.errors import AuditError
from kustos.gateway.audit.events import AuditEvents
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.sink_writer import OnFull
from kustos.gateway.audit.sinks import AuditSettings, open_audit_sinks
from kustos.gateway.audit.syslog import FACILITIES, SyslogReceiver, SyslogTransport, parse_receiver

__all__ = [
    "FACILITIES",
    "AuditError",
    "AuditEvents",
    "AuditLog",
    "AuditRings",
    "AuditSettings",
    "OnFull",
    "SyslogReceiver",
    "SyslogTransport",
    "open_audit_sinks",
    "parse_receiver",
]
