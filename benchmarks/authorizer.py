"""kustos against Kafka's Java StandardAuthorizer: the same ACLs, the same questions, one thread each.

Ours is the session call that the gateway makes, cold: sessions are open, but no question of a round was
asked of them before, so every answer comes from the index and none from a session's memory. Theirs is
warmed up until its compiler has settled, gets its arguments ready-made and builds no audit line. Both
answer every question and the answers are compared. Figures are medians over rounds, of nanoseconds a
decision.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from uuid import UUID

from benchmarks.figures import QUICK, Figure, emit, measure, median_per_item, progress
from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import AuthorizerSession, Decision, StandardAuthorizer
from tests.differential.oracle import Oracle
from tests.differential.worlds import Add, Ask, Start, Step, to_lines

ROUNDS = 11
WARM_UP_MS = 1500 if QUICK else 6000
SHRINK = 10 if QUICK else 1
"""A quick run has a tenth of the ACLs."""

ASKED = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER]
DOMAINS = ["orders", "payments", "billing", "clicks", "users", "inventory", "shipping", "audit"]
HOST = "10.1.2.3"


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of both sides."""

    name: str
    bindings: list[AclBinding]
    questions: list[Ask]


def acl(name: str, principal: str, **more: object) -> AclBinding:
    """Make one ACL of a topic; what is not said is LITERAL, any host, READ, ALLOW."""
    operation, permission = more.get("operation", AclOperation.READ), more.get("permission")
    pattern_type, host = more.get("pattern_type", PatternType.LITERAL), more.get("host", "*")
    assert isinstance(operation, AclOperation)
    assert isinstance(pattern_type, PatternType)
    entry = AccessControlEntry(
        principal,
        str(host),
        operation,
        AclPermissionType.DENY if permission is AclPermissionType.DENY else AclPermissionType.ALLOW,
    )
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, pattern_type), entry)


def literal(rng: random.Random) -> Load:
    """10,000 literal ACLs: 500 principals with 20 topics each; a fifth of the questions is for others'."""
    count = 10_000 // SHRINK
    topics = [f"{rng.choice(DOMAINS)}.{number % 97}.events-{number}" for number in range(count)]
    owners = [f"User:service-{number % (count // 20)}" for number in range(count)]
    bindings = [
        acl(topic, owner, operation=rng.choice(ASKED[:2]))
        for topic, owner in zip(topics, owners, strict=True)
    ]
    questions = []
    for number in rng.choices(range(count), k=20_000):
        owner = owners[number] if rng.random() < 0.8 else rng.choice(owners)
        questions.append(Ask(owner, HOST, rng.choice(ASKED), ResourceType.TOPIC, topics[number]))
    return Load("authorize-literal-10k", bindings, questions)


def prefixed(rng: random.Random) -> Load:
    """20,000 prefixed ACLs: 1,000 principals with 20 prefixes of three depths each."""
    count = 20_000 // SHRINK
    prefixes = []
    for number in range(count):
        team = f"{rng.choice(DOMAINS)}.team-{number % 499}."
        prefixes.append(team + rng.choice(["", f"app-{number}.", f"app-{number}.stage-{number % 7}."]))
    owners = [f"User:service-{number % (count // 20)}" for number in range(count)]
    distinct = dict.fromkeys(zip(prefixes, owners, strict=True))
    bindings = [
        acl(prefix, owner, operation=rng.choice(ASKED[:2]), pattern_type=PatternType.PREFIXED)
        for prefix, owner in distinct
    ]
    questions = []
    for prefix, owner in rng.choices(list(distinct), k=20_000):
        asker = owner if rng.random() < 0.8 else rng.choice(owners)
        name = f"{prefix}events-{rng.randrange(1000)}"
        questions.append(Ask(asker, HOST, rng.choice(ASKED), ResourceType.TOPIC, name))
    return Load("authorize-prefixed-20k", bindings, questions)


def zipf(rng: random.Random) -> Load:
    """100,000 ACLs on 20,000 topics of Zipf popularity for 2,000 principals.

    Nine in ten patterns are literal, the rest prefixes; of the entries 5 % deny, 3 % name a host or a
    range, 0.5 % are for everybody, and 20 are on all topics.
    """
    count = 100_000 // SHRINK
    topics = [f"{rng.choice(DOMAINS)}.{number % 997}.events-{number}" for number in range(count // 5)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(topics))))
    principals = [f"User:service-{number}" for number in range(count // 50)]
    distinct: dict[AclBinding, None] = {}
    while len(distinct) < count - 20:
        [topic] = rng.choices(topics, cum_weights=weights)
        is_prefix = rng.random() < 0.1
        binding = acl(
            topic[: rng.randint(6, len(topic))] if is_prefix else topic,
            "User:*" if rng.random() < 0.005 else rng.choice(principals),
            pattern_type=PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
            host=rng.choice(["10.1.2.3", "10.0.0.0/8", "10.9.9.9"]) if rng.random() < 0.03 else "*",
            operation=rng.choice([*ASKED, AclOperation.ALL]),
            permission=AclPermissionType.DENY if rng.random() < 0.05 else None,
        )
        distinct[binding] = None
    for principal in rng.sample(principals, 20):
        distinct[acl("*", principal, operation=AclOperation.DESCRIBE)] = None
    questions = [
        Ask(rng.choice(principals), HOST, rng.choice(ASKED), ResourceType.TOPIC, topic)
        for topic in rng.choices(topics, cum_weights=weights, k=20_000)
    ]
    return Load("authorize-zipf-100k", list(distinct), questions)


def by_resource_type(load: Load, rng: random.Random) -> Load:
    """Ask about any topic at all, over the same ACLs."""
    askers = [question.principal for question in load.questions]
    questions = [
        Ask(asker, HOST, rng.choice([*ASKED, AclOperation.CREATE]), ResourceType.TOPIC, None)
        for asker in rng.sample(askers, 200)
    ]
    return Load("by-resource-type-zipf-100k", load.bindings, list(dict.fromkeys(questions)))


def steps(load: Load) -> Iterator[Step]:
    yield Start("", default_allow=False)
    yield from (Add(number, binding) for number, binding in enumerate(load.bindings))


def theirs(load: Load, oracle: Oracle) -> tuple[str, list[int]]:
    lines = [*to_lines(list(steps(load)))]
    lines += ["question\t" + line.split("\t", 1)[1] for line in to_lines(list(load.questions))]
    [reply] = oracle.answers([*lines, f"time\t{ROUNDS}\t{WARM_UP_MS}"])
    answers, *durations = reply.split("\t")
    return answers, [int(duration) for duration in durations]


def ours(load: Load) -> tuple[str, list[int]]:
    authorizer = StandardAuthorizer()
    authorizer.load_snapshot((UUID(int=number), binding) for number, binding in enumerate(load.bindings))
    authorizer.complete_initial_load()
    decisions: list[Decision] = []

    def prepare() -> Callable[[], None]:
        sessions: dict[str, AuthorizerSession] = {}
        for question in load.questions:
            if question.principal not in sessions:
                session = authorizer.session(KafkaPrincipal.parse(question.principal), question.host)
                for operation in AclOperation:
                    if operation > AclOperation.ANY:
                        session.decide(operation, ResourceType.TOPIC, "asked-before")
                sessions[question.principal] = session
        plan = [
            (sessions[question.principal], question.operation, question.resource_type, question.name or "")
            for question in load.questions
        ]
        is_by_type = load.questions[0].name is None

        def ask() -> None:
            decisions[:] = [s.decide(operation, kind, name) for s, operation, kind, name in plan]

        def ask_by_type() -> None:
            decisions[:] = [s.decide_by_resource_type(operation, kind) for s, operation, kind, _ in plan]

        return ask_by_type if is_by_type else ask

    durations = measure(prepare, ROUNDS)
    return "".join("A" if decision.allowed else "D" for decision in decisions), durations


def distinct_questions(load: Load) -> Load:
    """Keep one of each question, so that a session meets none twice in a round."""
    return Load(load.name, load.bindings, list(dict.fromkeys(load.questions)))


def compare(load: Load) -> Figure:
    progress(f"{load.name}: {len(load.bindings)} ACLs, {len(load.questions)} questions")
    mine, my_durations = ours(load)
    # started only now: a virtual machine that warms up would be measured with us
    with Oracle() as oracle:
        their, their_durations = theirs(load, oracle)
    if mine != their:
        raise SystemExit(f"{load.name}: the two authorizers answer differently")
    figure = Figure(
        name=load.name,
        unit="ns/decision",
        ours=median_per_item(my_durations, len(load.questions)),
        theirs=median_per_item(their_durations, len(load.questions)),
        size=len(load.bindings),
    )
    allowed = mine.count("A") / len(mine)
    nanos = f"ours {figure.ours:.0f} ns, Java {figure.theirs:.0f} ns"
    progress(f"  {nanos}: {figure.ratio:.1f} times, {allowed:.0%} allowed")
    return figure


def main() -> None:
    rng = random.Random(20_26)
    mixed = zipf(rng)
    loads = [literal(rng), prefixed(rng), mixed, by_resource_type(mixed, rng)]
    emit([compare(distinct_questions(load)) for load in loads])


if __name__ == "__main__":
    main()
