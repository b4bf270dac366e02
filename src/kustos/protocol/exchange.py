"""One request in flight: its message, its requester and its decisions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from kustos.acl import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kustos.authorizer import (
    PASSED,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    AuthorizerError,
    Decision,
    Rule,
    RuleKind,
    ShadowDecision,
)
from kustos.protocol.fetch_sessions import FetchSessions
from kustos.protocol.share_sessions import ShareSessions
from kustos.protocol.subscriptions import Subscriptions, Topologies
from kustos.wire import Message, MessageCodec, RequestHeader, response_codec

ITEMS_PER_TURN: Final = 1000
"""Items of a request processed before yielding the event loop: five milliseconds."""


class Decider(Protocol):
    """The authorizer for one connection, with a fixed principal and host."""

    @property
    def version(self) -> int | None:
        """A version that changes whenever a decision may change; None if the authorizer has no version."""

    def decide(self, operation: AclOperation, resource_type: ResourceType, name: str) -> Decision:
        """Return the decision by the current ACLs; raise `AuthorizerError` if it cannot be made."""

    def decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        """Return whether it is allowed on some resource of the type; raise `AuthorizerError`."""


@dataclass(frozen=True, slots=True)
class UndecidedDecider:
    """Raises an error for every question, since no decision about this principal is possible."""

    error: AuthorizerError
    version: None = None

    def decide(self, _operation: AclOperation, _resource_type: ResourceType, _name: str) -> Decision:
        """Raise the error."""
        raise self.error

    def decide_by_resource_type(self, _operation: AclOperation, _resource_type: ResourceType) -> Decision:
        """Raise the error."""
        raise self.error


AUTHORIZATION_OFF: Final = Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.AUTHORIZATION_OFF))


class OpenDecider:
    """Allows everything: `kustos.authorization.mode=off`, with authentication and audit only."""

    version: Final = 0

    def decide(self, _operation: AclOperation, _resource_type: ResourceType, _name: str) -> Decision:
        """Return that it is allowed."""
        return AUTHORIZATION_OFF

    def decide_by_resource_type(self, _operation: AclOperation, _resource_type: ResourceType) -> Decision:
        """Return that it is allowed."""
        return AUTHORIZATION_OFF


class ContextAuthorizer(Protocol):
    """An authorizer that gets the full context of a request and of each action (KIP-504).

    It replaces the `Decider`, which is faster because its context is the connection alone.
    """

    def decide(self, context: AuthorizableRequestContext, actions: Sequence[Action]) -> Sequence[Decision]:
        """Return one decision for each action, in order; raise `AuthorizerError` if one cannot be made."""

    def decide_by_resource_type(
        self, context: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Return whether it is allowed on some resource of the type; raise `AuthorizerError`."""


class NamedBroker(NamedTuple):
    """A broker as an answer of upstream names it."""

    node_id: int
    host: str
    port: int


class Addresses(Protocol):
    """The advertised addresses of the brokers, which are always addresses of the gateway."""

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the address to advertise in place of an upstream broker's own."""

    @property
    def known(self) -> object:
        """The brokers that the gateway knows, as a new object after each change."""

    def learn(self, brokers: Iterable[NamedBroker]) -> None:
        """Record brokers from an answer of upstream, so that clients can reach them."""


@dataclass(frozen=True, slots=True)
class Check:
    """A question to the authorizer, with Kafka's flags for its audit log.

    Its hash is precomputed, since the items of a request are grouped by it.
    """

    operation: AclOperation
    resource_type: ResourceType
    log_if_allowed: bool = True
    log_if_denied: bool = True
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = (self.operation, self.resource_type, self.log_if_allowed, self.log_if_denied)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash


Question: TypeAlias = tuple[Check, str, int]
"""A check, the resource name, and how many items of the request depend on it."""


class Decided(NamedTuple):
    """A decision and its action; `listing`: the decision only filters a list that the client gets."""

    action: Action
    decision: Decision
    listing: bool
    name: str | None
    """The resource name; None for a question about any resource of the type."""
    distinct_names: int | None = None
    """The number of names decided together; None for a decision on one."""
    decision_count: int | None = None
    """The number of decisions that a summary stands for; None for one decision."""
    shadow: ShadowDecision | None = None
    """The decision of the ACLs, if they deny an action that the listener allows nevertheless."""
    candidate: ShadowDecision | None = None
    """The decision of the candidate ACLs, if it differs from the decision of the ACLs."""

    @property
    def is_first_check(self) -> bool:
        """Whether a denial has no effect, since a later question decides.

        Kafka first checks IDEMPOTENT_WRITE, CREATE or DELETE on the cluster, with `logIfDenied` false, and
        then the needed resource. A question about any resource of a type is always the last question: its
        denial refuses the request, though Kafka does not log it.
        """
        return not (self.action.log_if_denied or self.listing or self.name is None)

    @property
    def is_probe(self) -> bool:
        """Whether it is a denial without effect."""
        return not self.decision.allowed and self.is_first_check


WrittenAt: TypeAlias = Callable[[int | None], object]
"""Callback with the offset at which a change begins in the metadata log, None if it is not in the log."""


class Recorder(Protocol):
    """Records and counts the decisions of a plan for each request that repeats the planned one."""

    def record(self, correlation_id: int, latency_us: int) -> bool:
        """Record the decisions before the request is sent; return False if it must be opened instead.

        `latency_us`: microseconds since the request was read. Raises as `Observer.decided` does.
        """

    def count(self) -> None:
        """Count the decisions after the request was sent."""


@dataclass(slots=True)
class Exchange:
    """The state that the steps of one request share. `topic_names`: resolved topic id → name."""

    header: RequestHeader
    codec: MessageCodec
    request: Message
    decider: Decider
    context: AuthorizableRequestContext
    addresses: Addresses
    auto_creates_topics: bool = True
    """Whether upstream has `auto.create.topics.enable`; assumed if unknown."""
    fetch_sessions: FetchSessions = field(default_factory=FetchSessions)
    """The fetch sessions of the request's connection."""
    share_sessions: ShareSessions = field(default_factory=ShareSessions)
    """The share sessions of the request's connection."""
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    """The subscriptions of the consumer group members on the connection."""
    topologies: Topologies = field(default_factory=Topologies)
    """The internal topics of the streams groups that have members on the connection."""
    decided: list[Decided] = field(default_factory=list)
    granted: list[Decided] = field(default_factory=list)
    """Every decision that allows a part of the request or a name in its answer, whether logged or not."""
    topic_names: dict[bytes, str] = field(default_factory=dict)
    context_authorizer: ContextAuthorizer | None = None
    """Replaces `decider`, if set."""
    is_forwarded: bool = False
    """Whether the request arrived in an Envelope."""
    written_at: WrittenAt | None = None
    """If set, called with the metadata log offset of the change that this request makes."""
    turn_room: int = ITEMS_PER_TURN
    """Items left to process before yielding the event loop; see `turns`."""
    since_version: int | None = None
    """The decider's version before the first decision, None if unknown."""
    is_shadow: bool = False
    """Whether denials by the ACLs are only recorded, not enforced."""
    changed: str | None = None
    """The name of the changed resource, if neither request nor answer has it."""
    brokers: list[NamedBroker] = field(default_factory=list)
    """The brokers that upstream's answer named."""

    @property
    def version(self) -> int:
        """The API version of the request and of its response."""
        return self.header.api_version

    @property
    def decider_version(self) -> int | None:
        """The version of the decider; None if it has no version, so its decisions may change at any time."""
        return None if self.context_authorizer is not None else self.decider.version

    @property
    def response_codec(self) -> MessageCodec:
        """The codec of the response."""
        return response_codec(self.header.api_key, self.header.api_version)

    def advertise(self, item: Any, node_id: int) -> None:
        """Replace a broker's address in upstream's answer with the gateway's, and record the broker."""
        broker = NamedBroker(node_id, item.host, item.port)
        item.host, item.port = self.addresses.advertised(*broker)
        self.addresses.learn((broker,))
        self.brokers.append(broker)

    def allows(self, check: Check, name: str, references: int = 1, *, listing: bool = False) -> bool:
        """Return whether the check passes for this name; keep the decision for the audit log."""
        if self.context_authorizer is not None:
            return self.allows_each([(check, name, references)], listing=listing)[0]
        action = _action(check, name, references)
        try:
            decision = self.decider.decide(check.operation, check.resource_type, name)
        except AuthorizerError as error:
            return self._pass_undecided(action, error, listing=listing, name=name)
        return self._note(Decided(action, decision, listing, name))

    def _note(self, decided: Decided) -> bool:
        """Keep a decision; return whether it allows.

        In shadow mode everything passes except probes: the denial of a probe leads to the question that
        decides, which would otherwise never be asked.
        """
        allowed = decided.decision.allowed
        if not allowed and self.is_shadow and not decided.is_probe:
            decided = decided._replace(decision=PASSED, shadow=ShadowDecision(decided.decision))
            allowed = True
        self.decided.append(decided)
        if allowed:
            self.granted.append(decided)
        return allowed

    def _pass_undecided(
        self, action: Action, error: AuthorizerError, *, listing: bool, name: str | None
    ) -> bool:
        """In shadow mode, allow an action that the ACLs could not decide; otherwise raise the error."""
        if not self.is_shadow:
            raise error
        failed = ShadowDecision(None, type(error).__name__)
        return self._note(Decided(action, PASSED, listing, name, shadow=failed))

    def is_still_allowed(self) -> bool:
        """Return whether every decision that allowed the request would still allow it."""
        if self.is_shadow:
            return True
        authorizer = self.context_authorizer
        if authorizer is None:
            return are_still_allowed(self.granted, self.decider, self.since_version)
        try:
            return all(self._decide_again(authorizer, decided).allowed for decided in self.granted)
        except AuthorizerError:
            return False

    def _decide_again(self, authorizer: ContextAuthorizer, decided: Decided) -> Decision:
        action = decided.action
        if decided.name is None:
            return self._decide_by_resource_type(action.operation, action.resource_type)
        return authorizer.decide(self.context, [action])[0]

    def allows_each(
        self, questions: Sequence[tuple[Check, str, int]], *, listing: bool = False
    ) -> list[bool]:
        """Return whether each check passes for its name; all checks are decided at once."""
        if self.context_authorizer is None:
            return [self.allows(check, name, count, listing=listing) for check, name, count in questions]
        actions = [_action(*question) for question in questions]
        try:
            decisions = self.context_authorizer.decide(self.context, actions) if actions else ()
        except AuthorizerError as error:
            return [
                self._pass_undecided(action, error, listing=listing, name=action.resource_name)
                for action in actions
            ]
        return [
            self._note(Decided(action, decision, listing, action.resource_name))
            for action, decision in zip(actions, decisions, strict=True)
        ]

    def allows_cluster(self, operation: AclOperation, *, log_if_denied: bool = True) -> bool:
        """Return whether the operation on the cluster is allowed."""
        return self.allows(Check(operation, ResourceType.CLUSTER, log_if_denied=log_if_denied), CLUSTER_NAME)

    def allows_on_some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the operation is allowed on at least one resource of the type."""
        action = Action(resource_type, "", operation, 0, log_if_allowed=True, log_if_denied=False)
        try:
            decision = self._decide_by_resource_type(operation, resource_type)
        except AuthorizerError as error:
            return self._pass_undecided(action, error, listing=False, name=None)
        return self._note(Decided(action, decision, listing=False, name=None))

    def _decide_by_resource_type(self, operation: AclOperation, resource_type: ResourceType) -> Decision:
        if self.context_authorizer is None:
            return self.decider.decide_by_resource_type(operation, resource_type)
        return self.context_authorizer.decide_by_resource_type(self.context, operation, resource_type)

    def operations_bits(self, resource_type: ResourceType, name: str) -> int:
        """Return the bit field of the supported operations that are allowed on this resource.

        Kafka logs neither allowed nor denied results of these checks. The field is a signed int32. It reports
        the rights at that moment and grants nothing.
        """
        granted = len(self.granted)
        operations = SUPPORTED_OPERATIONS[resource_type]
        questions = [
            (Check(operation, resource_type, log_if_allowed=False, log_if_denied=False), name, 1)
            for operation in operations
        ]
        verdicts = self.allows_each(questions, listing=True)
        del self.granted[granted:]
        return sum(1 << operation for operation, allowed in zip(operations, verdicts, strict=True) if allowed)


def are_still_allowed(granted: Iterable[Decided], decider: Decider, since_version: int | None) -> bool:
    """Return whether the decider would still allow what it granted at this version."""
    if since_version is not None and since_version == decider.version:
        return True
    try:
        return all(_decided_again(decided, decider).allowed for decided in granted)
    except AuthorizerError:
        return False


def _decided_again(decided: Decided, decider: Decider) -> Decision:
    action = decided.action
    if decided.name is None:
        return decider.decide_by_resource_type(action.operation, action.resource_type)
    return decider.decide(action.operation, action.resource_type, decided.name)


def _action(check: Check, name: str, references: int) -> Action:
    return Action(
        check.resource_type, name, check.operation, references, check.log_if_allowed, check.log_if_denied
    )
