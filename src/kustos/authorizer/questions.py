"""Decides questions given as texts; returns the result and the deciding rule as texts, and never raises.

Use it for lines of a file or rows of a table. The result of an invalid question is ERROR, which allows
nothing.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from kustos.acl import AclOperation, AclValueError, KafkaPrincipal, ResourceType
from kustos.authorizer.session import AuthorizerSession
from kustos.authorizer.spi.values import AuthorizerNotReadyError, Decision, InvalidActionError
from kustos.authorizer.standard import StandardAuthorizer

ALLOWED: Final = "ALLOWED"
DENIED: Final = "DENIED"
ERROR: Final = "ERROR"

OPERATIONS: Final = {
    name: operation for name, operation in AclOperation.__members__.items() if operation > AclOperation.ANY
}
"""Operations by Kafka's name."""

RESOURCE_TYPES: Final = {
    name: kind for name, kind in ResourceType.__members__.items() if kind > ResourceType.ANY
}
"""Resource types by Kafka's name."""

QUESTIONER_SESSIONS_MAX: Final = 4096
"""The number of cached sessions, the oldest evicted first: with their own bounded caches, about 100 MB in
total."""

KEPT_TEXTS_MAX: Final = 65_536
"""The number of cached texts of rules, about 20 MB; a full cache is cleared."""

Answer = tuple[str, str]
"""ALLOWED, DENIED or ERROR, and the reason."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a question is invalid: the wrong field, and the rule that it violates."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"Error({self.field} {self.rule})"


MALFORMED_PRINCIPAL: Final = Fault("principal", "is not written as `User:name`")
EVERYBODY_IS_NO_CLIENT: Final = Fault("principal", "means everybody and is not a single client")
NO_HOST: Final = Fault("host", "is not text")
NO_OPERATION: Final = Fault("operation", "is not an operation to decide on, use one such as `READ`")
NO_RESOURCE_TYPE: Final = Fault("resource_type", "is not a type to decide on, use one such as `TOPIC`")
NOT_READY: Final = Fault("principal", "cannot be judged yet, the ACLs are not loaded")


class Questioner:
    """Answers questions with one authorizer, always with its newest ACLs."""

    def __init__(self, authorizer: StandardAuthorizer) -> None:
        self._authorizer: Final = authorizer
        # an OrderedDict: finding the first key of a dict takes longer the more keys before it were removed
        self._sessions: Final[OrderedDict[tuple[str | None, str | None], AuthorizerSession]] = OrderedDict()
        self._texts: Final[dict[int, tuple[Decision, Answer]]] = {}

    def ask(
        self,
        principal: str | None,
        host: str | None,
        operation: str | None,
        resource_type: str | None,
        resource_name: str | None,
    ) -> Decision | Fault:
        """Return the decision on one question, or the reason why it is invalid.

        `name` None: the question is about any resource of the type.
        """
        opened = self._sessions.get((principal, host)) or self._open(principal, host)
        known_operation = OPERATIONS.get(operation)  # type: ignore[arg-type]
        kind = RESOURCE_TYPES.get(resource_type)  # type: ignore[arg-type]
        if isinstance(opened, Fault) or known_operation is None or kind is None:
            fault = NO_OPERATION if known_operation is None else NO_RESOURCE_TYPE
            return opened if isinstance(opened, Fault) else fault
        try:
            if resource_name is None:
                return opened.decide_by_resource_type(known_operation, kind)
            return opened.decide(known_operation, kind, resource_name)
        except AuthorizerNotReadyError:
            return NOT_READY

    def write(self, decision: Decision | Fault) -> Answer:
        """Return the result of `ask` as texts."""
        kept = self._texts.get(id(decision))
        if kept is not None:
            return kept[1]
        if isinstance(decision, Fault):
            return ERROR, str(decision)
        if len(self._texts) >= KEPT_TEXTS_MAX:
            self._texts.clear()
        answer = decision.result.value, str(decision.rule)
        # keep a reference to the decision too: an id is unique only while its object exists
        self._texts[id(decision)] = decision, answer
        return answer

    def _open(self, principal: str | None, host: str | None) -> AuthorizerSession | Fault:
        """Return the session of a principal and a host, or the reason why they are invalid."""
        if not isinstance(principal, str) or not isinstance(host, str):
            return NO_HOST if isinstance(principal, str) else MALFORMED_PRINCIPAL
        try:
            session = self._authorizer.session(KafkaPrincipal.parse(principal), host)
        except AclValueError:
            return MALFORMED_PRINCIPAL
        except InvalidActionError:
            return EVERYBODY_IS_NO_CLIENT
        if len(self._sessions) >= QUESTIONER_SESSIONS_MAX:
            self._sessions.popitem(last=False)
        self._sessions[principal, host] = session
        return session
