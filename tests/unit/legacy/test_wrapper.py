"""`AuthorizerWrapper` around third-party code: every failure is a denial, and reported."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerServerInfo,
    ClusterResource,
    Endpoint,
    InvalidActionError,
    KafkaApiError,
)
from kustos.legacy import (
    Acl,
    AuthorizerWrapper,
    LegacyAuthorizer,
    MemoryAclStore,
    Resource,
    Session,
    SimpleAclAuthorizer,
)
from kustos.wire import ErrorCode

TOPIC, READ, ALL = ResourceType.TOPIC, AclOperation.READ, AclOperation.ALL
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
CONTEXT = AuthorizableRequestContext(KafkaPrincipal("User", "alice"), "10.0.0.1")
ALLOWED, DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED
ORDERS = ResourcePattern(TOPIC, "orders")
BINDING = AclBinding(ORDERS, AccessControlEntry("User:alice", "*", READ, ALLOW))


class Scripted(LegacyAuthorizer):
    """Does with every call what it was told."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.asked: list[tuple[Any, ...]] = []
        self.kept = {Resource(TOPIC, "orders"): frozenset({Acl.of(CONTEXT.principal, ALLOW, "*", READ)})}

    def done(self, *call: Any) -> Any:
        self.asked.append(call)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def configure(self, configs: Mapping[str, object]) -> None:
        self.done("configure", configs)

    def authorize(self, session: Session, operation: AclOperation, resource: Resource) -> bool:
        answer: bool = self.done(session, operation, resource)
        return answer

    def add_acls(self, acls: Iterable[Acl], resource: Resource) -> None:
        self.done("add", frozenset(acls), resource)

    def remove_acls(self, *call: Any) -> bool:
        return bool(self.done("remove", *call))

    def get_acls(self, *_: Any) -> Any:
        return self.kept

    def close(self) -> None:
        self.done("close")


def test_an_action_reaches_the_legacy_authorizer_as_session_operation_and_resource() -> None:
    legacy = Scripted(outcome=True)
    wrapper = AuthorizerWrapper(legacy)
    assert wrapper.authorize(CONTEXT, [Action(TOPIC, "orders", READ)]) == [ALLOWED]
    assert legacy.asked == [(Session(CONTEXT.principal, "10.0.0.1"), READ, Resource(TOPIC, "orders"))]
    wrapper.configure({"custom.key": "1"})
    wrapper.close()
    assert legacy.asked[1:] == [("configure", {"custom.key": "1"}), ("close",)]


@pytest.mark.parametrize("outcome", [False, None, 0, "yes"])
def test_only_true_allows(outcome: object) -> None:
    assert AuthorizerWrapper(Scripted(outcome)).authorize(CONTEXT, [Action(TOPIC, "orders", READ)]) == [
        DENIED
    ]


def test_what_the_legacy_authorizer_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        AuthorizerWrapper(Scripted(ZeroDivisionError())).authorize(CONTEXT, [Action(TOPIC, "orders", READ)])


def test_questions_about_nothing_in_particular_are_refused() -> None:
    wrapper = AuthorizerWrapper(Scripted(outcome=True))
    for kind, operation in ((ResourceType.ANY, READ), (TOPIC, AclOperation.UNKNOWN)):
        with pytest.raises(InvalidActionError, match=f"`{operation}` on `{kind}`"):
            wrapper.authorize(CONTEXT, [Action(kind, "orders", operation)])
        with pytest.raises(InvalidActionError):
            wrapper.authorize_by_resource_type(CONTEXT, operation, kind)


def test_a_creation_that_fails_tells_its_code_and_no_text_of_unforeseen_errors() -> None:
    def created(outcome: object, binding: AclBinding = BINDING) -> KafkaApiError:
        (result,) = asyncio.run(AuthorizerWrapper(Scripted(outcome)).create_acls(CONTEXT, [binding]))
        assert result.exception is not None
        return result.exception

    assert created(KafkaApiError(ErrorCode.policy_violation)).code is ErrorCode.policy_violation
    unforeseen = created(ValueError("secret"))
    assert (unforeseen.code, str(unforeseen)) == (ErrorCode.invalid_request, "Failed to create ACL")
    ranged = AclBinding(ORDERS, AccessControlEntry("User:alice", "10.0.0.0/8", READ, ALLOW))
    assert created(None, ranged).code is ErrorCode.invalid_request


def test_a_deletion_that_fails_is_told_with_its_binding() -> None:
    wrapper = AuthorizerWrapper(Scripted(ValueError("secret")))
    (result,) = asyncio.run(wrapper.delete_acls(CONTEXT, [EVERY_BINDING]))
    ((expected),) = result.acl_binding_delete_results
    assert expected.acl_binding == BINDING
    assert expected.exception is not None
    assert expected.exception.code is ErrorCode.unknown_server_error


def test_a_set_of_a_legacy_authorizer_is_listed_as_statements() -> None:
    legacy = Scripted(outcome=True)
    both = Acl(CONTEXT.principal, ALLOW, frozenset({"h1", "h2"}), frozenset({READ, ALL}))
    legacy.kept = {Resource(TOPIC, "orders"): frozenset({both})}
    assert len(list(AuthorizerWrapper(legacy).acls(EVERY_BINDING))) == 4


def test_a_host_with_a_slash_stays_a_text_for_questions_by_type() -> None:
    acl = Acl.of(CONTEXT.principal, ALLOW, "10.0.0.0/8", READ)
    store = MemoryAclStore({Resource(TOPIC, "orders"): frozenset({acl})})
    wrapper = AuthorizerWrapper(SimpleAclAuthorizer(store))
    assert wrapper.authorize_by_resource_type(CONTEXT, READ, TOPIC) is DENIED
    (listed,) = wrapper.acls(EVERY_BINDING)
    pattern, entry = listed.pattern, listed.entry
    exact = AclBindingFilter(
        ResourcePatternFilter(pattern.resource_type, pattern.name, pattern.pattern_type),
        AccessControlEntryFilter(entry.principal, entry.host, entry.operation, entry.permission_type),
    )
    (result,) = asyncio.run(wrapper.delete_acls(CONTEXT, [exact]))
    assert [each.acl_binding for each in result.acl_binding_delete_results] == [listed]


def test_every_endpoint_may_begin_at_once() -> None:
    endpoint = Endpoint("SASL", "SASL_PLAINTEXT", "localhost", 9092)
    server = AuthorizerServerInfo(
        cluster_resource=ClusterResource(None),
        broker_id=1,
        endpoints=(endpoint,),
        inter_broker_endpoint=endpoint,
    )

    async def begin() -> None:
        for ready in AuthorizerWrapper(Scripted(outcome=True)).start(server).values():
            await ready

    asyncio.run(begin())
