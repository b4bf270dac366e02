"""The ACL requests, answered by any authorizer: per item, whatever it does (Kafka's `AclApis`)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from structlog.testing import capture_logs

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    SUCCESS,
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    Authorizer,
    KafkaApiError,
)
from kustos.gateway.acl_apis import AclApis
from kustos.gateway.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.wire import Message, request_codec, response_codec
from kustos.wire.api_keys import ApiKey
from tests.property.protocol_requests import allow
from tests.unit.authorizer.spi_worlds import SpecAuthorizer

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALICE = AuthorizableRequestContext(KafkaPrincipal("User", "alice"), "10.0.0.1")
ORDERS = allow(TOPIC, "orders", READ)
UNKNOWN = ErrorCode.unknown_server_error.value
DISABLED = ErrorCode.security_disabled.value


def apis(authorizer: Authorizer | None) -> AclApis:
    return AclApis(authorizer, DelayedFuturePurgatory(ALTER_ACLS, 60_000))


def made(api_key: int) -> type[Message]:
    return response_codec(api_key, 3).root


def creation(*names: str) -> Message:
    codec = request_codec(ApiKey.CREATE_ACLS, 3)
    item = codec.struct("AclCreation")
    fields = {"principal": "User:alice", "host": "*", "operation": int(READ), "permission_type": 3}
    return codec.root(
        creations=[
            item(resource_type=int(TOPIC), resource_name=name, resource_pattern_type=3, **fields)
            for name in names
        ]
    )


def deletion(*names: str | None) -> Message:
    codec = request_codec(ApiKey.DELETE_ACLS, 3)
    item = codec.struct("DeleteAclsFilter")
    fields = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    return codec.root(
        filters=[
            item(resource_type_filter=1, resource_name_filter=name, pattern_type_filter=1, **fields)
            for name in names
        ]
    )


def description() -> Message:
    fields = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    return request_codec(ApiKey.DESCRIBE_ACLS, 3).root(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, **fields
    )


async def created(authorizer: Authorizer | None, *names: str) -> list[tuple[int, str | None]]:
    answer = await apis(authorizer).create(made(ApiKey.CREATE_ACLS), creation(*names), ALICE)
    response_codec(ApiKey.CREATE_ACLS, 3).encode(answer)
    return [(each.error_code, each.error_message) for each in answer.results]


async def deleted(authorizer: Authorizer | None, *names: str | None) -> list[tuple[int, str | None, int]]:
    answer = await apis(authorizer).delete(made(ApiKey.DELETE_ACLS), deletion(*names), ALICE)
    response_codec(ApiKey.DELETE_ACLS, 3).encode(answer)
    return [(each.error_code, each.error_message, len(each.matching_acls)) for each in answer.filter_results]


def described(authorizer: Authorizer | None) -> Message:
    answer = apis(authorizer).describe(made(ApiKey.DESCRIBE_ACLS), description())
    response_codec(ApiKey.DESCRIBE_ACLS, 3).encode(answer)
    return answer


async def test_acls_are_made_listed_and_taken_away() -> None:
    authorizer = SpecAuthorizer()
    assert await created(authorizer, "orders", "", "pay") == [
        (0, ""),
        (ErrorCode.invalid_request.value, "Invalid empty resource name"),
        (0, ""),
    ]
    listed = {resource.resource_name: len(resource.acls) for resource in described(authorizer).resources}
    assert listed == {"orders": 1, "pay": 1}
    assert await deleted(authorizer, "pay", "nothing", None) == [(0, None, 1), (0, None, 0), (0, None, 2)]
    assert described(authorizer).resources == []


async def test_without_an_authorizer_security_is_disabled() -> None:
    answer = described(None)
    assert (answer.error_code, answer.error_message) == (
        DISABLED,
        "No Authorizer is configured on the broker",
    )
    text = "No Authorizer is configured."
    assert await created(None, "orders", "") == [(DISABLED, text)] * 2
    assert await deleted(None, "orders") == [(DISABLED, text, 0)]


async def test_kafkas_form_of_one_future_for_each_item_will_do() -> None:
    loop = asyncio.get_running_loop()
    first, second, third = (loop.create_future() for _ in range(3))
    authorizer: Any = SpecAuthorizer()
    authorizer.create_acls = lambda *_: [first, second, third]
    waiting = asyncio.ensure_future(created(authorizer, "a", "b", "c"))
    third.set_result(SUCCESS)
    second.set_exception(KafkaApiError(ErrorCode.policy_violation, "too many"))
    first.set_result(AclCreateResult(KafkaApiError(ErrorCode.invalid_request, "no")))
    assert await waiting == [
        (ErrorCode.invalid_request.value, "no"),
        (ErrorCode.policy_violation.value, "too many"),
        (0, ""),
    ]


async def test_what_matched_but_could_not_be_deleted_says_so() -> None:
    async def partly(*_: Any) -> list[AclDeleteResult]:
        kept = AclBindingDeleteResult(ORDERS, KafkaApiError(ErrorCode.unknown_server_error, "secret"))
        named = AclBindingDeleteResult(ORDERS, KafkaApiError(ErrorCode.policy_violation, "kept"))
        return [AclDeleteResult((AclBindingDeleteResult(ORDERS), named, kept))]

    authorizer: Any = SpecAuthorizer()
    authorizer.delete_acls = partly
    answer = await apis(authorizer).delete(made(ApiKey.DELETE_ACLS), deletion(None), ALICE)
    [result] = answer.filter_results
    assert [(each.error_code, each.error_message) for each in result.matching_acls] == [
        (0, None),
        (ErrorCode.policy_violation.value, "kept"),
        (UNKNOWN, None),
    ]


def raises(*_: Any) -> Any:
    raise RuntimeError("a secret of the store")


async def raises_later(*_: Any) -> Any:
    raise RuntimeError("a secret of the store")


async def short(*_: Any) -> Any:
    return [SUCCESS]


async def returns(*_: Any) -> Any:
    return None


async def wrong(*_: Any) -> Any:
    return [True, "SUCCESS"]


async def other(*_: Any) -> Any:
    return [ORDERS, ORDERS]


BROKEN: dict[str, Callable[..., Any]] = {
    "raises": raises,
    "raises later": raises_later,
    "too few": short,
    "nothing to wait for": lambda *_: None,
    "nothing in the end": returns,
    "wrong types": wrong,
    "another type": other,
    "plain results": lambda *_: [SUCCESS, SUCCESS],
    "a text": lambda *_: "no",
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_change_is_an_error_without_words(kind: str) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.create_acls = authorizer.delete_acls = BROKEN[kind]
    with capture_logs() as logs:
        assert await created(authorizer, "a", "b") == [(UNKNOWN, None)] * 2
        assert await deleted(authorizer, "a", "b") == [(UNKNOWN, None, 0)] * 2
    assert {log["log_level"] for log in logs} == {"error"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "broken", [raises, raises_later, lambda *_: None, lambda *_: [ORDERS, "orders"], lambda *_: 7]
)
def test_a_broken_list_is_an_error_without_words(broken: Callable[..., Any]) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.acls = broken
    answer = described(authorizer)
    assert (answer.error_code, answer.error_message, answer.resources) == (UNKNOWN, None, [])
