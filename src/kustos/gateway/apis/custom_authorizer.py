"""Decisions of a custom authorizer: any failure inside it denies.

Kafka trusts its authorizer class; a gateway must not. An answer is valid only if it is one list with one
result for each action; anything else (an exception, too few or too many results, another type, a coroutine)
is a failure: clients get UNKNOWN_SERVER_ERROR, and nothing is forwarded.
"""

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import structlog

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Authorizer,
    AuthorizerError,
    Decision,
    KafkaApiError,
    Rule,
    RuleKind,
)
from kustos.authorizer.audit import cut, visible
from kustos.runtime import PacedCounts

LOG: Final = structlog.get_logger("kustos.gateway")

LOGGED_EVERY_S: Final = 10.0
"""The time between two log lines about failures of one kind; each line has the number of failures since the
previous line."""

KINDS_MAX: Final = 32
"""The maximum number of distinguished kinds of failures: third-party code may raise a new type each time."""

DECISIONS: Final = {result: Decision(result, Rule(RuleKind.CUSTOM)) for result in AuthorizationResult}
"""A custom authorizer gives no reason for its results."""


class AuthorizerFailedError(AuthorizerError):
    """An authorizer gave no usable answer; the text has the reason."""


class CustomContextAuthorizer:
    """Queries a custom authorizer; raises only `AuthorizerError` if it gives no usable answer.

    Logs the first failure of each kind, and then one in `LOGGED_EVERY_S`: each request may fail.
    """

    def __init__(self, authorizer: Authorizer, now_s: Callable[[], float] = time.monotonic) -> None:
        self._authorizer: Final = authorizer
        self._now_s: Final = now_s
        self._failures: Final = PacedCounts(LOGGED_EVERY_S)

    def decide(self, context: AuthorizableRequestContext, actions: Sequence[Action]) -> list[Decision]:
        """Return one decision for each action, in order; raise `AuthorizerError` without a usable answer."""
        try:
            results = self._authorizer.authorize(context, actions)
            return _decisions(results, len(actions))
        except Exception as error:
            raise self._failure("authorize", error) from error

    def decide_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Return whether the operation is allowed on some resource of the type; raise `AuthorizerError`."""
        try:
            result = self._authorizer.authorize_by_resource_type(context, operation, resource_type)
            return _decisions([result], 1)[0]
        except Exception as error:
            raise self._failure("authorize_by_resource_type", error) from error

    def _failure(self, method: str, error: Exception) -> AuthorizerError:
        """Return the error that replaces any other error: every fault must deny."""
        if isinstance(error, KafkaApiError):
            return error
        name = type(self._authorizer).__name__
        # messages of kustos describe the invalid answer; messages of third-party code may quote anything
        kind = (method, str(error) if isinstance(error, AuthorizerFailedError) else type(error).__name__)
        if kind not in self._failures and len(self._failures) >= KINDS_MAX:
            kind = (method, "")
        if failures := self._failures.due(kind, self._now_s()):
            LOG.error(
                "the authorizer failed, requests are refused",
                authorizer=name,
                method=method,
                reason=words_of_others(error),
                failures=failures,
            )
        return AuthorizerFailedError(f"`{name}.{method}` failed")


def _decisions(results: object, count: int) -> list[Decision]:
    discard(results)
    if not isinstance(results, Sequence):
        raise AuthorizerFailedError(f"it returned `{type(results).__name__}`, not a list of results")
    if len(results) != count:
        raise AuthorizerFailedError(f"it returned {len(results)} results for {count} actions")
    for result in results:
        # a member of another enum, or a string, may look the same and even compare equal
        if type(result) is not AuthorizationResult:
            for each in results:
                discard(each)
            raise AuthorizerFailedError(f"it returned `{type(result).__name__}`, not an AuthorizationResult")
    return [DECISIONS[result] for result in results]


def words_of_others(error: object) -> str:
    """Return the type and text of a third-party exception for the log; for other objects only the type.

    The text may contain half a megabyte that a client chose: it is truncated like texts of audit events, and
    invisible characters are escaped. This function never raises.
    """
    kind = cut(type(error).__name__)
    if not isinstance(error, BaseException):
        return kind
    try:
        return f"{kind}: {visible(cut(str(error)))}"
    except Exception:  # noqa: BLE001 - third-party code also creates the text
        return kind


def discard(answer: object) -> None:
    """Close a coroutine that will not be awaited, so that Python does not warn about it."""
    if isinstance(answer, Coroutine):
        answer.close()


class UnusedDecider:
    """Replaces the connection's decider if a `ContextAuthorizer` decides; it never decides itself."""

    version: Final = None

    def __init__(self, _principal: KafkaPrincipal, _host: str) -> None:
        """Accept the arguments of a decider."""

    def decide(self, *_question: Any) -> Decision:
        """Raise `AuthorizerFailedError`."""
        raise AuthorizerFailedError("the custom authorizer was not called")

    def decide_by_resource_type(self, *_question: Any) -> Decision:
        """Raise `AuthorizerFailedError`."""
        raise AuthorizerFailedError("the custom authorizer was not called")
