"""The anomalies, each with its labels: a story gets a label for every kind it shows by construction."""

from collections.abc import Callable, Iterator

from testkit.months import traffic
from testkit.months.lookalikes import Plan, services
from testkit.months.values import Kind, Label, Trail
from testkit.months.world import Principal, Use, World

Labels = Iterator[Label]
GUESSES = ("secret", "salary", "admin", "passwords", "internal", "backup", "keys", "prod", "hr", "tokens")
BRUTE_OPERATIONS = (
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "CLUSTER_ACTION",
    "IDEMPOTENT_WRITE",
)  # fmt: skip


def take(world: World, *roles: str) -> Principal:
    """Return a principal that no other story uses."""
    free = services(world, *roles) or services(world, "steady", "office", "human")
    free[0].is_taken = True
    return free[0]


def working_day(world: World, plan: Plan, one: Principal, spare: int = 3) -> int:
    """Return a day of the window that is a working day of the principal."""
    days = [
        day
        for day in range(plan.first + 1, plan.end - spare)
        if traffic.is_active(world, one, plan.start, day, frozenset())
    ]
    return world.random.choice(days) if days else plan.day(world, spare)


def foreign(world: World, one: Principal) -> list[str]:
    """Return unshared topics of other teams that a principal never used."""
    used = {use.resource[1] for use in one.uses}
    return [
        name
        for team, topics in enumerate(world.topics)
        if team != one.team
        for name in topics[:6]
        if name not in used and name not in world.shared
    ]


def own_host(world: World, one: Principal) -> str:
    """Return a usual address of the principal."""
    return world.host(*one.pools[0])


def label(kind: Kind, one: Principal, hours: list[int]) -> Label:
    """Return the label of an anomaly in these hours."""
    return Label(kind, one.name, min(hours) // 24, max(hours) // 24)


def some(world: World, hours: list[int], most: int) -> list[int]:
    """Return up to `most` consecutive hours."""
    first = world.random.randrange(len(hours))
    return hours[first : first + most]


def first_seen(world: World, trail: Trail, plan: Plan) -> Labels:
    """A principal that reads topics of another team for a day or a few."""
    one = take(world, "steady", "steady", "office", "human")
    day = working_day(world, plan, one)
    days = world.draw(world.ranges.foreign_days)
    names = world.random.sample(foreign(world, one), world.draw(world.ranges.foreign_topics))
    host, seen = own_host(world, one), list[int]()
    for later in range(day, day + days):
        hours = some(world, traffic.hours_of(world, one, later), 4)
        seen += hours
        for name in names:
            at = [(hour, traffic.amount(world, world.rate())) for hour in hours]
            trail.use(one.name, host, "READ", ("TOPIC", name), at)
    yield label("FIRST_SEEN_ACCESS", one, seen)


def new_host(world: World, trail: Trail, plan: Plan) -> Labels:
    """A credential used from another host besides its usual hosts."""
    one = take(world, "steady", "steady", "office", "human")
    day = working_day(world, plan, one)
    host = world.stranger()
    if world.random.random() < 0.3:
        host = world.host((one.team + 1) % len(world.topics), 1)
    seen: list[int] = []
    for later in range(day, day + world.random.randint(1, 2)):
        hours = some(world, traffic.hours_of(world, one, later), 3)
        seen += hours
        for use in world.random.sample(one.uses, k=min(2, len(one.uses))):
            at = [(hour, traffic.amount(world, use.rate * world.random.uniform(0.1, 1))) for hour in hours]
            trail.use(one.name, host, use.operation, use.resource, at)
    yield label("NEW_HOST", one, seen)


def brute_force(world: World, trail: Trail, plan: Plan) -> Labels:
    """Many operations tried on a few resources, repeatedly, and denied."""
    one = take(world, "steady", "office", "human")
    day = working_day(world, plan, one)
    is_elsewhere = world.random.random() < 0.4
    host = world.stranger() if is_elsewhere else own_host(world, one)
    hours = some(world, traffic.hours_of(world, one, day), world.draw(world.ranges.brute_hours))
    operations = world.random.sample(BRUTE_OPERATIONS, k=world.draw(world.ranges.brute_operations))
    resources = [("CLUSTER", "kafka-cluster")]
    resources += [("TOPIC", name) for name in world.random.sample(foreign(world, one), 4)]
    attempts = world.draw(world.ranges.brute_attempts)
    share = attempts / len(operations) / len(resources) / len(hours)
    for operation in operations:
        for resource in resources:
            at = [(hour, traffic.amount(world, share)) for hour in hours]
            trail.use(one.name, host, operation, resource, at, decision="DENIED")
    yield label("BRUTE_FORCE", one, hours)
    if is_elsewhere:
        yield label("NEW_HOST", one, hours)


def misconfiguration(world: World, trail: Trail, plan: Plan) -> Labels:
    """A deployment after which a service lacks an ACL, and retries until somebody adds it."""
    one = take(world, "steady", "steady", "office")
    day = working_day(world, plan, one)
    traffic.deploy(world, one)
    hours = some(world, traffic.hours_of(world, one, day), world.draw(world.ranges.retry_hours))
    lost = [(use.operation, use.resource) for use in one.uses]
    new = [
        ("WRITE", ("TOPIC", world.new_topic(one.team % len(world.topics)))),
        ("READ", ("GROUP", f"{one.name[5:]}{world.separator}v2")),
        ("WRITE", ("TRANSACTIONAL_ID", f"{one.name[5:]}{world.separator}tx")),
    ]
    broken = world.random.sample(lost + new, k=world.random.randint(1, 2))
    rate = world.draw(world.ranges.retries)
    for operation, resource in broken:
        for host in one.hosts:
            at = [(hour, traffic.amount(world, rate / len(one.hosts) / len(broken))) for hour in hours]
            trail.use(one.name, host, operation, resource, at, decision="DENIED")
    yield label("MISSING_RIGHT", one, hours)


def unusual_hours(world: World, trail: Trail, plan: Plan) -> Labels:
    """Work at night, or of an office service at the weekend."""
    one = take(world, "office", "human", "human")
    day = working_day(world, plan, one)
    if one.role == "office" and world.random.random() < 0.4:
        while (plan.start.toordinal() + day) % 7 != 6:  # ordinals of Saturdays
            day = day + 1 if day + 1 < plan.end - 2 else plan.first
        first = day * 24 + world.random.randint(9, 13) - one.zone
    else:
        first = day * 24 + world.random.randint(0, 1) - one.zone
    hours = [first + more for more in range(min(world.draw(world.ranges.night_hours), 3))]
    host = own_host(world, one)
    for use in one.uses[: world.random.randint(1, 3)]:
        at = [(hour, traffic.amount(world, use.rate)) for hour in hours]
        trail.use(one.name, host, use.operation, use.resource, at)
    yield label("UNUSUAL_HOURS", one, hours)


def enumeration(world: World, trail: Trail, plan: Plan) -> Labels:
    """A principal that queries many topics, existing and guessed, once or a few times each."""
    one = take(world, "steady", "office", "human")
    day = working_day(world, plan, one)
    is_elsewhere = world.random.random() < 0.3
    host = world.stranger() if is_elsewhere else own_host(world, one)
    hours = some(world, traffic.hours_of(world, one, day), 3)
    names = [name for team in world.topics for name in team]
    names += [f"{team}{world.separator}{guess}" for team in world.names for guess in GUESSES]
    is_allowed = world.random.random() < 0.4
    for name in world.random.sample(names, k=min(len(names), world.draw(world.ranges.enumerated))):
        at = [(world.random.choice(hours), world.random.randint(1, 3))]
        decision = "ALLOWED" if is_allowed else "DENIED"
        trail.use(one.name, host, "DESCRIBE", ("TOPIC", name), at, decision=decision)
    yield label("TOPIC_ENUMERATION", one, hours)
    if is_elsewhere:
        yield label("NEW_HOST", one, hours)


def super_user(world: World, trail: Trail, plan: Plan) -> Labels:
    """A service that has become a super user, or the brokers' credential that reads data."""
    topic = ("TOPIC", world.random.choice(world.shared))
    if world.random.random() < 0.6:
        one = take(world, "steady", "office", "human")
        host = own_host(world, one)
    else:
        one = next(other for other in world.principals if other.role == "broker")
        host = one.hosts[0]
    day = working_day(world, plan, one)
    hours = some(world, traffic.hours_of(world, one, day), 2)
    uses = [Use("READ", topic, 50.0), Use("ALTER", ("CLUSTER", "kafka-cluster"), 2.0)]
    for use in uses[: world.random.randint(1, 2)]:
        at = [(hour, traffic.amount(world, use.rate)) for hour in hours]
        trail.use(one.name, host, use.operation, use.resource, at, rule_kind="SuperUser")
    yield label("SUPER_USER_USE", one, hours)


def dormant(world: World, trail: Trail, plan: Plan) -> Labels:
    """A credential used again after weeks of disuse."""
    one = take(world, "steady", "office", "human")
    gap = min(world.draw(world.ranges.dormant_days), plan.first - 8)
    day = working_day(world, plan, one)
    one.silent = (day - gap, 10_000)
    is_elsewhere = world.random.random() < 0.4
    host = world.stranger() if is_elsewhere else own_host(world, one)
    hours = some(world, traffic.hours_of(world, one, day), 4)
    for use in one.uses[: world.random.randint(1, 3)]:
        at = [(hour, traffic.amount(world, use.rate)) for hour in hours]
        trail.use(one.name, host, use.operation, use.resource, at)
    yield label("DORMANT_WAKING", one, hours)
    if is_elsewhere:
        yield label("NEW_HOST", one, hours)


INJECTIONS: dict[Kind, Callable[[World, Trail, Plan], Labels]] = {
    "FIRST_SEEN_ACCESS": first_seen,
    "NEW_HOST": new_host,
    "BRUTE_FORCE": brute_force,
    "MISSING_RIGHT": misconfiguration,
    "UNUSUAL_HOURS": unusual_hours,
    "TOPIC_ENUMERATION": enumeration,
    "SUPER_USER_USE": super_user,
    "DORMANT_WAKING": dormant,
}


def inject_all(world: World, trail: Trail, plan: Plan) -> list[Label]:
    """Inject two to four stories of each kind (as the ranges say); return all labels.

    There are fewer if the principals run out: a principal has one story.
    """
    labels: list[Label] = []
    stories = [kind for kind in INJECTIONS for _ in range(world.draw(world.ranges.labels_per_kind))]
    world.random.shuffle(stories)
    for kind in sorted(stories, key=lambda kind: kind != "UNUSUAL_HOURS"):  # few principals have fixed hours
        if services(world, "steady", "office", "human"):
            labels += INJECTIONS[kind](world, trail, plan)
    return labels
