"""DescribeAcls, CreateAcls and DeleteAcls, answered by whatever authorizer there is (Kafka's `AclApis`).

Results are per item. What an authorizer raises, and what it returns in place of results, becomes an error
of the items it stands for: its own code where it has one, else UNKNOWN_SERVER_ERROR without words.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from kio.schema.errors import ErrorCode

from kustos.acl import AclBinding
from kustos.authorizer import (
    AclCreateResult,
    AclDeleteResult,
    AuthorizableRequestContext,
    Authorizer,
    KafkaApiError,
)
from kustos.gateway.custom import AuthorizerFailedError, discard
from kustos.gateway.purgatory import DelayedFuturePurgatory
from kustos.protocol import admin
from kustos.protocol.exchange import WrittenAt
from kustos.wire import Message

LOG: Final = structlog.get_logger("kustos.gateway")

NO_SENSE: Final = KafkaApiError(ErrorCode.unknown_server_error)

R = TypeVar("R", AclCreateResult, AclDeleteResult)


def _no_authorizer(message: str) -> KafkaApiError:
    return KafkaApiError(ErrorCode.security_disabled, message)


def untold(_change_offset: int | None) -> None:
    """Take the word on where a change is where nobody waits for it."""


class AclApis:
    """Answers the three requests, which the guard has authorized. Without an authorizer they are refused."""

    def __init__(self, authorizer: Authorizer | None, purgatory: DelayedFuturePurgatory) -> None:
        self._authorizer: Final = authorizer
        self._purgatory: Final = purgatory

    def describe(self, made: type[Message], request: Message) -> Message:
        """Return the answer to DescribeAcls."""
        if self._authorizer is None:
            return admin.undescribed_acls(made, _no_authorizer("No Authorizer is configured on the broker"))
        try:
            found = _bindings(self._authorizer.acls(admin.filter_of(request)))
        except Exception as error:  # noqa: BLE001 - see the top of this file
            return admin.undescribed_acls(made, self._failure("acls", error))
        return admin.described_acls(made, found)

    async def create(
        self,
        made: type[Message],
        request: Message,
        context: AuthorizableRequestContext,
        written_at: WrittenAt = untold,
    ) -> Message:
        """Come to the answer to CreateAcls; `written_at` is told where the change is, asked for or not."""
        authorizer = self._authorizer
        if admin.has_filter_codes(request):
            written_at(None)
            return admin.failed_creations(made, request, NO_SENSE)
        if authorizer is None:
            written_at(None)
            return admin.failed_creations(made, request, _no_authorizer("No Authorizer is configured."))
        asked = [admin.creation_of(item) for item in request.creations]
        bindings = [item for item in asked if isinstance(item, AclBinding)]
        change = _Change("create_acls", lambda: authorizer.create_acls(context, bindings), written_at)
        results = await self._results(change, len(bindings), AclCreateResult)
        return admin.created_acls(made, asked, results)

    async def delete(
        self,
        made: type[Message],
        request: Message,
        context: AuthorizableRequestContext,
        written_at: WrittenAt = untold,
    ) -> Message:
        """Come to the answer to DeleteAcls; `written_at` as for `create`."""
        authorizer = self._authorizer
        filters = [admin.filter_of(item) for item in request.filters]
        if authorizer is None:
            written_at(None)
            refused = AclDeleteResult(exception=_no_authorizer("No Authorizer is configured."))
            return admin.deleted_acls(made, [refused] * len(filters))
        change = _Change("delete_acls", lambda: authorizer.delete_acls(context, filters), written_at)
        results = await self._results(change, len(filters), AclDeleteResult)
        return admin.deleted_acls(made, results)

    async def _results(self, change: "_Change", count: int, kind: type[R]) -> list[R]:
        """Return one result for each item, whatever the authorizer does."""
        try:
            outcomes = _counted(await self._outcomes(change.begin()), count)
        except Exception as error:  # noqa: BLE001 - see the top of this file
            return [kind(exception=self._failure(change.method, error))] * count
        return [
            outcome if isinstance(outcome, kind) else kind(exception=self._failure(change.method, outcome))
            for outcome in outcomes
        ]

    async def _outcomes(self, answer: object) -> Sequence[Any]:
        """Return what the items came to, in whichever of its two forms the answer was given."""
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
        """Return what clients are told in place of whatever it was; what nobody foresaw is logged."""
        if isinstance(error, KafkaApiError):
            return error
        discard(error)
        words = f": {error}" if isinstance(error, Exception) else ""
        LOG.error(
            "the authorizer failed",
            authorizer=type(self._authorizer).__name__,
            method=method,
            reason=type(error).__name__ + words,
        )
        return NO_SENSE


@dataclass(frozen=True, slots=True)
class _Change:
    """What an authorizer is asked to do, and who is told where it did it: when it is done, not who asked."""

    method: str
    ask: Callable[[], object]
    written_at: WrittenAt

    def begin(self) -> object:
        """Return what the authorizer returns, under way; raise what it raises."""
        try:
            answer = self.ask()
            if isinstance(answer, Awaitable):
                answer = asyncio.ensure_future(answer)
                # of the change itself: whoever asked may go away before
                answer.add_done_callback(self._done)
            else:
                self.written_at(None)
        except BaseException:
            self.written_at(None)
            raise
        return answer

    def _done(self, answer: asyncio.Future[object]) -> None:
        failed = answer.cancelled() or answer.exception() is not None
        self.written_at(None if failed else _change_offset(answer.result()))


def _change_offset(results: object) -> int | None:
    """Return where a change is, if its results tell."""
    for result in results if isinstance(results, Sequence) else ():
        if isinstance(result, AclCreateResult | AclDeleteResult) and type(result.change_offset) is int:
            return result.change_offset
    return None


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
