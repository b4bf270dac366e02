"""Events in the Open Cybersecurity Schema Framework (OCSF) 1.8.0, which security tools collect.

Decisions and changes are API Activity (class 6003) with the profile Security Control, logins are
Authentication (class 3002). The rule of the decision is the policy of the actor's authorization. Fields
without an OCSF attribute are in `unmapped`, under their own names, so no field is lost.
"""

import ipaddress
from typing import Any, Final

OCSF_VERSION: Final = "1.8.0"
PROFILE: Final = "security_control"

API_ACTIVITY: Final = 6003
AUTHENTICATION: Final = 3002
CLASS_NAMES: Final = {API_ACTIVITY: "API Activity", AUTHENTICATION: "Authentication"}
CATEGORIES: Final = {
    API_ACTIVITY: (6, "Application Activity"),
    AUTHENTICATION: (3, "Identity & Access Management"),
}

CREATE, READ, UPDATE, DELETE, OTHER = 1, 2, 3, 4, 99
OPERATIONS: Final = {
    "READ": READ,
    "DESCRIBE": READ,
    "DESCRIBE_CONFIGS": READ,
    "DESCRIBE_TOKENS": READ,
    "CREATE": CREATE,
    "CREATE_TOKENS": CREATE,
    "WRITE": UPDATE,
    "IDEMPOTENT_WRITE": UPDATE,
    "ALTER": UPDATE,
    "ALTER_CONFIGS": UPDATE,
    "DELETE": DELETE,
}
CHANGES: Final = {"CREATE": CREATE, "DELETE": DELETE}
ACTIVITY_NAMES: Final = {CREATE: "Create", READ: "Read", UPDATE: "Update", DELETE: "Delete"}

LOGON, LOGOFF = 1, 2
LOGIN_TYPES: Final = {"LOGIN": LOGON, "REAUTHENTICATION": LOGON, "SESSION_EXPIRY": LOGOFF}
LOGIN_NAMES: Final = {LOGON: "Logon", LOGOFF: "Logoff"}

INFORMATIONAL, LOW = (1, "Informational"), (2, "Low")
STATUSES: Final = {"SUCCESS": (1, "Success"), "FAILURE": (2, "Failure"), "UNKNOWN": (0, "Unknown")}

ALLOWED, DENIED, OBSERVED, MODIFIED = (1, "Allowed"), (2, "Denied"), (3, "Observed"), (4, "Modified")
"""Actions of the control. Observed: a denial that refused nothing, because it is a probe or not enforced.
Modified: a name was omitted from a list."""

OTHER_PROTOCOL: Final = 99

MAPPED: Final = frozenset(
    {
        "event_id",
        "time_ms",
        "principal_type",
        "principal_name",
        "host",
        "api_name",
        "api_version",
        "client_id",
        "correlation_id",
        "resource_type",
        "resource_name",
        "decision",
        "decision_count",
        "mechanism",
        "failure",
        "attempt_count",
        "first_time_ms",
        "subject",
    }
)
"""The fields of events that have an OCSF attribute; all others are in `unmapped`."""


def ocsf_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the OCSF event of the object in an event's line."""
    if "event_type" not in event:
        return _decision(event)
    return _login(event) if event["event_type"] in LOGIN_TYPES else _change(event)


def _base(
    event: dict[str, Any], class_uid: int, activity: int, name: str, severity: tuple[int, str]
) -> dict[str, Any]:
    from kustos import __version__

    category_uid, category = CATEGORIES[class_uid]
    return {
        "class_uid": class_uid,
        "class_name": CLASS_NAMES[class_uid],
        "category_uid": category_uid,
        "category_name": category,
        "activity_id": activity,
        "activity_name": name,
        "type_uid": class_uid * 100 + activity,
        "time": event["time_ms"],
        "severity_id": severity[0],
        "severity": severity[1],
        "metadata": {
            "version": OCSF_VERSION,
            "uid": event["event_id"],
            "profiles": [PROFILE] if class_uid == API_ACTIVITY else [],
            "product": {"name": "kustos", "vendor_name": "kustos", "version": __version__},
            "log_name": event["listener_name"] or "kustos",
        },
        "unmapped": {key: value for key, value in event.items() if key not in MAPPED and value is not None},
    }


def _action(event: dict[str, Any]) -> tuple[int, str]:
    if event["decision"] == "ALLOWED":
        return OBSERVED if event.get("shadow_decision") else ALLOWED
    if event["access"] == "LISTING":
        return MODIFIED
    is_probe = not event["log_if_denied"] and event["resource_name"] is not None
    return OBSERVED if is_probe else DENIED


def _decision(event: dict[str, Any]) -> dict[str, Any]:
    action_id, action = _action(event)
    activity = OPERATIONS.get(event["operation"], OTHER)
    severity = LOW if (action_id, action) == DENIED or event.get("shadow_decision") else INFORMATIONAL
    status_id, status = STATUSES["FAILURE" if (action_id, action) == DENIED else "SUCCESS"]
    rule = event["rule"]
    policy = {"name": rule["kind"], "is_applied": True}
    if event["acl_offset"] >= 0:
        policy["version"] = str(event["acl_offset"])
    resource = {"type": event["resource_type"], "uid": event["resource_type"]}
    if event["resource_name"] is not None:
        resource["name"] = event["resource_name"]
        resource["uid"] = f"{event['resource_type']}:{event['resource_name']}"
    made = _base(event, API_ACTIVITY, activity, ACTIVITY_NAMES.get(activity, event["operation"]), severity)
    return made | {
        "status_id": status_id,
        "status": status,
        "action_id": action_id,
        "action": action,
        "actor": _actor(event) | {"authorizations": [{"decision": event["decision"], "policy": policy}]},
        "api": {
            "operation": event["api_name"],
            "version": str(event["api_version"]),
            "service": {"name": "kafka"},
            "request": {"uid": str(event["correlation_id"])},
        },
        "src_endpoint": _source(event),
        "dst_endpoint": {"name": event["listener_name"] or "kustos"},
        "resources": [resource],
        **({} if event.get("decision_count") is None else {"count": event["decision_count"]}),
    }


def _actor(event: dict[str, Any]) -> dict[str, Any]:
    actor: dict[str, Any] = {"user": _user(event["principal_type"], event["principal_name"])}
    if event.get("client_id"):
        actor["app_name"] = event["client_id"]
    return actor


def _user(principal_type: str | None, name: str | None) -> dict[str, Any]:
    if name is None:
        return {"name": "unknown", "uid": "unknown"}
    return {"name": name, "uid": f"{principal_type}:{name}", "type": principal_type}


def _source(event: dict[str, Any]) -> dict[str, Any]:
    host = event["host"]
    if host is None:
        return {"name": "unknown"}
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return {"name": host}
    return {"name": host, "ip": host}


def _login(event: dict[str, Any]) -> dict[str, Any]:
    activity = LOGIN_TYPES[event["event_type"]]
    status_id, status = STATUSES[event["result"]]
    severity = LOW if event["result"] == "FAILURE" else INFORMATIONAL
    principal = event["principal_name"]
    user = (
        {"name": event["claimed_name"], "uid": event["claimed_name"]}
        if principal is None and event["claimed_name"] is not None
        else _user(event["principal_type"], principal)
    )
    made = _base(event, AUTHENTICATION, activity, LOGIN_NAMES[activity], severity)
    made |= {
        "status_id": status_id,
        "status": status,
        "user": user,
        "src_endpoint": _source(event),
        "dst_endpoint": {"name": event["listener_name"] or "kustos"},
        "service": {"name": "kafka"},
        **_repeated(event),
    }
    if event["mechanism"] is not None:
        made |= {"auth_protocol": event["mechanism"], "auth_protocol_id": OTHER_PROTOCOL}
    return made | ({} if event["failure"] is None else {"status_detail": event["failure"]})


def _repeated(event: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an event that counts several attempts."""
    if event["attempt_count"] == 1:
        return {}
    return {
        "count": event["attempt_count"],
        "start_time": event["first_time_ms"],
        "end_time": event["time_ms"],
    }


def _change(event: dict[str, Any]) -> dict[str, Any]:
    activity = CHANGES.get(event["change"], UPDATE)
    status_id, status = STATUSES[event["result"]]
    made = _base(event, API_ACTIVITY, activity, ACTIVITY_NAMES[activity], INFORMATIONAL)
    made |= {
        "status_id": status_id,
        "status": status,
        "actor": {"user": _user(event["principal_type"], event["principal_name"])},
        "api": {"operation": event["event_type"], "service": {"name": "kustos"}},
        "src_endpoint": _source(event),
        "resources": [{"type": event["event_type"], "name": event["subject"] or "unknown"}],
    }
    return made | ({} if event["failure"] is None else {"status_detail": event["failure"]})
