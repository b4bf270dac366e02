"""Audit events of Confluent Platform and Confluent Cloud: CloudEvents, one JSON object a line.

Of their types only `io.confluent.kafka.server/authorization` is a decision; the others (logins, requests to
the cloud's own services) are quarantined as `no_authorization_event` with their type, and so counted.

| here | there |
|---|---|
| event_id, time | `id`, `time` (RFC 3339) |
| principal | `data.authenticationInfo.principal`; in Cloud also an object, whose id is taken |
| api_name | `data.methodName` without `kafka.` |
| resource, operation | `data.authorizationInfo` |
| decision | `granted` |
| rule | `superUserAuthorization`, `aclAuthorization`, or `rbacAuthorization` (as CustomAuthorizer) |
| host | `data.requestMetadata.client_address`, or the first of `data.clientAddress` |

Source: "Audit Log Event Schema" and the event pages of Confluent's documentation, CloudEvents 1.0.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BooleanType, DataType, StringType, StructField, StructType

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.stages import kafka_lines

AUTHORIZATION: Final = "io.confluent.kafka.server/authorization"

_TYPE_SHOWN: Final = r"^[A-Za-z0-9./_\-]{1,100}$"
"""A type that has other characters is not repeated in a reason: it is somebody's text."""


def _strings(*names: str) -> list[StructField]:
    return [StructField(name, StringType()) for name in names]


def _struct(*fields: StructField, **structs: DataType) -> StructType:
    return StructType([*fields, *(StructField(name, type_) for name, type_ in structs.items())])


_ADDRESSES: Final = ArrayType(_struct(*_strings("ip")))
_REQUEST: Final = _struct(*_strings("client_id", "clientId", "correlation_id", "correlationId"))
_METADATA: Final = _struct(*_strings("client_address"), clientAddress=_ADDRESSES)
_ACL: Final = _struct(*_strings("permissionType", "host", "actingPrincipal", "patternType", "resourceName"))
_AUTHORIZATION: Final = _struct(
    *_strings("operation", "resourceType", "resourceName"),
    StructField("granted", BooleanType()),
    StructField("superUserAuthorization", BooleanType()),
    aclAuthorization=_ACL,
    rbacAuthorization=StringType(),
)
CLOUD_EVENT_FIELDS: Final = [
    *_strings("specversion", "id", "type", "time"),
    StructField(
        "data",
        _struct(
            *_strings("methodName"),
            authenticationInfo=_struct(*_strings("principal")),
            authorizationInfo=_AUTHORIZATION,
            request=_REQUEST,
            requestMetadata=_METADATA,
            clientAddress=_ADDRESSES,
        ),
    ),
]
"""Read beside the fields of kustos' own events: no name is in both."""

_REQUIRED: Final = (
    "id",
    "time",
    "data.authenticationInfo.principal",
    "data.authorizationInfo.granted",
    "data.authorizationInfo.operation",
    "data.authorizationInfo.resourceType",
)


def _of(envelope: Column, dotted_name: str) -> Column:
    column = envelope.getField("event")
    for name in dotted_name.split("."):
        column = column.getField(name)
    return column


def is_cloud_event(envelope: Column) -> Column:
    """Return whether a parsed line calls itself a CloudEvent."""
    return _of(envelope, "specversion").isNotNull()


def time_ms(envelope: Column) -> Column:
    """Return when the event happened, null if its time is none."""
    return sql.unix_millis(_of(envelope, "time").try_cast("timestamp"))


def fault(envelope: Column) -> Column:
    """Return why a CloudEvent is no decision of an authorizer, null if it is one."""
    kind = _of(envelope, "type")
    shown = sql.when(kind.rlike(_TYPE_SHOWN), kind).otherwise(sql.lit("a type that is no plain name"))
    missing = sql.concat_ws(", ", *(sql.when(_of(envelope, n).isNull(), sql.lit(n)) for n in _REQUIRED))
    whole = sql.coalesce(envelope.getField("end"), sql.lit(False))
    return (
        sql.when(envelope.getField("corrupt").isNotNull() | ~whole, sql.lit("json_malformed"))
        .when(kind.isNull(), sql.lit("field_missing: type"))
        .when(kind != AUTHORIZATION, sql.concat(sql.lit("no_authorization_event: "), shown))
        .when(missing != "", sql.concat(sql.lit("field_missing: "), missing))
        .when(time_ms(envelope).isNull(), sql.lit("time_out_of_range"))
        .when(_principal(envelope).isNull(), sql.lit("principal_unknown"))
    )


def _principal(envelope: Column) -> Column:
    """`Type:name`; an object like `{"confluentServiceAccount": {"resourceId": "sa-1"}}` gives `User:sa-1`."""
    text = _of(envelope, "data.authenticationInfo.principal")
    identifier = sql.regexp_extract(text, r'"resourceId"\s*:\s*"([A-Za-z0-9_\-]+)"', 1)
    told = sql.when(identifier != "", sql.concat(sql.lit("User:"), identifier))
    return sql.when(text.startswith("{"), told).when(sql.contains(text, sql.lit(":")), text)


def _host(envelope: Column) -> Column:
    """Java writes `/10.0.0.1` for an address without a name."""
    told = sql.coalesce(
        _of(envelope, "data.requestMetadata.client_address"),
        sql.try_element_at(_of(envelope, "data.clientAddress"), sql.lit(1)).getField("ip"),
        sql.try_element_at(_of(envelope, "data.requestMetadata.clientAddress"), sql.lit(1)).getField("ip"),
    )
    return sql.regexp_replace(told, "^[^/]*/", "")


def _rule_kind(envelope: Column) -> Column:
    """Null where the event grants and does not say why."""
    info = "data.authorizationInfo"
    return (
        sql.when(_of(envelope, f"{info}.superUserAuthorization"), sql.lit("SuperUser"))
        .when(_of(envelope, f"{info}.aclAuthorization").isNotNull(), sql.lit("MatchingAcl"))
        .when(_of(envelope, f"{info}.rbacAuthorization").isNotNull(), sql.lit("CustomAuthorizer"))
        .when(~_of(envelope, f"{info}.granted"), sql.lit("DefaultDeny"))
    )


def event_columns(envelope: Column) -> dict[str, Column]:
    """Return the audit fields that the event tells, by dotted name; what it does not tell is missing."""
    principal = _principal(envelope)
    info, request = "data.authorizationInfo", "data.request"
    acl = f"{info}.aclAuthorization"
    correlation = sql.coalesce(
        _of(envelope, f"{request}.correlation_id"), _of(envelope, f"{request}.correlationId")
    )
    resource_type = kafka_lines.enum_name(_of(envelope, f"{info}.resourceType"), ResourceType)
    return {
        "event_id": _of(envelope, "id"),
        "time_ms": time_ms(envelope),
        "principal_type": sql.substring_index(principal, ":", 1),
        "principal_name": sql.substring(principal, sql.instr(principal, ":") + 1, sql.length(principal)),
        "host": _host(envelope),
        "api_name": sql.regexp_replace(_of(envelope, "data.methodName"), r"^kafka\.", ""),
        "client_id": sql.coalesce(
            _of(envelope, f"{request}.client_id"), _of(envelope, f"{request}.clientId")
        ),
        "correlation_id": correlation.try_cast("int"),
        "resource_type": resource_type,
        "resource_name": _of(envelope, f"{info}.resourceName"),
        "operation": kafka_lines.enum_name(_of(envelope, f"{info}.operation"), AclOperation),
        "decision": sql.when(_of(envelope, f"{info}.granted"), sql.lit("ALLOWED")).otherwise(
            sql.lit("DENIED")
        ),
        "rule.kind": _rule_kind(envelope),
        "rule.resource_type": sql.when(_of(envelope, acl).isNotNull(), resource_type),
        "rule.resource_name": _of(envelope, f"{acl}.resourceName"),
        "rule.pattern_type": _of(envelope, f"{acl}.patternType"),
        "rule.principal": _of(envelope, f"{acl}.actingPrincipal"),
        "rule.host": _of(envelope, f"{acl}.host"),
        "rule.permission_type": _of(envelope, f"{acl}.permissionType"),
        "access": sql.lit("ACCESS"),
    }
