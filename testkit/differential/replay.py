"""Runs a world's steps through kustos, the specification or Kafka, all answering in the same words."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from kustos.acl import AclBinding, AclValueError, host_matches
from kustos.authorizer import (
    AclFaultError,
    Action,
    AuthorizableRequestContext,
    AuthorizerNotReadyError,
    AuthorizerSession,
    Decision,
    InvalidActionError,
    StandardAuthorizer,
    parse_super_users,
)
from kustos.authorizer.replacement import dismantle, prepared, put_in_force
from kustos.metadata.control import ApiError, codes_error, filter_error, texts_error
from kustos.wire import ErrorCode
from testkit.differential.oracle import Oracle
from testkit.differential.specification import Spec
from testkit.differential.worlds import (
    Acls,
    Add,
    Ask,
    Change,
    Cidr,
    Configure,
    Fault,
    New,
    Question,
    Ready,
    Remove,
    Snapshot,
    Start,
    Step,
    binding_of,
    principal_of,
    to_lines,
)

AuthorizerFactory = Callable[[frozenset[str], bool], StandardAuthorizer]

NOT_READY = "ERROR\tAuthorizerNotReadyException"
EVERYBODY = "ERROR\tIllegalArgumentException"
SEPARATOR = "\x1f"
"""Between the ACLs of a listing."""

NO_OPINION = "NO OPINION"
"""The specification's answer to what is held against Kafka alone."""

EXCEPTIONS = {
    ErrorCode.invalid_request: "InvalidRequestException",
    ErrorCode.unsupported_version: "UnsupportedVersionException",
}


def real_authorizer(super_users: frozenset[str], default_allow: bool) -> StandardAuthorizer:
    return StandardAuthorizer(super_users=super_users, allow_everyone_if_no_acl_found=default_allow)


class Kustos:
    """Asks sessions that live as long as the world, and for some hosts the interface itself."""

    def __init__(self, make: AuthorizerFactory) -> None:
        self._make = make
        self._authorizer = make(frozenset(), False)
        self._sessions: dict[tuple[str, str], AuthorizerSession] = {}

    def change(self, step: Change) -> None:
        match step:
            case Start(super_users, default_allow, ready):
                self._authorizer = self._make(parse_super_users(super_users), default_allow)
                self._sessions = {}
                if ready:
                    self._authorizer.complete_initial_load()
            case Ready():
                self._authorizer.complete_initial_load()
            case Configure(super_users, default_allow):
                self._authorizer.reconfigure(
                    super_users=parse_super_users(super_users), allow_everyone_if_no_acl_found=default_allow
                )
            case Add(number, binding):
                self._authorizer.add_acl(UUID(int=number), binding)
            case Remove(number):
                self._authorizer.remove_acl(UUID(int=number))
            case Snapshot(acls):
                bindings = [(UUID(int=acl.number), acl.binding) for acl in acls]
                if self._make is real_authorizer and len(acls) % 2:
                    # as a node does while it serves: prepared aside, put in force as one step
                    fresh = prepared(self._authorizer, bindings)
                    assert put_in_force(self._authorizer, fresh)
                    dismantle(fresh)
                else:
                    self._authorizer.load_snapshot(bindings)

    def answer(self, step: Question) -> str:
        match step:
            case Ask():
                try:
                    decision = self._ask(step)
                except AuthorizerNotReadyError:
                    return NOT_READY
                except InvalidActionError:
                    return EVERYBODY
                result = decision.result.value
                return result if step.name is None else f"{result}\t{decision.rule}"
            case Acls(asked):
                return f"{_verdict(filter_error(asked))}\t{_listing(self._authorizer.acls(asked))}"
            case Fault(change):
                try:
                    self.change(change)
                except AclFaultError:
                    return "FAULT"
                return "OK"
            case New():
                return _verdict_on_new(step)
            case Cidr(host, pattern):
                return str("/" in pattern and host_matches(pattern, host)).lower()

    def _ask(self, ask: Ask) -> Decision:
        principal = principal_of(ask.principal)
        if ask.host.endswith("2"):
            context = AuthorizableRequestContext(principal, ask.host)
            if ask.name is None:
                return self._authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
            action = Action(ask.resource_type, ask.name, ask.operation)
            [decision] = self._authorizer.authorize(context, [action])
            return decision
        session = self._sessions.get((ask.principal, ask.host))
        if session is None:
            session = self._authorizer.session(principal, ask.host)
            self._sessions[ask.principal, ask.host] = session
        if ask.name is None:
            return session.decide_by_resource_type(ask.operation, ask.resource_type)
        return session.decide(ask.operation, ask.resource_type, ask.name)


def _listing(found: Iterable[AclBinding]) -> str:
    return SEPARATOR.join(sorted(binding.audit_text() for binding in found))


def _verdict_on_new(step: New) -> str:
    """Say what the controller's check says; what has no binding it never sees."""
    try:
        binding = binding_of(step.fields)
    except AclValueError:
        return "IMPOSSIBLE"
    pattern, entry = binding.pattern, binding.entry
    codes = (pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type)
    return _verdict(codes_error(*codes) or texts_error(pattern.name, entry.principal, entry.host, step.level))


def _verdict(error: ApiError | None) -> str:
    return "OK" if error is None else f"{EXCEPTIONS[error.code]}: {error.message}"


def answers_of_kustos(steps: Iterable[Step], make: AuthorizerFactory = real_authorizer) -> list[str]:
    kustos = Kustos(make)
    answers: list[str] = []
    for step in steps:
        if isinstance(step, Question):
            answers.append(kustos.answer(step))
        else:
            kustos.change(step)
    return answers


class Specified:
    """The specification, step by step."""

    def __init__(self) -> None:
        self._acls: dict[int, AclBinding] = {}
        self._spec = Spec(self._acls.values())
        self._is_ready = False

    def change(self, step: Change) -> None:
        match step:
            case Start(super_users, default_allow, ready):
                self._acls = {}
                self._configure(super_users, default_allow)
                self._is_ready = ready
            case Ready():
                self._is_ready = True
            case Configure(super_users, default_allow):
                self._configure(super_users, default_allow)
            case Add(number, binding):
                self._acls[number] = binding
            case Remove(number):
                del self._acls[number]
            case Snapshot(snapshot):
                self._acls.clear()
                self._acls.update({acl.number: acl.binding for acl in snapshot})

    def _configure(self, super_users: str, default_allow: bool) -> None:
        self._spec = Spec(self._acls.values(), parse_super_users(super_users), default_allow)

    def answer(self, step: Question) -> str:
        match step:
            case Ask():
                return self._ask(step)
            case Acls(asked):
                wrong = "pattern" if asked.pattern_filter.is_unknown else "entry"
                verdict = f"InvalidRequestException: Unknown {wrong}Filter." if asked.is_unknown else "OK"
                return f"{verdict}\t{_listing(self._spec.listed(asked))}"
            case Fault():
                return "FAULT"
            case _:
                return NO_OPINION

    def _ask(self, ask: Ask) -> str:
        question = (ask.principal, ask.host, ask.operation, ask.resource_type)
        if str(principal_of(ask.principal)) not in self._spec.super_users:
            if not self._is_ready:
                return NOT_READY
            if str(principal_of(ask.principal)) == "User:*":
                return EVERYBODY
        if ask.name is None:
            return "ALLOWED" if self._spec.by_resource_type(*question) else "DENIED"
        allowed, rule = self._spec.authorize(*question, ask.name)
        text = rule if isinstance(rule, str) else f"MatchingAcl(acl={rule.audit_text()})"
        return f"{'ALLOWED' if allowed else 'DENIED'}\t{text}"


def answers_of_spec(steps: Iterable[Step]) -> list[str]:
    specified = Specified()
    answers: list[str] = []
    for step in steps:
        if isinstance(step, Question):
            answers.append(specified.answer(step))
        else:
            specified.change(step)
    return answers


def answers_of_kafka(steps: list[Step], oracle: Oracle) -> list[str]:
    return as_listed(steps, oracle.answers(list(to_lines(steps))))


def as_listed(steps: Iterable[Step], replies: Iterable[str]) -> list[str]:
    """Return Kafka's replies with the ACLs of listings in our order; they have none of their own."""
    questions = (step for step in steps if isinstance(step, Question))
    return [
        _sorted_listing(reply) if isinstance(question, Acls) else reply
        for question, reply in zip(questions, replies, strict=False)
    ]


def _sorted_listing(reply: str) -> str:
    verdict, _, listing = reply.partition("\t")
    return "\t".join([verdict, SEPARATOR.join(sorted(listing.split(SEPARATOR)))])


def first_difference(steps: Sequence[Step], left: Sequence[str], right: Sequence[str]) -> str | None:
    """Return what a person needs to see of the first question answered differently, None if none is."""
    asked = [index for index, step in enumerate(steps) if isinstance(step, Question)]
    if len(asked) != len(left) or len(asked) != len(right):
        return f"{len(asked)} questions, {len(left)} and {len(right)} answers"
    for index, mine, theirs in zip(asked, left, right, strict=True):
        if mine != theirs and theirs != NO_OPINION:
            return f"step {index}: {steps[index]}\n  here  {mine}\n  there {theirs}"
    return None
