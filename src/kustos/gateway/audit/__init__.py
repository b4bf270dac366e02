"""The audit log: events kept in memory that outlives the process, and the sinks that write them."""

from kustos.gateway.audit.entries import AuditEvents
from kustos.gateway.audit.journal import AuditKeeper
from kustos.gateway.audit.lanes import AuditError, OnFull
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.sinks import AuditSettings, open_audit_sinks
from kustos.gateway.audit.syslog import FACILITIES, SyslogReceiver, SyslogTransport, parse_receiver

__all__ = [
    "FACILITIES",
    "AuditError",
    "AuditEvents",
    "AuditKeeper",
    "AuditLog",
    "AuditSettings",
    "OnFull",
    "SyslogReceiver",
    "SyslogTransport",
    "open_audit_sinks",
    "parse_receiver",
]
