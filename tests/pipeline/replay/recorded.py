"""Recorded events for replays, as tuples and as frames, and the roll-up of them in plain Python."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kustos.acl import AclBinding
from kustos.authorizer import StandardAuthorizer
from kustos.authorizer.questions import Questioner
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA, RULE_SCHEMA
from tests.pipeline.deciding.worlds import Question

START = datetime(2026, 11, 21, tzinfo=UTC)
DAY_S = 86_400

RULE_FIELDS = [field["name"] for field in json.loads(RULE_SCHEMA.json())["fields"]]

Event = tuple[Question, str, str, dict[str, Any], int, int]
"""question, access as in the roll-up, decision, rule, seconds after START, reference count"""


def rule_fields(binding: AclBinding | None, kind: str) -> dict[str, Any]:
    """Return a rule as the audit event holds it."""
    fields: dict[str, Any] = dict.fromkeys(RULE_FIELDS)
    if binding is not None:
        pattern, entry = binding.pattern, binding.entry
        fields |= {"resource_type": pattern.resource_type.name, "resource_name": pattern.name}
        fields |= {"pattern_type": pattern.pattern_type.name, "principal": entry.principal}
        fields |= {"host": entry.host, "operation": entry.operation.name}
        fields |= {"permission_type": entry.permission_type.name}
    return fields | {"kind": kind}


def recorded(acl_set: AclsInForce, questions: Sequence[Question], count: int, seed: int) -> list[Event]:
    """Return events in which these ACLs decided such questions, over three days."""
    rng, questioner = Random(seed), Questioner(acl_set.authorizer())
    events: list[Event] = []
    for question in rng.choices(questions, k=count):
        asked = questioner.ask(*question)
        decision, _ = questioner.write(asked)
        rule = getattr(asked, "rule", None)
        fields = rule_fields(None, "Error")
        if decision != "ERROR" and rule is not None and not isinstance(rule, str):
            fields = rule_fields(rule.binding, rule.kind.value)
        access = "LISTING" if rng.random() < 0.2 else "ACCESS"
        if access == "ACCESS" and decision == "DENIED" and question[4] is not None and rng.random() < 0.3:
            access = "PROBE"
        events.append((question, access, decision, fields, rng.randrange(3 * DAY_S), rng.randint(1, 5)))
    return events


def event_frame(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    rows = []
    for number, (question, access, decision, rule, seconds, references) in enumerate(events):
        principal, host, operation, resource_type, name = question
        kind, _, user = str(principal).partition(":")
        row: dict[str, Any] = dict.fromkeys(AUDIT_EVENTS_SCHEMA.fieldNames())
        row |= {"principal_type": kind, "principal_name": user, "host": host, "operation": operation}
        row |= {"resource_type": resource_type, "resource_name": name, "access": access}
        if access == "PROBE":
            row |= {"access": "ACCESS", "log_if_denied": False}
        row |= {"decision": decision, "rule": rule, "time": START + timedelta(seconds=seconds)}
        row |= {"reference_count": references, "event_id": event_id(number)}
        rows.append(row)
    return spark.createDataFrame(rows, AUDIT_EVENTS_SCHEMA)


def event_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def rollup_frame(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    """Return the table `audit_rollup` of events, counted here."""
    groups: dict[Any, list[tuple[int, Event]]] = defaultdict(list)
    for number, event in enumerate(events):
        question, access, decision, rule, seconds, _ = event
        groups[seconds // DAY_S, question, decision, access, tuple(rule.values())].append((number, event))
    rows = []
    for (day, question, decision, access, rule), members in groups.items():
        seconds_of = [event[4] for _, event in members]
        hours = 0
        for second in seconds_of:
            hours |= 1 << (second % DAY_S // 3600)
        row: dict[str, Any] = {"day": (START + timedelta(days=day)).date()}
        row |= dict(
            zip(("principal", "host", "operation", "resource_type", "resource_name"), question, strict=True)
        )
        row |= {"decision": decision, "access": access}
        row |= {"rule": dict(zip(rule_fields(None, ""), rule, strict=True))}
        row |= {"event_count": len(members), "reference_count": sum(event[5] for _, event in members)}
        row |= {"first_time": START + timedelta(seconds=min(seconds_of))}
        row |= {"last_time": START + timedelta(seconds=max(seconds_of)), "hours": hours}
        row |= {"sample_event_id": event_id(min(number for number, _ in members))}
        rows.append(row)
    return spark.createDataFrame(rows, AUDIT_ROLLUP_SCHEMA)


def changed(acl_set: AclsInForce, seed: int) -> AclsInForce:
    """Return a candidate: a third of the ACLs gone, some turned from allowing to denying or back."""
    rng = Random(seed)
    kept = [binding for binding in acl_set.bindings if rng.random() > 0.3]
    entries = [rng.choice(acl_set.bindings).entry for _ in range(3)] if acl_set.bindings else []
    added = [AclBinding(rng.choice(acl_set.bindings).pattern, entry) for entry in entries]
    return acl_set.with_bindings("candidate", [*kept, *added])


def answered(
    authorizer: StandardAuthorizer, questions: Iterable[Question]
) -> dict[Question, tuple[str, str]]:
    """Return the decision and the rule of each question, asked singly."""
    questioner = Questioner(authorizer)
    return {question: questioner.write(questioner.ask(*question)) for question in questions}
