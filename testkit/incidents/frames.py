"""The ledger as rows of `audit_rollup` and of `security_events`."""

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA, SECURITY_EVENTS_SCHEMA
from testkit.incidents.ledger import Ledger


def rollup_of(ledger: Ledger, start: date) -> Iterator[dict[str, Any]]:
    """Yield the rows of `audit_rollup`."""
    midnight = datetime.combine(start, datetime.min.time(), UTC)
    for key, times in ledger.decisions.items():
        day = midnight + timedelta(days=key.day)
        row: dict[str, Any] = dict.fromkeys(AUDIT_ROLLUP_SCHEMA.fieldNames())
        kind = "SuperUser" if key.is_super else "MatchingAcl" if key.is_allowed else "DefaultDeny"
        row |= {
            "day": day.date(),
            "principal": key.who,
            "host": key.host,
            "operation": key.operation,
            "resource_type": key.resource[0],
            "resource_name": key.resource[1],
            "decision": "ALLOWED" if key.is_allowed else "DENIED",
            "access": "LISTING" if key.is_listing else "ACCESS",
            "rule": {"kind": kind},
            "event_count": times.count,
            "reference_count": times.count,
            "first_time": day + timedelta(minutes=times.first),
            "last_time": day + timedelta(minutes=times.last),
            "hours": times.hours,
            "sample_event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, repr(key))),
        }
        yield row


def security_of(ledger: Ledger, start: date) -> Iterator[dict[str, Any]]:
    """Yield the rows of `security_events`, with their day."""
    midnight = datetime.combine(start, datetime.min.time(), UTC)
    for login in ledger.logins:
        time = midnight + timedelta(minutes=login.minute)
        time_ms = int(time.timestamp() * 1000)
        yield dict.fromkeys(SECURITY_EVENTS_SCHEMA.fieldNames()) | {
            "event_type": "LOGIN",
            "result": "SUCCESS" if login.succeeded else "FAILURE",
            "claimed_name": login.name,
            "host": login.host,
            "attempt_count": login.attempts,
            "first_time_ms": time_ms,
            "time_ms": time_ms,
            "time": time,
            "day": time.date(),
        }
