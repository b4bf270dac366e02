"""The errors of the audit log."""


class AuditError(Exception):
    """The base class of the audit log's errors."""


class AuditSinkError(AuditError):
    """A sink could not write; none, some or all of the events may be there."""


class AuditLogClosedError(AuditError):
    """A decision came after the log was closed; it must not take effect."""


class EventsLostError(AuditError):
    """The log had to end before its sinks took everything."""
