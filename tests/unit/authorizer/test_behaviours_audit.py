"""The level of a decision in Kafka's own log."""

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import Action, AuditLevel, audit_level
from testkit.acls.one_line import authorizer_of, decision


def level(text: str, *, log_if_allowed: bool, log_if_denied: bool) -> AuditLevel:
    decided = decision(authorizer_of("ALLOW READ User:alice TOPIC t"), text)
    action = Action(ResourceType.TOPIC, "t", AclOperation.READ, 1, log_if_allowed, log_if_denied)
    return audit_level(action, decided)


@pytest.mark.behaviour("B020")
@pytest.mark.parametrize("log_if_allowed", [True, False])
def test_a_logged_denial_has_level_info_and_others_trace(log_if_allowed: bool) -> None:
    denied = "User:bob READ TOPIC t"
    assert level(denied, log_if_allowed=log_if_allowed, log_if_denied=True) is AuditLevel.INFO
    assert level(denied, log_if_allowed=log_if_allowed, log_if_denied=False) is AuditLevel.TRACE


@pytest.mark.behaviour("B021")
@pytest.mark.parametrize("log_if_denied", [True, False])
def test_a_logged_approval_has_level_debug_and_others_trace(log_if_denied: bool) -> None:
    allowed = "User:alice READ TOPIC t"
    assert level(allowed, log_if_allowed=True, log_if_denied=log_if_denied) is AuditLevel.DEBUG
    assert level(allowed, log_if_allowed=False, log_if_denied=log_if_denied) is AuditLevel.TRACE
