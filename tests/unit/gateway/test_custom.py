"""A custom authorizer decides only with valid results; everything else denies."""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerError,
    KafkaApiError,
    RuleKind,
)
from kustos.authorizer.audit.events import UNSEEN
from kustos.authorizer.audit.security import SECURITY_TEXT_MAX_CHARACTERS
from kustos.gateway.apis.custom_authorizer import (
    KINDS_MAX,
    LOGGED_EVERY_S,
    AuthorizerFailedError,
    CustomContextAuthorizer,
    UnusedDecider,
)
from kustos.wire import ErrorCode
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.protocol.random_requests import allow
from testkit.waiting import NEVER_AWAITED

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALLOWED, DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED
ALICE = AuthorizableRequestContext(KafkaPrincipal("User", "alice"), "10.0.0.1", client_id="c", request_type=1)
ACTIONS = [Action(TOPIC, name, READ) for name in ("orders", "pay", "orders")]


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


class Lookalike(Enum):
    ALLOWED = "ALLOWED"


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(ALLOWED)


async def coroutine(*_: Any) -> list[AuthorizationResult]:
    return [ALLOWED] * 3


def raises(*_: Any) -> list[AuthorizationResult]:
    raise RuntimeError("a bug")


def refuses(*_: Any) -> list[AuthorizationResult]:
    raise KafkaApiError(ErrorCode.coordinator_not_available, "later")


BROKEN: dict[str, Callable[..., Any]] = {
    "an exception": raises,
    "too few": lambda *_: [ALLOWED, ALLOWED],
    "too many": lambda *_: [ALLOWED] * 4,
    "none at all": lambda *_: [],
    "nothing": lambda *_: None,
    "one result": lambda *_: ALLOWED,
    "booleans": lambda *_: [True, True, True],
    "texts": lambda *_: ["ALLOWED"] * 3,
    "a text of the right length": lambda *_: "yes",
    "another enum": lambda *_: [Lookalike.ALLOWED] * 3,
    "something that equals everything": lambda *_: [AlwaysEqual()] * 3,
    "one wrong among right ones": lambda *_: [ALLOWED, ALLOWED, None],
    "a coroutine": coroutine,
    "coroutines": lambda *_: [coroutine(), coroutine(), coroutine()],
    "an iterator": lambda *_: iter([ALLOWED] * 3),
    "a set": lambda *_: {ALLOWED},
    "a dictionary": lambda *_: dict.fromkeys(range(3), ALLOWED),
}


def test_results_are_decisions_in_the_order_of_the_actions() -> None:
    authorizer = SpecAuthorizer([allow(TOPIC, "orders", READ)])
    decisions = CustomContextAuthorizer(authorizer).decide(ALICE, ACTIONS)
    assert [each.result for each in decisions] == [ALLOWED, DENIED, ALLOWED]
    assert {each.rule.kind for each in decisions} == {RuleKind.CUSTOM}
    assert authorizer.asked == [ACTIONS]
    assert authorizer.contexts == [ALICE]


@pytest.mark.filterwarnings(*NEVER_AWAITED)
@pytest.mark.parametrize("kind", BROKEN)
def test_a_return_value_that_is_not_a_list_is_a_failure(kind: str) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.authorize = BROKEN[kind]
    with (
        capture_logs() as logs,
        pytest.raises(AuthorizerFailedError, match="authorize` failed"),
    ):
        CustomContextAuthorizer(authorizer).decide(ALICE, ACTIONS)
    assert [log["log_level"] for log in logs] == ["error"]


@pytest.mark.parametrize("results", [{ALLOWED}, {ALLOWED: 1}, dict.fromkeys([ALLOWED]).keys()])
def test_an_unordered_collection_is_not_a_list_even_with_one_element(results: Any) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.authorize = lambda *_: results
    with pytest.raises(AuthorizerFailedError):
        CustomContextAuthorizer(authorizer).decide(ALICE, ACTIONS[:1])


@pytest.mark.filterwarnings(*NEVER_AWAITED)
@pytest.mark.parametrize("result", [None, True, "ALLOWED", Lookalike.ALLOWED, [ALLOWED]])
def test_an_invalid_result_by_type_is_a_failure(result: Any) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.authorize_by_resource_type = lambda *_: result
    with pytest.raises(AuthorizerFailedError):
        CustomContextAuthorizer(authorizer).decide_by_resource_type(ALICE, READ, TOPIC)


@pytest.mark.parametrize("function", [raises, coroutine])
def test_a_failure_by_type_is_a_failure(function: Callable[..., Any]) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.authorize_by_resource_type = function
    with pytest.raises(AuthorizerFailedError):
        CustomContextAuthorizer(authorizer).decide_by_resource_type(ALICE, READ, TOPIC)


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no principal `eve\n2026 [info] forged\u202e\x1b[2J`"), "no principal `eve"),
        (KeyError("n" * 500_000), "KeyError: 'nnn"),
        (UnspeakableError(), "UnspeakableError"),
        (type("T" * 1000, (Exception,), {})("x"), "TTTT"),
        (ValueError("\ud800"), "ValueError: "),
    ],
)
def test_the_text_of_a_failure_is_short_and_one_log_line(error: Exception, reason: str) -> None:
    def fails(*_: Any) -> Any:
        raise error

    authorizer: Any = SpecAuthorizer()
    authorizer.authorize = authorizer.authorize_by_resource_type = fails
    custom = CustomContextAuthorizer(authorizer)
    with capture_logs() as logs:
        with pytest.raises(AuthorizerFailedError) as raised:
            custom.decide(ALICE, ACTIONS)
        with pytest.raises(AuthorizerFailedError):
            custom.decide_by_resource_type(ALICE, READ, TOPIC)
    assert str(raised.value) == "`SpecAuthorizer.authorize` failed", "clients get no detail"
    assert len(logs) == 2
    for log in logs:
        assert reason in log["reason"]
        assert len(log["reason"]) <= 2 * SECURITY_TEXT_MAX_CHARACTERS + 50
        assert not UNSEEN.search(log["reason"])


def test_the_inherited_decision_by_type_is_used() -> None:
    subject = CustomContextAuthorizer(SpecAuthorizer([allow(TOPIC, "orders", READ)]))
    assert subject.decide_by_resource_type(ALICE, READ, TOPIC).allowed
    assert not subject.decide_by_resource_type(ALICE, AclOperation.WRITE, TOPIC).allowed


def test_a_code_of_its_own_reaches_the_client() -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.authorize = refuses
    with capture_logs() as logs, pytest.raises(KafkaApiError) as raised:
        CustomContextAuthorizer(authorizer).decide(ALICE, ACTIONS)
    assert raised.value.code is ErrorCode.coordinator_not_available
    assert logs == []


def test_the_code_of_success_is_not_an_error_code() -> None:
    with pytest.raises(ValueError, match="not an error"):
        KafkaApiError(ErrorCode.none)


def test_repeated_failures_are_logged_at_a_limited_rate_and_counted() -> None:
    now_s, kinds = 0.0, 2 * KINDS_MAX
    types = [type(f"Fault{number}", (Exception,), {}) for number in range(kinds)]
    authorizer: Any = SpecAuthorizer()
    custom = CustomContextAuthorizer(authorizer, lambda: now_s)

    def fail(error: Exception) -> None:
        authorizer.authorize = authorizer.authorize_by_resource_type = raising(error)
        with pytest.raises(AuthorizerFailedError):
            custom.decide(ALICE, ACTIONS)

    with capture_logs() as logs:
        for now_s in (0.0, 1.0, LOGGED_EVERY_S - 1, LOGGED_EVERY_S, LOGGED_EVERY_S + 1):
            fail(ValueError(now_s))
        assert [(log["reason"], log["failures"]) for log in logs] == [
            ("ValueError: 0.0", 1),
            (f"ValueError: {LOGGED_EVERY_S}", 3),
        ]
        with pytest.raises(AuthorizerFailedError):
            custom.decide_by_resource_type(ALICE, READ, TOPIC)
        assert [log["method"] for log in logs[2:]] == ["authorize_by_resource_type"]
        for error in types * 3:
            fail(error())
        assert len(logs) == KINDS_MAX + 2
        now_s += LOGGED_EVERY_S
        fail(types[-1]())
        assert logs[-1]["failures"] == (kinds - KINDS_MAX + 2) * 3


async def test_an_exit_of_the_process_is_not_an_authorizer_failure() -> None:
    def ends(*_: Any) -> list[AuthorizationResult]:
        raise asyncio.CancelledError

    authorizer: Any = SpecAuthorizer()
    authorizer.authorize = ends
    with pytest.raises(asyncio.CancelledError):
        CustomContextAuthorizer(authorizer).decide(ALICE, ACTIONS)


def test_a_subject_that_cannot_decide_raises() -> None:
    nobody = UnusedDecider(ALICE.principal, ALICE.host)
    with pytest.raises(AuthorizerError):
        nobody.decide(READ, TOPIC, "orders")
    with pytest.raises(AuthorizerError):
        nobody.decide_by_resource_type(READ, TOPIC)
