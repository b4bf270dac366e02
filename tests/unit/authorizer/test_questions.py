"""Questions as text: every text has an answer, and an invalid one is an ERROR with its reason."""

from uuid import UUID

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import Decision, StandardAuthorizer, questions
from kustos.authorizer.questions import Fault, Questioner

READ_ORDERS = AclBinding(
    ResourcePattern(ResourceType.TOPIC, "orders"),
    AccessControlEntry("User:alice", "10.0.0.1", AclOperation.READ, AclPermissionType.ALLOW),
)
ALICE = ("User:alice", "10.0.0.1")
Texts = tuple[str | None, str | None, str | None, str | None, str | None]


@pytest.fixture
def authorizer() -> StandardAuthorizer:
    made = StandardAuthorizer()
    made.load_snapshot([(UUID(int=1), READ_ORDERS)])
    made.complete_initial_load()
    return made


@pytest.fixture
def questioner(authorizer: StandardAuthorizer) -> Questioner:
    return Questioner(authorizer)


def answer(questioner: Questioner, *texts: str | None) -> tuple[str, str]:
    principal, host, operation, kind, name = texts
    return questioner.write(questioner.ask(principal, host, operation, kind, name))


def test_a_question_gets_the_decision_and_its_rule(questioner: Questioner) -> None:
    rule = f"MatchingAcl(acl={READ_ORDERS.audit_text()})"
    for _ in range(2):
        assert answer(questioner, *ALICE, "READ", "TOPIC", "orders") == ("ALLOWED", rule)
        assert answer(questioner, *ALICE, "READ", "TOPIC", None) == ("ALLOWED", rule)
        assert answer(questioner, *ALICE, "WRITE", "TOPIC", "orders") == ("DENIED", "DefaultDeny")
        assert answer(questioner, *ALICE, "WRITE", "TOPIC", None) == ("DENIED", "DefaultDeny")
        assert answer(questioner, *ALICE, "READ", "GROUP", "orders") == ("DENIED", "DefaultDeny")
        assert answer(questioner, "User:bob", "10.0.0.1", "READ", "TOPIC", "orders")[0] == "DENIED"
        assert answer(questioner, "User:alice", "10.0.0.2", "READ", "TOPIC", "orders")[0] == "DENIED"
        assert answer(questioner, *ALICE, "READ", "TOPIC", "")[0] == "DENIED"


@pytest.mark.parametrize(
    ("texts", "field"),
    [
        (("alice", "10.0.0.1", "READ", "TOPIC", "a"), "principal"),
        ((None, "10.0.0.1", "READ", "TOPIC", "a"), "principal"),
        (("User:*", "10.0.0.1", "READ", "TOPIC", "a"), "principal"),
        (("User:alice", None, "READ", "TOPIC", "a"), "host"),
        (("User:alice", "10.0.0.1", "ANY", "TOPIC", "a"), "operation"),
        (("User:alice", "10.0.0.1", "read", "TOPIC", "a"), "operation"),
        (("User:alice", "10.0.0.1", None, "TOPIC", "a"), "operation"),
        (("User:alice", "10.0.0.1", "READ", "UNKNOWN", "a"), "resource_type"),
        (("User:alice", "10.0.0.1", "READ", None, "a"), "resource_type"),
        (("User:alice", "10.0.0.1", None, None, "a"), "operation"),
        (("alice", "10.0.0.1", None, None, "a"), "principal"),
        (("alice", None, None, None, "a"), "host"),
    ],
)
def test_an_invalid_question_is_an_error_that_names_the_field(
    questioner: Questioner, texts: Texts, field: str
) -> None:
    fault = questioner.ask(*texts)
    assert isinstance(fault, Fault)
    assert fault.field == field
    assert questioner.write(fault) == ("ERROR", f"Error({field} {fault.rule})")


def test_only_super_users_have_an_answer_before_the_acls_are_loaded() -> None:
    questioner = Questioner(StandardAuthorizer(super_users=frozenset({"User:root"})))
    assert answer(questioner, *ALICE, "READ", "TOPIC", "a")[0] == "ERROR"
    assert answer(questioner, "User:root", "10.0.0.1", "READ", "TOPIC", "a") == ("ALLOWED", "SuperUser")


def test_answers_use_the_newest_acls(authorizer: StandardAuthorizer, questioner: Questioner) -> None:
    assert answer(questioner, *ALICE, "READ", "TOPIC", "orders")[0] == "ALLOWED"
    authorizer.remove_acl(UUID(int=1))
    assert answer(questioner, *ALICE, "READ", "TOPIC", "orders") == ("DENIED", "DefaultDeny")


def test_caches_keep_their_limits(questioner: Questioner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTIONER_SESSIONS_MAX", 3)
    monkeypatch.setattr(questions, "KEPT_TEXTS_MAX", 2)
    for number in range(6):
        assert answer(questioner, "User:alice", f"10.0.0.{number}", "READ", "TOPIC", "orders")[0] == (
            "ALLOWED" if number == 1 else "DENIED"
        )
        assert len(questioner._sessions) == min(number + 1, 3)
    assert len(questioner._texts) <= 2
    decision = questioner.ask(*ALICE, "READ", "TOPIC", "orders")
    assert isinstance(decision, Decision)
    assert questioner.write(decision) is questioner.write(decision)
