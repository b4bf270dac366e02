"""The authorizer's texts: lines of the audit log, and errors that name the fault."""

import json
import uuid
from typing import Any

import pytest

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
    AuditLevel,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerNotReadyError,
    Decision,
    DuplicateAclError,
    DuplicateAclIdError,
    InvalidAclError,
    InvalidActionError,
    KafkaApiError,
    Rule,
    RuleKind,
    StandardAuthorizer,
    UnknownAclIdError,
    audit_level,
    audit_line,
)
from kustos.authorizer.audit import JsonLines
from kustos.protocol import Decided
from kustos.wire import ErrorCode
from testkit.audit_events import AuditEvent, AuditFormatError

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALICE = KafkaPrincipal("User", "alice")
CONTEXT = AuthorizableRequestContext(ALICE, "10.0.0.1", request_type=1)
ORDERS = AclBinding(
    ResourcePattern(TOPIC, "ord", PatternType.PREFIXED),
    AccessControlEntry("User:*", "10.0.0.0/8", AclOperation.ALL, AclPermissionType.ALLOW),
)
KEY = uuid.UUID(int=7)


def ready() -> StandardAuthorizer:
    authorizer = StandardAuthorizer(super_users=frozenset({"User:root"}))
    authorizer.add_acl(KEY, ORDERS)
    authorizer.complete_initial_load()
    return authorizer


@pytest.mark.parametrize(
    ("action", "line", "level"),
    [
        (
            Action(ResourceType.TRANSACTIONAL_ID, "tx", AclOperation.DESCRIBE, 2),
            "Principal = User:alice is Denied operation = DESCRIBE from host = 10.0.0.1 on resource = "
            "TransactionalId:LITERAL:tx for request = Fetch with resourceRefCount = 2 "
            "based on rule DefaultDeny",
            AuditLevel.INFO,
        ),
        (
            Action(TOPIC, "orders", READ),
            "Principal = User:alice is Allowed operation = READ from host = 10.0.0.1 on resource = "
            "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 "
            "based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=ord, "
            "patternType=PREFIXED, principal=User:*, "
            "host=10.0.0.0/8, operation=ALL, permissionType=ALLOW])",
            AuditLevel.DEBUG,
        ),
        (Action(TOPIC, "orders", READ, log_if_allowed=False), None, AuditLevel.TRACE),
        (Action(TOPIC, "other", READ, log_if_denied=False), None, AuditLevel.TRACE),
        (Action(TOPIC, "other", READ, log_if_allowed=False), None, AuditLevel.INFO),
        (Action(TOPIC, "orders", READ, log_if_denied=False), None, AuditLevel.DEBUG),
    ],
)
def test_lines_equal_kafkas_lines(action: Action, line: str | None, level: AuditLevel) -> None:
    [decision] = ready().authorize(CONTEXT, [action])
    assert audit_level(action, decision) is level
    if line is not None:
        assert audit_line(CONTEXT, action, decision, api_name="Fetch") == line


@pytest.mark.parametrize(
    ("field", "value", "fits"),
    [
        ("time_ms", 2**63 - 1, True),
        ("time_ms", 2**63, False),
        ("time_ms", -(2**63), True),
        ("time_ms", -(2**63) - 1, False),
        ("node_id", 2**31 - 1, True),
        ("node_id", 2**31, False),
        ("node_id", -(2**31), True),
        ("node_id", -(2**31) - 1, False),
        ("node_id", True, False),
        ("node_id", "1", False),
        ("node_id", None, False),
        ("client_id", None, True),
        ("client_id", 1, False),
        ("log_if_denied", 1, False),
        ("token_authenticated", False, True),
    ],
)
def test_a_line_is_read_only_if_every_field_fits(field: str, value: Any, fits: bool) -> None:
    decided = Decided(
        Action(TOPIC, "a", READ),
        Decision(AuthorizationResult.DENIED, Rule(RuleKind.DEFAULT_DENY)),
        False,
        "a",
    )
    (written,) = JsonLines(2).lines(CONTEXT, "Fetch", [decided], iter([str(KEY)]), 1, -1)
    line = json.dumps({**json.loads(written), field: value})
    if fits:
        assert getattr(AuditEvent.from_json(line), field) == value
    else:
        with pytest.raises(AuditFormatError, match=rf"^audit field `{field}` is not a "):
            AuditEvent.from_json(line)


def test_faults_name_the_acl_and_its_id() -> None:
    authorizer = ready()
    with pytest.raises(DuplicateAclIdError) as by_id:
        authorizer.add_acl(KEY, ORDERS)
    assert str(by_id.value) == f"an ACL with id `{KEY}` is there already"
    with pytest.raises(DuplicateAclIdError) as in_snapshot:
        authorizer.load_snapshot([(KEY, ORDERS), (KEY, ORDERS)])
    assert str(in_snapshot.value) == f"snapshot has two ACLs with id `{KEY}`"
    with pytest.raises(DuplicateAclError) as twice:
        authorizer.add_acl(uuid.UUID(int=8), ORDERS)
    assert f"`{ORDERS.audit_text()}`" in str(twice.value)
    with pytest.raises(UnknownAclIdError) as unknown:
        authorizer.remove_acl(uuid.UUID(int=8))
    assert str(unknown.value) == f"no ACL has the id `{uuid.UUID(int=8)}`"
    nobodys = AclBinding(ORDERS.pattern, AccessControlEntry("bob", "*", READ, AclPermissionType.ALLOW))
    with pytest.raises(InvalidAclError) as malformed:
        authorizer.add_acl(uuid.UUID(int=8), nobodys)
    assert str(malformed.value) == "principal `bob` of an ACL has no type, write it as `User:name`"


def test_questions_without_an_answer_get_a_reason() -> None:
    authorizer = ready()
    with pytest.raises(InvalidActionError) as wildcard:
        authorizer.session(KafkaPrincipal("User", "*"), "10.0.0.1")
    assert str(wildcard.value) == "principal `User:*` means everybody and is not a single client"
    session = authorizer.session(ALICE, "10.0.0.1")
    with pytest.raises(InvalidActionError) as no_type:
        session.decide(READ, ResourceType.ANY, "a")
    assert str(no_type.value) == "cannot decide on resource type `ANY`, name one"
    with pytest.raises(InvalidActionError) as no_operation:
        session.decide(AclOperation.UNKNOWN, TOPIC, "a")
    assert str(no_operation.value) == "cannot decide on operation `UNKNOWN`, name one"
    with pytest.raises(AuthorizerNotReadyError) as not_ready:
        StandardAuthorizer().session(ALICE, "10.0.0.1").decide(READ, TOPIC, "a")
    assert str(not_ready.value) == "the ACLs are not loaded yet, ask again when they are"


def test_an_error_for_clients_has_kafkas_code_and_only_public_text() -> None:
    refused = KafkaApiError(ErrorCode.policy_violation, "too many")
    assert (refused.code, refused.message, str(refused)) == (
        ErrorCode.policy_violation,
        "too many",
        "too many",
    )
    unknown = KafkaApiError(ErrorCode.unknown_server_error, "secret")
    assert (unknown.code, unknown.message) == (ErrorCode.unknown_server_error, None)
    assert str(KafkaApiError(ErrorCode.not_controller)) == "not_controller"
    assert KafkaApiError.of(refused) is refused
    assert KafkaApiError.of(RuntimeError("secret")).message is None
    with pytest.raises(ValueError, match=r"^`none` is not an error, name the code that clients shall see$"):
        KafkaApiError(ErrorCode.none)
