"""Records changes of users, tokens and settings as security events, for all APIs.

The guard has recorded that the request was allowed; this module records the requester, the change and its
outcome before the answer is sent. If the client disconnects, the change and its event continue. Events
contain no secrets: this module never reads passwords, HMACs and values of settings.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kustos.auth.mechanisms import ScramHash
from kustos.authorizer import SecurityEvent, SecurityEventType, SecurityResult
from kustos.authorizer.audit import cut
from kustos.gateway.audit.security import SecurityLog
from kustos.gateway.session.client_session import LocalApis
from kustos.metadata.control import ConfigOperation, ConfigResourceType
from kustos.protocol import Opened
from kustos.wire import ApiKey, ErrorCode, Message

EVENTS_PER_REQUEST_MAX: Final = 1_000
"""The number of changes of one request with separate events; the others share one event with their number."""

KEYS_MAX: Final = 16
"""The number of settings keys in an event; a request has a few."""

REST: Final = "the other changes of the request"
NOT_ANSWERED: Final = "it was not carried out, see the log of the node"

_MECHANISMS: Final[Mapping[int, str]] = {each.code: each.mechanism_name for each in ScramHash}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requested:
    """One change that a request contains; `key` finds its result in the answer."""

    change: str
    subject: str | None
    key: object = None
    mechanism: str | None = None
    detail: str | None = None


_OPERATIONS: Final[Mapping[int, str]] = {each.value: each.name for each in ConfigOperation}
_ERRORS: Final[Mapping[int, str]] = {each.value: each.name for each in ErrorCode}

Results = Callable[[Message], Mapping[object, tuple[int, str | None]]]
"""The answer → code and message of each result, by the keys of the changes."""


def _users(opened: Opened) -> Iterator[_Requested]:
    request = opened.exchange.request
    for change, items in (("DELETE", request.deletions), ("UPSERT", request.upsertions)):
        for item in items:
            mechanism = _MECHANISMS.get(item.mechanism, str(item.mechanism))
            yield _Requested(change=change, subject=item.name, key=item.name, mechanism=mechanism)


def _user_results(answer: Message) -> dict[object, tuple[int, str | None]]:
    return {each.user: (each.error_code, each.error_message) for each in answer.results}


def _token(change: str) -> Callable[[Opened], Iterator[_Requested]]:
    def requested(_opened: Opened) -> Iterator[_Requested]:
        yield _Requested(change=change, subject=None)

    return requested


def _one_result(answer: Message) -> dict[object, tuple[int, str | None]]:
    return {None: (answer.error_code, answer.get("error_message"))}


def _settings(opened: Opened) -> Iterator[_Requested]:
    for resource in opened.exchange.request.resources:
        kind = ConfigResourceType.from_code(resource.resource_type)
        shown = [f"{_operation(each.config_operation)} {each.name}" for each in resource.configs[:KEYS_MAX]]
        more = len(resource.configs) - len(shown)
        yield _Requested(
            change="ALTER",
            subject=f"{kind.name}:{resource.resource_name}",
            key=(resource.resource_type, resource.resource_name),
            detail=", ".join([*shown, *([f"and {more} more"] if more else [])]),
        )


def _operation(code: int) -> str:
    return _OPERATIONS.get(code, str(code))


def _setting_results(answer: Message) -> dict[object, tuple[int, str | None]]:
    return {
        (each.resource_type, each.resource_name): (each.error_code, each.error_message)
        for each in answer.responses
    }


def reloaded_settings(node_id: int, keys: Iterable[str], time_ms: int) -> SecurityEvent:
    """Return the event of settings that the operator, not a client, reloaded from the file."""
    return SecurityEvent(
        event_type=SecurityEventType.SETTING_CHANGE,
        result=SecurityResult.SUCCESS,
        time_ms=time_ms,
        first_time_ms=time_ms,
        listener_name="",
        security_protocol="",
        host=None,
        change="RELOAD",
        subject=f"{ConfigResourceType.BROKER.name}:{node_id}",
        detail=cut(", ".join(sorted(keys))),
    )


def _features(opened: Opened) -> Iterator[_Requested]:
    for update in opened.exchange.request.feature_updates:
        detail = f"level {update.max_version_level}"
        yield _Requested(change="ALTER", subject=f"FEATURE:{update.feature}", detail=detail)


_TYPES: Final = SecurityEventType
_CHANGES: Final[Mapping[int, tuple[SecurityEventType, Callable[[Opened], Iterator[_Requested]], Results]]] = {
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_TYPES.USER_CHANGE, _users, _user_results),
    ApiKey.CREATE_DELEGATION_TOKEN: (_TYPES.TOKEN_CHANGE, _token("CREATE"), _one_result),
    ApiKey.RENEW_DELEGATION_TOKEN: (_TYPES.TOKEN_CHANGE, _token("RENEW"), _one_result),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (_TYPES.TOKEN_CHANGE, _token("EXPIRE"), _one_result),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_TYPES.SETTING_CHANGE, _settings, _setting_results),
    ApiKey.UPDATE_FEATURES: (_TYPES.SETTING_CHANGE, _features, _one_result),
}
"""API key → the type of its events, the changes in a request, and their results in the answer."""


_NO_ERROR: Final = (ErrorCode.none.value, None)


class AuditedApis:
    """`LocalApis` whose changes are audited. `now_ms` is the wall time."""

    def __init__(self, apis: LocalApis, security: SecurityLog, now_ms: Callable[[], int]) -> None:
        self._apis: Final = apis
        self._security: Final = security
        self._now_ms: Final = now_ms
        self._under_way: Final[set[asyncio.Future[Message | bytes]]] = set()

    def serve(self, opened: Opened) -> Message | bytes | Coroutine[Any, Any, Message | bytes]:
        """Return the answer to an authorized request, or a coroutine that returns it."""
        if opened.row.api_key not in _CHANGES or opened.exchange.request.get("validate_only"):
            return self._apis.serve(opened)
        requested, events = self._begun(opened)
        report_outcome = self._security.hold(events)
        try:
            answer = self._apis.serve(opened)
        except Exception:
            report_outcome(self._ended(opened, requested, events, None))
            raise
        if isinstance(answer, Message | bytes):
            report_outcome(self._ended(opened, requested, events, answer))
            return answer
        # a separate task: the change continues if its client disconnects
        change = asyncio.ensure_future(answer)
        self._under_way.add(change)

        def done(change: asyncio.Future[Message | bytes]) -> None:
            self._under_way.discard(change)
            failed = change.cancelled() or change.exception() is not None
            answer = None if failed else change.result()
            report_outcome(self._ended(opened, requested, events, answer))

        change.add_done_callback(done)
        return _answer_of(change)

    def _begun(self, opened: Opened) -> tuple[list[_Requested], list[SecurityEvent]]:
        """Return the changes in a request, and an event for each, still without an outcome."""
        context, now_ms = opened.exchange.context, self._now_ms()
        event_type, read, _ = _CHANGES[opened.row.api_key]
        requested = list(read(opened))
        events = [
            SecurityEvent(
                event_type=event_type,
                result=SecurityResult.UNKNOWN,
                time_ms=now_ms,
                first_time_ms=now_ms,
                listener_name=context.listener_name,
                security_protocol=context.security_protocol,
                host=context.host,
                principal=context.principal,
                mechanism=each.mechanism,
                change=each.change,
                subject=None if each.subject is None else cut(each.subject),
                detail=None if each.detail is None else cut(each.detail),
            )
            for each in requested[:EVENTS_PER_REQUEST_MAX]
        ]
        if rest := len(requested) - len(events):
            events.append(replace(events[-1], attempt_count=rest, subject=None, mechanism=None, detail=REST))
        return requested, events

    def _ended(
        self,
        opened: Opened,
        requested: list[_Requested],
        events: list[SecurityEvent],
        answer: Message | bytes | None,
    ) -> list[SecurityEvent]:
        """Return the events with their outcomes; these are unknown if there is no answer or it cannot be
        parsed."""
        if not isinstance(answer, Message):
            return [replace(event, failure=NOT_ANSWERED) for event in events]
        results = _CHANGES[opened.row.api_key][2](answer)
        ends = [results.get(each.key, _NO_ERROR) for each in requested]
        ended = [
            _with_result(event, *end)
            for event, end in zip(events, ends[:EVENTS_PER_REQUEST_MAX], strict=False)
        ]
        for end, count in Counter(ends[EVENTS_PER_REQUEST_MAX:]).items():
            ended.append(_with_result(replace(events[-1], attempt_count=count), *end))
        if opened.exchange.changed is not None:
            ended = [replace(event, subject=opened.exchange.changed) for event in ended]
        if opened.row.api_key == ApiKey.CREATE_DELEGATION_TOKEN:
            owner = f"owner {answer.principal_type}:{answer.principal_name}"
            ended = [replace(event, subject=answer.token_id or None, detail=cut(owner)) for event in ended]
        return ended


def _with_result(event: SecurityEvent, code: int, message: str | None) -> SecurityEvent:
    if code == ErrorCode.none.value:
        return replace(event, result=SecurityResult.SUCCESS)
    name = _ERRORS.get(code, str(code))
    words = name.upper() if not message else f"{name.upper()}: {message}"
    return replace(event, result=SecurityResult.FAILURE, failure=cut(words))


async def _answer_of(change: asyncio.Future[Message | bytes]) -> Message | bytes:
    return await asyncio.shield(change)
