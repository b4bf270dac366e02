"""Audit events of Confluent Platform and Confluent Cloud: CloudEvents, one JSON object a line.

Of their types only `io.confluent.kafka.server/authorization` is a decision; the others (logins, requests to
the cloud's own services) are quarantined as `no_authorization_event` with their type. Decisions on resources
that are not Kafka's, such as `mds.Authorize` on an `Environment`, are quarantined as `value_invalid`.

| here | there |
|---|---|
| event_id, time | `id`, `time` (RFC 3339) |
| cluster_id | `kafka=…` in the resource name (CRN) of `source`, else of `subject` |
| principal | `data.authenticationInfo.principal`; in Cloud also an object, whose id is taken |
| api_name | `data.methodName` without `kafka.` |
| resource, operation | `data.authorizationInfo` |
| decision | `granted` |
| rule | `superUserAuthorization`, `aclAuthorization`, or `rbacAuthorization` (as CustomAuthorizer) |
| host | `data.requestMetadata.client_address`, or the first of `data.clientAddress` |

Source: "Audit Log Event Schema" and the event pages of Confluent's documentation, CloudEvents 1.0.
"""

import re
from datetime import UTC, datetime
from typing import Any, Final

from kustos.pipeline.lines.json_values import (
    INT_RANGE,
    JsonObject,
    MalformedError,
    boolean,
    struct,
    text,
    written,
)
from kustos.pipeline.lines.kafka_grammar import OPERATION_NAMES, RESOURCE_TYPE_NAMES
from kustos.pipeline.lines.known_values import invalid_decision

AUTHORIZATION: Final = "io.confluent.kafka.server/authorization"

_PLAIN_TYPE: Final = re.compile(r"[A-Za-z0-9./_\-]{1,100}")
"""A type with other characters is not quoted in a reason: it is untrusted text."""

_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?", re.ASCII | re.IGNORECASE
)
"""RFC 3339; a time without a zone is taken as UTC."""

_RESOURCE_ID: Final = re.compile(r'"resourceId"\s*:\s*"([A-Za-z0-9_\-]+)"')
_CLUSTER: Final = re.compile(r"/kafka=([^/]*)")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


def read_event(cloud_event: JsonObject) -> dict[str, Any] | str:
    """Return the fields of a CloudEvent, or the reason why it is not a decision of an authorizer.

    Raises `MalformedError` for a value of a wrong type.
    """
    kind = text(cloud_event.get("type"))
    data = struct(cloud_event.get("data")) or {}
    info = struct(data.get("authorizationInfo")) or {}
    login = struct(data.get("authenticationInfo")) or {}
    fields = {
        "event_id": text(cloud_event.get("id")),
        "time": text(cloud_event.get("time")),
        "principal": written(login.get("principal")),
        "granted": boolean(info.get("granted")),
        "operation": text(info.get("operation")),
        "resourceType": text(info.get("resourceType")),
    }
    event = {**_request(data), **_resource(info), "cluster_id": _cluster_id(cloud_event)}
    if kind is None:
        return "field_missing: type"
    if kind != AUTHORIZATION:
        type_name = kind if _PLAIN_TYPE.fullmatch(kind) else "a type that is not a plain name"
        return f"no_authorization_event: {type_name}"
    missing = [name for name, value in zip(_REQUIRED, fields.values(), strict=True) if value is None]
    if missing:
        return f"field_missing: {', '.join(missing)}"
    time_ms, principal = _time_ms(str(fields["time"])), _principal(str(fields["principal"]))
    if time_ms is None:
        return "time_out_of_range"
    if principal is None:
        return "principal_unknown"
    principal_type, _, principal_name = principal.partition(":")
    event |= {
        "event_id": fields["event_id"],
        "time_ms": time_ms,
        "principal_type": principal_type,
        "principal_name": principal_name,
        "decision": "ALLOWED" if fields["granted"] else "DENIED",
        "access": "ACCESS",
    }
    return invalid_decision(event) or event


def _cluster_id(cloud_event: JsonObject) -> str | None:
    """Return the cluster that the event is of.

    `source` first: no client chooses any of it, while `subject` ends in the name of the resource.
    """
    names = (text(cloud_event.get(name)) for name in ("source", "subject"))
    found = (_CLUSTER.search(name) for name in names if name is not None)
    return next((each[1] for each in found if each is not None), None)


_REQUIRED: Final = (
    "id",
    "time",
    "data.authenticationInfo.principal",
    "data.authorizationInfo.granted",
    "data.authorizationInfo.operation",
    "data.authorizationInfo.resourceType",
)


def _request(data: JsonObject) -> dict[str, Any]:
    """Return client and request."""
    request, metadata = (struct(data.get(name)) or {} for name in ("request", "requestMetadata"))
    addresses = [_first_address(each.get("clientAddress")) for each in (data, metadata)]
    client_ids = [text(request.get(name)) for name in ("client_id", "clientId")]
    correlations = [written(request.get(name)) for name in ("correlation_id", "correlationId")]
    host = _first([text(metadata.get("client_address")), *addresses])
    api_name, correlation = text(data.get("methodName")), _first(correlations)
    return {
        # Java writes `/10.0.0.1` for an address without a name
        "host": None if host is None else re.sub(r"\A[^/]*/", "", host),
        "api_name": None if api_name is None else api_name.removeprefix("kafka."),
        "client_id": _first(client_ids),
        "correlation_id": None if correlation is None else _correlation_id(correlation),
    }


def _resource(info: JsonObject) -> dict[str, Any]:
    """Return resource and operation, and the deciding rule if the event has it."""
    acl = struct(info.get("aclAuthorization"))
    by_role = info.get("rbacAuthorization")
    operation, resource_type = text(info.get("operation")) or "", text(info.get("resourceType")) or ""
    resource_type = RESOURCE_TYPE_NAMES.get(resource_type, resource_type)
    kind = None
    if boolean(info.get("superUserAuthorization")):
        kind = "SuperUser"
    elif acl is not None:
        kind = "MatchingAcl"
    elif by_role is not None:
        kind = "CustomAuthorizer"
    elif boolean(info.get("granted")) is False:
        kind = "DefaultDeny"
    return {
        "resource_type": resource_type,
        "resource_name": text(info.get("resourceName")),
        "operation": OPERATION_NAMES.get(operation, operation),
        "rule": {
            "kind": kind,
            "resource_type": None if acl is None else resource_type,
            **{name: text((acl or {}).get(there)) for name, there in _RULE.items()},
        },
    }


_RULE: Final = {
    "resource_name": "resourceName",
    "pattern_type": "patternType",
    "principal": "actingPrincipal",
    "host": "host",
    "permission_type": "permissionType",
}


def _time_ms(written_time: str) -> int | None:
    """Return milliseconds since the epoch, finer fractions cut off; None for an invalid time."""
    found = _TIME.fullmatch(written_time)
    if found is None:
        return None
    second, fraction, zone = found.groups(default="")
    try:
        moment = datetime.fromisoformat(second + zone.upper())
    except ValueError:
        return None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000 + int(fraction[:3].ljust(3, "0"))


def _principal(written_principal: str) -> str | None:
    """`Type:name`; an object like `{"confluentServiceAccount": {"resourceId": "sa-1"}}` gives `User:sa-1`."""
    if written_principal.startswith("{"):
        found = _RESOURCE_ID.search(written_principal)
        return None if found is None else f"User:{found[1]}"
    return written_principal if ":" in written_principal else None


def _correlation_id(written_id: str) -> int | None:
    number = int(written_id) if _INTEGER.fullmatch(written_id) else None
    return number if number in INT_RANGE else None


def _first_address(addresses: Any) -> str | None:
    if addresses is None:
        return None
    if not isinstance(addresses, list):
        raise MalformedError
    found = [text((struct(address) or {}).get("ip")) for address in addresses]
    return found[0] if found else None


def _first(values: list[str | None]) -> str | None:
    return next((value for value in values if value is not None), None)
