"""One request on its way: what it says, who asks, and the decisions taken for it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from kustos.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kustos.authorizer import Action, AuthorizableRequestContext, AuthorizerError, Decision
from kustos.protocol.fetch_sessions import FetchSessions
from kustos.wire import Message, MessageCodec, RequestHeader, response_codec


class Decider(Protocol):
    """The authorizer as one connection sees it: principal and host are fixed."""

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision by the ACLs of this moment; raise `AuthorizerError` if there is none."""

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether it is allowed on some resource of the type; raise `AuthorizerError`."""


@dataclass(frozen=True, slots=True)
class UndecidedDecider:
    """Decides nothing: there is no answer for this principal, whatever it asks."""

    error: AuthorizerError

    def decide(self, _operation: AclOperation, _resource_type: ResourceType, _name: str) -> Decision:
        """Raise the error."""
        raise self.error

    def decide_by_resource_type(self, _operation: AclOperation, _resource_type: ResourceType) -> Decision:
        """Raise the error."""
        raise self.error


class Asker(Protocol):
    """An authorizer that is told all that is known of a request and of each action (KIP-504).

    It takes the place of the `Decider`, which is faster since it knows the connection only.
    """

    def decide(self, context: AuthorizableRequestContext, actions: Sequence[Action]) -> Sequence[Decision]:
        """Return one decision for each action, in order; raise `AuthorizerError` if there is none."""

    def decide_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Return whether it is allowed on some resource of the type; raise `AuthorizerError`."""


class Addresses(Protocol):
    """Where clients find the brokers: always through the gateway."""

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the address to give to clients in place of an upstream broker's own."""


@dataclass(frozen=True, slots=True)
class Check:
    """A question to the authorizer, with Kafka's flags for its audit log."""

    operation: AclOperation
    resource_type: ResourceType
    log_if_allowed: bool = True
    log_if_denied: bool = True


Question: TypeAlias = tuple[Check, str, int]
"""A check, the name that it is about, and how many items of the request hang on it."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision with the action it answers; `listing` when it only filters what a client may see."""

    action: Action
    decision: Decision
    listing: bool
    name: str | None
    """The resource name; None for a question about any resource of the type."""


WrittenAt: TypeAlias = Callable[[int | None], object]
"""Is told at which offset of the metadata log a change begins, None if it is nowhere."""


@dataclass(slots=True)
class Exchange:
    """The state that the steps of one request share. `topic_names` holds the ids resolved for it."""

    header: RequestHeader
    codec: MessageCodec
    request: Message
    decider: Decider
    addresses: Addresses
    auto_creates_topics: bool = True
    """Whether upstream has `auto.create.topics.enable`; assumed where it could not be learnt."""
    fetch_sessions: FetchSessions = field(default_factory=FetchSessions)
    """Those of the connection that the request came by."""
    decided: list[Decided] = field(default_factory=list)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    asker: Asker | None = None
    """Who decides in place of `decider`, if anybody."""
    context: AuthorizableRequestContext | None = None
    """What is known of the request, once it is on its way."""
    is_forwarded: bool = False
    """Whether it came in an Envelope."""
    written_at: WrittenAt | None = None
    """Who waits to be told where the change is that this request makes, if anybody."""

    @property
    def version(self) -> int:
        """The version of the request, and so of its response."""
        return self.header.api_version

    @property
    def response_codec(self) -> MessageCodec:
        """The codec of the response."""
        return response_codec(self.header.api_key, self.header.api_version)

    def allows(self, check: Check, name: str, references: int = 1, *, listing: bool = False) -> bool:
        """Return whether the check passes for this name, and keep the decision for the audit log."""
        if self.asker is not None:
            return self.allows_each([(check, name, references)], listing=listing)[0]
        decision = self.decider.decide(check.operation, check.resource_type, name)
        self.decided.append(Decided(_action(check, name, references), decision, listing, name))
        return decision.allowed

    def allows_each(
        self, questions: Sequence[tuple[Check, str, int]], *, listing: bool = False
    ) -> list[bool]:
        """Return whether each check passes for its name, so often referred to; asked all at once."""
        if self.asker is None:
            return [self.allows(check, name, count, listing=listing) for check, name, count in questions]
        actions = [_action(*question) for question in questions]
        decisions = self.asker.decide(self.known_context(), actions) if actions else ()
        self.decided.extend(
            Decided(action, decision, listing, action.resource_name)
            for action, decision in zip(actions, decisions, strict=True)
        )
        return [decision.allowed for decision in decisions]

    def known_context(self) -> AuthorizableRequestContext:
        """Return what is known of the request; raise `AuthorizerError` where nobody has said it."""
        if self.context is None:
            raise AuthorizerError("nothing is known of the request yet")
        return self.context

    def allows_cluster(self, operation: AclOperation, *, log_if_denied: bool = True) -> bool:
        """Return whether the operation on the cluster is allowed."""
        return self.allows(Check(operation, ResourceType.CLUSTER, log_if_denied=log_if_denied), CLUSTER_NAME)

    def allows_on_some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the operation is allowed on at least one resource of the type."""
        if self.asker is None:
            decision = self.decider.decide_by_resource_type(operation, resource_type)
        else:
            context = self.known_context()
            decision = self.asker.decide_by_resource_type(context, operation, resource_type)
        action = Action(resource_type, "", operation, 0, log_if_allowed=True, log_if_denied=False)
        self.decided.append(Decided(action, decision, listing=False, name=None))
        return decision.allowed

    def allowed_names(self, check: Check, names: Iterable[str], *, listing: bool = False) -> frozenset[str]:
        """Return the names that pass, each asked once with the number of times it occurs."""
        references: dict[str, int] = {}
        for name in names:
            references[name] = references.get(name, 0) + 1
        questions = [(check, name, count) for name, count in references.items()]
        verdicts = self.allows_each(questions, listing=listing)
        return frozenset(name for name, allowed in zip(references, verdicts, strict=True) if allowed)

    def operations_bits(self, resource_type: ResourceType, name: str) -> int:
        """Return the bit field of the supported operations that are allowed on this resource.

        Kafka flags neither result of these for its log. The field is a signed int32.
        """
        operations = SUPPORTED_OPERATIONS[resource_type]
        questions = [
            (Check(operation, resource_type, log_if_allowed=False, log_if_denied=False), name, 1)
            for operation in operations
        ]
        verdicts = self.allows_each(questions, listing=True)
        return sum(1 << operation for operation, allowed in zip(operations, verdicts, strict=True) if allowed)


def _action(check: Check, name: str, references: int) -> Action:
    return Action(
        check.resource_type, name, check.operation, references, check.log_if_allowed, check.log_if_denied
    )
