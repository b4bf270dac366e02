"""DescribeAcls, CreateAcls and DeleteAcls, answered by the node's authorizer (Kafka's `AclApis`).

Results are per item. An exception of the authorizer, or a value that is not a result, becomes an error of the
items concerned: with its own code if it has one, else UNKNOWN_SERVER_ERROR without a message.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import structlog

from kustos.acl import EVERY_BINDING, AclBinding
from kustos.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AclListing,
    AuthorizableRequestContext,
    Authorizer,
    KafkaApiError,
)
from kustos.gateway.apis.custom_authorizer import AuthorizerFailedError, discard, words_of_others
from kustos.gateway.apis.purgatory import DelayedFuturePurgatory
from kustos.gateway.store.large_work import Interruption, LargeWork
from kustos.protocol import DescribedAcls, WrittenAt, admin
from kustos.wire import ErrorCode, Message, MessageCodec

LOG: Final = structlog.get_logger("kustos.gateway")

NO_SENSE: Final = KafkaApiError(ErrorCode.unknown_server_error)

R = TypeVar("R", AclCreateResult, AclDeleteResult)


def _no_authorizer(message: str) -> KafkaApiError:
    return KafkaApiError(ErrorCode.security_disabled, message)


class AclApis:
    """Answers the three requests, which the guard has authorized. Without an authorizer, it refuses them."""

    def __init__(self, authorizer: Authorizer | None, purgatory: DelayedFuturePurgatory) -> None:
        self._authorizer: Final = authorizer
        self._purgatory: Final = purgatory
        # changes do not wait for lists
        self._lists: Final = LargeWork()
        self._changes: Final = LargeWork()

    async def describe(self, codec: MessageCodec, request: Message) -> Message | bytes:
        """Return the answer to DescribeAcls, or its body."""
        if self._authorizer is None:
            error = _no_authorizer("No Authorizer is configured on the broker")
            return admin.undescribed_acls(codec.root, error)
        try:
            listing = _listing(self._authorizer.acls(admin.filter_of(request)))
        except Exception as error:  # noqa: BLE001 - see the top of this file
            return admin.undescribed_acls(codec.root, self._failure("acls", error))

        def described(interruption: Interruption) -> bytes:
            answer = DescribedAcls(codec)
            for piece in interruption.until_it_comes(listing.pieces()):
                answer.add(piece)
            return answer.body()

        return await self._lists.run(described, listing.size)

    async def create(
        self,
        codec: MessageCodec,
        request: Message,
        context: AuthorizableRequestContext,
        written_at: WrittenAt | None = None,
    ) -> Message | bytes:
        """Return the answer to CreateAcls; `written_at` is always called with the change's offset."""
        authorizer = self._authorizer
        with OffsetReport(written_at) as report:
            items = await self._changes.run(lambda _: admin.creations_of(request), len(request.creations))
            if items is None:
                return admin.failed_creations(codec.root, request, NO_SENSE)
            if authorizer is None:
                refused = _no_authorizer("No Authorizer is configured.")
                return admin.failed_creations(codec.root, request, refused)
            bindings = [item for item in items if isinstance(item, AclBinding)]
            change = partial(report.begin, lambda: authorizer.create_acls(context, bindings))
            results = await self._results("create_acls", change, len(bindings), AclCreateResult)
        return await self._changes.run(
            lambda _: codec.encode(admin.created_acls(codec.root, items, results)), len(results)
        )

    async def delete(
        self,
        codec: MessageCodec,
        request: Message,
        context: AuthorizableRequestContext,
        written_at: WrittenAt | None = None,
    ) -> Message | bytes:
        """Return the answer to DeleteAcls; `written_at` as for `create`."""
        authorizer, items = self._authorizer, request.filters
        with OffsetReport(written_at) as report:
            if authorizer is None:
                refused = AclDeleteResult(exception=_no_authorizer("No Authorizer is configured."))
                return admin.deleted_acls(codec.root, [refused] * len(items))
            filters = await self._changes.run(lambda _: [admin.filter_of(item) for item in items], len(items))
            change = partial(report.begin, lambda: authorizer.delete_acls(context, filters))
            results = await self._results("delete_acls", change, len(filters), AclDeleteResult)
        deleted = sum(len(each.acl_binding_delete_results) for each in results)
        return await self._changes.run(
            lambda _: codec.encode(admin.deleted_acls(codec.root, results)), len(results) + deleted
        )

    async def _results(self, method: str, change: Callable[[], object], count: int, kind: type[R]) -> list[R]:
        """Return one result for each item, even if the authorizer fails."""
        try:
            outcomes = _counted(await self._outcomes(change()), count)
        except Exception as error:  # noqa: BLE001 - see the top of this file
            return [kind(exception=self._failure(method, error))] * count
        return [
            outcome if isinstance(outcome, kind) else kind(exception=self._failure(method, outcome))
            for outcome in outcomes
        ]

    async def _outcomes(self, answer: object) -> Sequence[Any]:
        """Return the result of each item, for both forms of an authorizer's answer."""
        if isinstance(answer, Awaitable):
            [outcome] = await self._purgatory.outcomes([answer])
            if isinstance(outcome, Exception):
                raise outcome
            if isinstance(outcome, Sequence):
                return outcome
            discard(outcome)
        elif isinstance(answer, Sequence):
            return await self._purgatory.outcomes(answer)
        raise AuthorizerFailedError("it returned no list of results")

    def _failure(self, method: str, error: object) -> KafkaApiError:
        """Return the error for clients; an unexpected error is logged."""
        if isinstance(error, KafkaApiError):
            return error
        discard(error)
        LOG.error(
            "the authorizer failed",
            authorizer=type(self._authorizer).__name__,
            method=method,
            reason=words_of_others(error),
        )
        return NO_SENSE


class OffsetReport:
    """Reports the offset of a change exactly once, on every code path, even if the client has disconnected.

    Leaving the `with` block without a started change reports None.
    """

    __slots__ = ("_written_at",)

    def __init__(self, written_at: WrittenAt | None) -> None:
        self._written_at = written_at

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._report(None)

    def begin(self, change: Callable[[], object]) -> object:
        """Start the change and return its result; an unfinished change reports when it is done."""
        answer = change()
        if not isinstance(answer, Awaitable):
            self._report(None)
            return answer
        future = asyncio.ensure_future(answer)
        # on the change itself, because its client may disconnect before
        future.add_done_callback(partial(_report_done, self._written_at))
        self._written_at = None
        return future

    def _report(self, offset: int | None) -> None:
        written_at, self._written_at = self._written_at, None
        if written_at is not None:
            written_at(offset)


def _report_done(written_at: WrittenAt | None, answer: asyncio.Future[object]) -> None:
    failed = answer.cancelled() or answer.exception() is not None
    if written_at is not None:
        written_at(None if failed else _change_offset(answer.result()))


def _change_offset(results: object) -> int | None:
    """Return the offset of a change, if its results have one."""
    for result in results if isinstance(results, Sequence) else ():
        if isinstance(result, AclCreateResult | AclDeleteResult) and type(result.change_offset) is int:
            return result.change_offset
    return None


def _listing(found: Iterable[object]) -> AclListing:
    """Return the found ACLs as an immutable listing, for any iterable of the authorizer."""
    return found if isinstance(found, AclListing) else AclListing([_bindings(found)], EVERY_BINDING)


def _bindings(found: Iterable[object]) -> list[AclBinding]:
    discard(found)
    bindings = []
    for binding in found:
        if not isinstance(binding, AclBinding):
            for each in found if isinstance(found, Sequence) else ():
                discard(each)
            raise AuthorizerFailedError(f"it returned `{type(binding).__name__}`, not an AclBinding")
        bindings.append(binding)
    return bindings


def _counted(outcomes: Sequence[Any], count: int) -> Sequence[Any]:
    if len(outcomes) != count:
        raise AuthorizerFailedError(f"it returned {len(outcomes)} results for {count} items")
    return outcomes
