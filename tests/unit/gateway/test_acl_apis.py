"""The ACL requests, answered by any authorizer item by item (Kafka's `AclApis`)."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import EVERY_BINDING, AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    SUCCESS,
    AclBindingDeleteResult,
    AclCreateResult,
    AclDeleteResult,
    AclListing,
    AuthorizableRequestContext,
    Authorizer,
    KafkaApiError,
)
from kustos.gateway.apis.acls import AclApis
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.store.large_work import LARGE_ITEMS_MIN
from kustos.wire import ErrorCode, Message, MessageCodec, request_codec, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.protocol.random_requests import allow
from testkit.waiting import NEVER_AWAITED

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALICE = AuthorizableRequestContext(KafkaPrincipal("User", "alice"), "10.0.0.1")
ORDERS = allow(TOPIC, "orders", READ)
UNKNOWN = ErrorCode.unknown_server_error.value
DISABLED = ErrorCode.security_disabled.value
WAIT_S = 60.0


def apis(authorizer: Authorizer | None) -> AclApis:
    return AclApis(authorizer, DelayedFuturePurgatory(ALTER_ACLS, 60_000))


def read(codec: MessageCodec, answer: Message | bytes) -> Message:
    return codec.decode(answer if isinstance(answer, bytes) else codec.encode(answer)).message


CREATED, DELETED = response_codec(ApiKey.CREATE_ACLS, 3), response_codec(ApiKey.DELETE_ACLS, 3)


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
    answer = read(CREATED, await apis(authorizer).create(CREATED, creation(*names), ALICE))
    return [(each.error_code, each.error_message) for each in answer.results]


async def deleted(authorizer: Authorizer | None, *names: str | None) -> list[tuple[int, str | None, int]]:
    answer = read(DELETED, await apis(authorizer).delete(DELETED, deletion(*names), ALICE))
    return [(each.error_code, each.error_message, len(each.matching_acls)) for each in answer.filter_results]


async def described(authorizer: Authorizer | None) -> Message:
    codec = response_codec(ApiKey.DESCRIBE_ACLS, 3)
    return read(codec, await apis(authorizer).describe(codec, description()))


async def test_acls_are_created_listed_and_deleted() -> None:
    authorizer = SpecAuthorizer()
    assert await created(authorizer, "orders", "", "pay") == [
        (0, ""),
        (ErrorCode.invalid_request.value, "Invalid empty resource name"),
        (0, ""),
    ]
    answer = await described(authorizer)
    listed = {resource.resource_name: len(resource.acls) for resource in answer.resources}
    assert listed == {"orders": 1, "pay": 1}
    assert await deleted(authorizer, "pay", "nothing", None) == [(0, None, 1), (0, None, 0), (0, None, 2)]
    assert (await described(authorizer)).resources == []


async def test_acl_requests_fail_with_security_disabled_without_an_authorizer() -> None:
    answer = await described(None)
    assert (answer.error_code, answer.error_message) == (
        DISABLED,
        "No Authorizer is configured on the broker",
    )
    text = "No Authorizer is configured."
    assert await created(None, "orders", "") == [(DISABLED, text)] * 2
    assert await deleted(None, "orders") == [(DISABLED, text, 0)]


async def test_an_authorizer_may_return_one_future_per_item_as_in_kafka() -> None:
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


async def test_a_matching_acl_that_was_not_deleted_reports_its_error() -> None:
    async def partly(*_: Any) -> list[AclDeleteResult]:
        kept = AclBindingDeleteResult(ORDERS, KafkaApiError(ErrorCode.unknown_server_error, "secret"))
        named = AclBindingDeleteResult(ORDERS, KafkaApiError(ErrorCode.policy_violation, "kept"))
        return [AclDeleteResult((AclBindingDeleteResult(ORDERS), named, kept))]

    authorizer: Any = SpecAuthorizer()
    authorizer.delete_acls = partly
    answer = read(DELETED, await apis(authorizer).delete(DELETED, deletion(None), ALICE))
    [result] = answer.filter_results
    assert [(each.error_code, each.error_message) for each in result.matching_acls] == [
        (0, None),
        (ErrorCode.policy_violation.value, "kept"),
        (UNKNOWN, None),
    ]


class HeldListing(AclListing):
    """Many ACLs; the second piece waits until the test allows it, or until the listing stops."""

    def __init__(self) -> None:
        super().__init__([[ORDERS]], EVERY_BINDING)
        self.size = LARGE_ITEMS_MIN
        self.finished = False
        self.begun, self.go_on = threading.Event(), threading.Event()

    def pieces(self) -> Iterator[list[AclBinding]]:
        yield [ORDERS]
        self.begun.set()
        assert self.go_on.wait(WAIT_S)
        yield [allow(TOPIC, "pay", READ)]
        self.finished = True


async def test_listing_many_acls_does_not_block_the_event_loop() -> None:
    authorizer: Any = SpecAuthorizer()
    held = HeldListing()
    authorizer.acls = lambda _: held
    waiting = asyncio.ensure_future(described(authorizer))
    await asyncio.to_thread(held.begun.wait, WAIT_S)
    # the loop had its turn in the middle of the work
    assert not waiting.done()
    held.go_on.set()
    assert {each.resource_name for each in (await waiting).resources} == {"orders", "pay"}


async def test_a_listing_stops_when_its_client_disconnects() -> None:
    authorizer: Any = SpecAuthorizer()
    held = HeldListing()
    authorizer.acls = lambda _: held
    waiting = asyncio.ensure_future(described(authorizer))
    await asyncio.to_thread(held.begun.wait, WAIT_S)
    waiting.cancel()
    # the loop's next turn tells it
    await asyncio.sleep(0)
    held.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    # it ended at its next piece, before the turn of the next caller
    assert not held.finished


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


@pytest.mark.filterwarnings(*NEVER_AWAITED)
@pytest.mark.parametrize("kind", BROKEN)
async def test_a_failed_change_is_an_error_without_a_message(kind: str) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.create_acls = authorizer.delete_acls = BROKEN[kind]
    with capture_logs() as logs:
        assert await created(authorizer, "a", "b") == [(UNKNOWN, None)] * 2
        assert await deleted(authorizer, "a", "b") == [(UNKNOWN, None, 0)] * 2
    assert {log["log_level"] for log in logs} == {"error"}


async def test_a_failure_does_not_log_client_supplied_bytes() -> None:
    def fails(_context: object, bindings: list[AclBinding]) -> Any:
        raise ValueError(bindings[0].pattern.name * 1000)

    authorizer: Any = SpecAuthorizer()
    authorizer.create_acls = fails
    with capture_logs() as logs:
        assert await created(authorizer, "a\nb" * 1000) == [(UNKNOWN, None)]
    (reason,) = [log["reason"] for log in logs]
    assert reason.startswith("ValueError: a\\u000ab")
    assert len(reason) < 1000
    assert "\n" not in reason


@pytest.mark.filterwarnings(*NEVER_AWAITED)
@pytest.mark.parametrize(
    "broken", [raises, raises_later, lambda *_: None, lambda *_: [ORDERS, "orders"], lambda *_: 7]
)
async def test_a_failed_listing_is_an_error_without_a_message(broken: Callable[..., Any]) -> None:
    authorizer: Any = SpecAuthorizer()
    authorizer.acls = broken
    answer = await described(authorizer)
    assert (answer.error_code, answer.error_message, answer.resources) == (UNKNOWN, None, [])
