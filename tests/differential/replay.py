"""Runs a world's steps through kustos, the specification or Kafka, all answering in the same words."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from kustos.acl import AclBinding, KafkaPrincipal
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizerSession,
    Decision,
    StandardAuthorizer,
    parse_super_users,
)
from tests.differential.oracle import Oracle
from tests.differential.spec import Spec
from tests.differential.worlds import Add, Ask, Remove, Snapshot, Start, Step, to_lines

AuthorizerFactory = Callable[[frozenset[str], bool], StandardAuthorizer]


def real_authorizer(super_users: frozenset[str], default_allow: bool) -> StandardAuthorizer:
    return StandardAuthorizer(super_users=super_users, allow_everyone_if_no_acl_found=default_allow)


def answers_of_kustos(steps: Iterable[Step], make: AuthorizerFactory = real_authorizer) -> list[str]:
    """Ask sessions that live as long as the world, and for some hosts the interface itself."""
    answers: list[str] = []
    authorizer = make(frozenset(), False)
    sessions: dict[tuple[str, str], AuthorizerSession] = {}
    for step in steps:
        match step:
            case Start(super_users, default_allow):
                authorizer = make(parse_super_users(super_users), default_allow)
                authorizer.complete_initial_load()
                sessions = {}
            case Add(number, binding):
                authorizer.add_acl(UUID(int=number), binding)
            case Remove(number):
                authorizer.remove_acl(UUID(int=number))
            case Snapshot(acls):
                authorizer.load_snapshot((UUID(int=acl.number), acl.binding) for acl in acls)
            case Ask():
                through_interface = step.host.endswith("2")
                answers.append(_ask(authorizer, sessions, step, through_interface=through_interface))
    return answers


def _ask(
    authorizer: StandardAuthorizer,
    sessions: dict[tuple[str, str], AuthorizerSession],
    ask: Ask,
    *,
    through_interface: bool,
) -> str:
    principal = KafkaPrincipal.parse(ask.principal)
    if through_interface:
        context = AuthorizableRequestContext(principal, ask.host)
        if ask.name is None:
            decision = authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
        else:
            [decision] = authorizer.authorize(context, [Action(ask.resource_type, ask.name, ask.operation)])
    else:
        session = sessions.get((ask.principal, ask.host))
        if session is None:
            session = sessions[ask.principal, ask.host] = authorizer.session(principal, ask.host)
        if ask.name is None:
            decision = session.decide_by_resource_type(ask.operation, ask.resource_type)
        else:
            decision = session.decide(ask.operation, ask.resource_type, ask.name)
    return _words(decision, ask)


def _words(decision: Decision, ask: Ask) -> str:
    return decision.result.value if ask.name is None else f"{decision.result.value}\t{decision.rule}"


def answers_of_spec(steps: Iterable[Step]) -> list[str]:
    answers: list[str] = []
    acls: dict[int, AclBinding] = {}
    spec = Spec(acls.values())
    for step in steps:
        match step:
            case Start(super_users, default_allow):
                acls = {}
                spec = Spec(acls.values(), parse_super_users(super_users), default_allow)
            case Add(number, binding):
                acls[number] = binding
            case Remove(number):
                del acls[number]
            case Snapshot(snapshot):
                acls.clear()
                acls.update({acl.number: acl.binding for acl in snapshot})
            case Ask(principal, host, operation, resource_type, None):
                allowed = spec.by_resource_type(principal, host, operation, resource_type)
                answers.append("ALLOWED" if allowed else "DENIED")
            case Ask(principal, host, operation, resource_type, name):
                allowed, rule = spec.authorize(principal, host, operation, resource_type, name or "")
                text = rule if isinstance(rule, str) else f"MatchingAcl(acl={rule.audit_text()})"
                answers.append(f"{'ALLOWED' if allowed else 'DENIED'}\t{text}")
    return answers


def answers_of_kafka(steps: list[Step], oracle: Oracle) -> list[str]:
    return oracle.answers(list(to_lines(steps)))


def first_difference(steps: Sequence[Step], left: Sequence[str], right: Sequence[str]) -> str | None:
    """Return what a person needs to see of the first question answered differently, None if none is."""
    asks = [index for index, step in enumerate(steps) if isinstance(step, Ask)]
    if len(asks) != len(left) or len(asks) != len(right):
        return f"{len(asks)} questions, {len(left)} and {len(right)} answers"
    for index, mine, theirs in zip(asks, left, right, strict=True):
        if mine != theirs:
            return f"step {index}: {steps[index]}\n  here  {mine}\n  there {theirs}"
    return None
