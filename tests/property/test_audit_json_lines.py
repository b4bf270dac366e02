"""The compiled JSON lines equal the specification byte for byte."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Decision,
    Rule,
    RuleKind,
    ShadowDecision,
)
from kustos.authorizer.audit import AUDIT_FIELDS, audit_level, audit_line, visible
from kustos.authorizer.audit.events import AUDITED_NAME_CHARACTERS_MAX
from kustos.authorizer.index import PROBED_NAME
from kustos.gateway.audit.events import AuditEvents, RequestEvents, text_lines
from kustos.gateway.audit.log4j import LOGGER, KafkaLinesSink, log4j_time
from kustos.protocol import Decided
from kustos.wire import api_name
from testkit.audit_events import AuditEvent
from tests.property.audit_spec import event_of, line_of

UNSEEN = "\n\x1b\x7f\x85\u061c\u200b\u200e\u2028\u2029\u202e\u2066\ufeff"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(UNSEEN), max_size=12)
INTS = st.integers(-(2**31), 2**31 - 1)
BINDINGS = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.sampled_from([ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID]),
        TEXTS,
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        AccessControlEntry,
        TEXTS,
        TEXTS,
        st.sampled_from([AclOperation.READ, AclOperation.ALL]),
        st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    ),
)
RULES = st.builds(Rule, st.just(RuleKind.MATCHING_ACL), BINDINGS) | st.sampled_from(
    [Rule(RuleKind.SUPER_USER), Rule(RuleKind.DEFAULT_ALLOW), Rule(RuleKind.DEFAULT_DENY)]
)
DECISIONS = st.builds(Decision, st.sampled_from(AuthorizationResult), RULES)
ACTIONS = st.builds(
    Action,
    st.sampled_from(ResourceType),
    TEXTS | TEXTS.map(lambda text: text * AUDITED_NAME_CHARACTERS_MAX),
    st.sampled_from(AclOperation),
    INTS,
    st.booleans(),
    st.booleans(),
)
COUNTS = st.none() | st.integers(1, 2**31 - 1)
SHADOWS = st.none() | st.builds(ShadowDecision, st.none() | DECISIONS, TEXTS, st.none() | TEXTS)
NAMES = st.none() | TEXTS
DECIDED = st.builds(Decided, ACTIONS, DECISIONS, st.booleans(), NAMES, COUNTS, COUNTS, SHADOWS, SHADOWS)
CONTEXTS = st.builds(
    AuthorizableRequestContext,
    st.builds(KafkaPrincipal, TEXTS, TEXTS, st.booleans()),
    TEXTS,
    TEXTS,
    TEXTS,
    st.none() | TEXTS,
    st.integers(-1, 100),
    INTS,
    INTS,
)
ENTRIES = st.builds(
    RequestEvents,
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    CONTEXTS,
    st.lists(DECIDED, max_size=4).map(tuple),
    st.integers(-1, 2**62),
    st.none() | st.integers(0, 2**62),
    st.none() | st.integers(0, 2**62),
)


ABSENT = {field.name: None for field in AUDIT_FIELDS if field.scope == "shadow"}
"""Fields that most lines lack."""


def spec(events: AuditEvents, entry: RequestEvents) -> list[dict[str, Any]]:
    return [
        event_of(
            entry.context,
            decided,
            event_id=events.event_id(number),
            time_ms=entry.time_ms,
            node_id=events.node_id,
            cluster_id=events.cluster_id,
            acl_offset=entry.acl_offset,
            change_offset=entry.change_offset,
            latency_us=entry.latency_us,
        )
        for number, decided in enumerate(entry.decided, start=entry.number)
    ]


@given(st.lists(ENTRIES, max_size=4), st.integers(0, 2**31 - 1), st.integers(0, 2**64 - 1), NAMES)
def test_compiled_lines_equal_the_specification(
    entries: list[RequestEvents], node_id: int, random_half: int, cluster_id: str | None
) -> None:
    events = AuditEvents(node_id, random_half, cluster_id)
    for entry in entries + entries:  # the second time from what the writer remembers
        assert list(events.json_lines(entry)) == list(map(line_of, spec(events, entry)))


@given(ENTRIES, ENTRIES, st.integers(0, 2**40), st.integers(0, 2**31 - 1), st.integers(0, 2**64 - 1))
def test_lines_of_repetitions_equal_the_specification(
    first: RequestEvents, later: RequestEvents, latency_us: int, node_id: int, random_half: int
) -> None:
    events = AuditEvents(node_id, random_half, "5L6g3nShT-eMCtK--X86sw")
    repeated = events.repeated(first.context, first.decided)
    numbers = later.number, later.time_ms, later.context.correlation_id, later.acl_offset
    lines = repeated.lines(*numbers, latency_us)
    context = replace(first.context, correlation_id=later.context.correlation_id)
    expected = later._replace(
        context=context, decided=first.decided, change_offset=None, latency_us=latency_us
    )
    assert text_lines(lines) == list(map(line_of, spec(events, expected)))


@given(st.lists(ENTRIES, min_size=1, max_size=4))
def test_a_line_is_one_line_in_every_reader_and_parses_as_the_event(entries: list[RequestEvents]) -> None:
    events = AuditEvents(1, 2)
    for entry in entries:
        for line, event in zip(events.json_lines(entry), spec(events, entry), strict=True):
            assert len(line.splitlines()) == 1
            assert not set(line) & set(UNSEEN)
            assert asdict(AuditEvent.from_json(line)) == ABSENT | event


@given(ENTRIES)
def test_a_log4j_line_is_one_line_in_kafkas_format(entry: RequestEvents) -> None:
    """This holds for any names: the sink builds its lines from the JSON lines."""
    sink = KafkaLinesSink(Path("nowhere"), "TRACE")
    name = api_name(entry.context.request_type)
    for item, own in zip(entry.decided, AuditEvents(1, 2).json_lines(entry), strict=True):
        line = sink._line_of(own)
        assert len(line.splitlines()) == 1
        assert not set(line[:-1]) & set(UNSEEN)
        action = item.action if item.name is not None else replace(item.action, resource_name=PROBED_NAME)
        text = visible(audit_line(entry.context, action, item.decision, api_name=name))
        level = audit_level(item.action, item.decision).value
        assert line == f"[{log4j_time(entry.time_ms)}] {level} {text} ({LOGGER})\n"
        later = own.removesuffix("}") + ',"added_later":1}'
        assert sink._line_of(later) == line, "events of a later version's ring are written"
