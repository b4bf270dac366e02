"""The errors of the audit log."""


class AuditError(Exception):
    """The base class of the audit log's errors."""


class AuditSinkError(AuditError):
    """A sink failed to write; it may have written some of the events, all or none."""


class AuditLogClosedError(AuditError):
    """A decision came after the log was closed, and must not take effect."""


class EventsLostError(AuditError):
    """The log ended before its sinks took every event."""
