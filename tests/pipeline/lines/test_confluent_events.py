"""Confluent's audit events, in the shapes of its documentation; whatever is not a decision is told apart."""

import json
from typing import Any

import pytest

from kustos.pipeline.lines.confluent_events import read_event
from tests.pipeline.events import event
from tests.pipeline.lines.parsing import parsed


def cloud_event(**changes: Any) -> dict[str, Any]:
    """Return the event of a broker of Confluent Platform; a change `a__b` is of member `b` of `a`."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": "7a1bd9a9-7923-4550-8603-000000000001",
        "source": "crn:///kafka=qL97v6UYSyOOwnIPIHurGg",
        "type": "io.confluent.kafka.server/authorization",
        "datacontenttype": "application/json",
        "subject": "crn:///kafka=qL97v6UYSyOOwnIPIHurGg/topic=orders",
        "time": "2026-11-21T08:28:32.577593Z",
        "confluentRouting": {"route": "confluent-audit-log-events"},
        "data": {
            "serviceName": "crn:///kafka=qL97v6UYSyOOwnIPIHurGg",
            "methodName": "kafka.FetchConsumer",
            "resourceName": "crn:///kafka=qL97v6UYSyOOwnIPIHurGg/topic=orders",
            "authenticationInfo": {"principal": "User:CN=bob:x"},
            "authorizationInfo": {
                "granted": True,
                "operation": "DescribeConfigs",
                "resourceType": "Topic",
                "resourceName": "orders",
                "patternType": "LITERAL",
                "aclAuthorization": {
                    "permissionType": "ALLOW",
                    "host": "*",
                    "actingPrincipal": "User:*",
                    "patternType": "PREFIXED",
                    "resourceName": "ord",
                },
            },
            "request": {"client_id": "c-1", "correlation_id": "456"},
            "requestMetadata": {"client_address": "/192.168.176.4"},
        },
    }
    for name, value in changes.items():
        target = event
        *path, last = name.split("__")
        for part in path:
            target = target.setdefault(part, {})
        if value is None:
            target.pop(last, None)
        else:
            target[last] = value
    return event


@pytest.mark.parametrize(
    ("changes", "cluster"),
    [
        ({}, "qL97v6UYSyOOwnIPIHurGg"),
        ({"source": "crn://confluent.cloud/kafka=lkc-a1", "subject": None}, "lkc-a1"),
        (
            {"source": "crn://confluent.cloud/", "subject": "crn://x/environment=e/kafka=lkc-b2/topic=t"},
            "lkc-b2",
        ),
        ({"source": None, "subject": "crn:///kafka=lkc-b2/group=g/kafka=lkc-c3"}, "lkc-b2"),
        ({"source": "crn:///kafka=lkc-a1", "subject": "crn:///kafka=lkc-c3"}, "lkc-a1"),
        ({"source": None, "subject": "topic=kafka=lkc-c3"}, None),
        ({"source": None, "subject": None}, None),
    ],
)
def test_an_event_is_of_the_cluster_in_its_source_else_in_its_subject(
    changes: dict[str, Any], cluster: str | None
) -> None:
    event = read_event(cloud_event(**changes))
    assert isinstance(event, dict)
    assert event["cluster_id"] == cluster


def told(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return parsed([json.dumps(each) for each in events])


def test_a_decision_is_an_event_with_all_that_it_tells() -> None:
    found = told(cloud_event())[0]
    known = {name: value for name, value in found.items() if value is not None}
    moment = known.pop("time")
    assert moment.timestamp() * 1000 == pytest.approx(known["time_ms"])
    for name in ("line", "log", "source_file"):
        known.pop(name)
    assert known == {
        "event_id": "7a1bd9a9-7923-4550-8603-000000000001",
        "cluster_id": "qL97v6UYSyOOwnIPIHurGg",
        "cluster": "qL97v6UYSyOOwnIPIHurGg",
        "time_ms": 1_795_249_712_577,
        "principal_type": "User",
        "principal_name": "CN=bob:x",
        "host": "192.168.176.4",
        "api_name": "FetchConsumer",
        "client_id": "c-1",
        "correlation_id": 456,
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "operation": "DESCRIBE_CONFIGS",
        "decision": "ALLOWED",
        "rule": {
            "kind": "MatchingAcl",
            "resource_type": "TOPIC",
            "resource_name": "ord",
            "pattern_type": "PREFIXED",
            "principal": "User:*",
            "host": "*",
            "operation": None,
            "permission_type": "ALLOW",
        },
        "access": "ACCESS",
        "source_format": "confluent",
    }


def test_what_decided_is_named_where_the_event_says_it() -> None:
    info = "data__authorizationInfo"
    no_acl = {f"{info}__aclAuthorization": None}
    found = told(
        cloud_event(**no_acl, **{f"{info}__superUserAuthorization": True}),
        cloud_event(**no_acl, **{f"{info}__rbacAuthorization": {"role": "DeveloperRead", "scope": {}}}),
        cloud_event(**no_acl, **{f"{info}__granted": False}),
        cloud_event(**no_acl),
    )
    assert [row["rule"]["kind"] for row in found] == ["SuperUser", "CustomAuthorizer", "DefaultDeny", None]
    assert [row["decision"] for row in found] == ["ALLOWED", "ALLOWED", "DENIED", "ALLOWED"]


def test_the_clouds_own_principals_and_addresses_are_read() -> None:
    found = told(
        cloud_event(
            data__authenticationInfo__principal={"confluentServiceAccount": {"resourceId": "sa-1a2b3c"}},
            data__requestMetadata=None,
            data__clientAddress=[{"ip": "10.0.0.5", "port": 1}, {"ip": "10.0.0.6"}],
        ),
        cloud_event(time="2026-11-21T09:28:32+01:00", data__requestMetadata__client_address="host/10.0.0.9"),
    )
    assert (found[0]["principal_type"], found[0]["principal_name"]) == ("User", "sa-1a2b3c")
    assert found[0]["host"] == "10.0.0.5"
    assert (found[1]["host"], found[1]["time_ms"]) == ("10.0.0.9", 1_795_249_712_000)


def test_what_is_no_decision_is_quarantined_with_its_reason() -> None:
    login = "io.confluent.kafka.server/authentication"
    reasons = {
        f"no_authorization_event: {login}": cloud_event(type=login),
        "no_authorization_event: a type that is not a plain name": cloud_event(type="<script>"),
        "field_missing: type": cloud_event(type=None),
        "field_missing: data.authorizationInfo.granted": cloud_event(data__authorizationInfo__granted=None),
        "field_missing: id": cloud_event(id=None),
        "time_out_of_range": cloud_event(time="yesterday"),
        "principal_unknown": cloud_event(data__authenticationInfo__principal="nobody"),
        "json_malformed": cloud_event(data__authorizationInfo__granted="perhaps"),
    }
    found = told(*reasons.values())
    assert [row["reason"] for row in found] == list(reasons)
    assert all(row["principal_name"] is None and row["decision"] is None for row in found)


def test_a_client_cannot_make_an_event_of_kustos_look_like_another() -> None:
    written = event(client_id='","specversion":"1.0","type":"io.confluent.kafka.server/authorization')
    assert [row["source_format"] for row in told(written)] == ["json"]


def test_events_of_older_kustos_lack_who_forwarded_them() -> None:
    written = event()
    del written["forwarded_by"]
    found = told(written)[0]
    assert (found["reason"], found["forwarded_by"], found["principal_name"]) == (None, None, "bob")
