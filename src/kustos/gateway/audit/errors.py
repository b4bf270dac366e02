"""The errors of the audit log."""


class AuditError(Exception):
    """The base class of the audit log's errors."""


class AuditSinkError(AuditError):
    """A sink failed to write; it may have written all, some or none of the events."""


class AuditLogClosedError(AuditError):
    """A decision arrived after the log was closed; it must not take effect."""


class EventsLostError(AuditError):
    """The log ended before its sinks took every event."""
