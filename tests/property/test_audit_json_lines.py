"""The fast JSON lines are to the letter those that the audit table makes."""

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
)
from kustos.gateway.audit_entries import AuditEntry, AuditEvents
from kustos.gateway.audit_json_lines import JsonLines
from kustos.protocol import Decided

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
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
    TEXTS,
    st.sampled_from(AclOperation),
    INTS,
    st.booleans(),
    st.booleans(),
)
DECIDED = st.builds(Decided, ACTIONS, DECISIONS, st.booleans(), st.none() | TEXTS)
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
    AuditEntry,
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    CONTEXTS,
    st.lists(DECIDED, max_size=4).map(tuple),
    st.integers(-1, 2**62),
    st.none() | st.integers(0, 2**62),
)


@given(st.lists(ENTRIES, max_size=4), st.integers(0, 2**31 - 1), st.integers(0, 2**64 - 1))
def test_fast_lines_are_those_of_the_audit_table(
    entries: list[AuditEntry], node_id: int, random_half: int
) -> None:
    events = AuditEvents(node_id, random_half)
    writer = JsonLines(node_id)
    for entry in entries + entries:  # the second time from what the writer remembers
        assert list(events.json_lines(entry, writer)) == [each.to_json() for each in events.events(entry)]
