"""Changes that look like anomalies but are none; planned first, then played out."""

from dataclasses import dataclass
from datetime import date

from testkit.months import traffic
from testkit.months.values import Trail
from testkit.months.world import Principal, Use, World, service, topic_uses


@dataclass(slots=True)
class Plan:
    """The time frame of the story: the window's first day, and the day after its last."""

    start: date
    first: int
    end: int

    def day(self, world: World, spare: int = 1) -> int:
        """Return a day of the window with `spare` days after it."""
        return world.random.randint(self.first, self.end - 1 - spare)


def services(world: World, *roles: str) -> list[Principal]:
    """Return programs with these roles that no story uses yet, in random order."""
    free = [one for one in world.principals if one.role in roles and not one.is_taken and not one.is_super]
    world.random.shuffle(free)
    return free


def late_uses(world: World, trail: Trail, plan: Plan, one: Principal, uses: list[Use], day: int) -> None:
    """Give a principal additional uses from a day on, on its working days."""
    for later in range(day, plan.end):
        if traffic.is_active(world, one, plan.start, later, frozenset()):
            traffic.do_uses(world, trail, one, uses, traffic.hours_of(world, one, later))


def onboarding(world: World, plan: Plan) -> None:
    """New services of existing teams, and one that replaces another."""
    for number in range(world.draw(world.ranges.look_alikes)):
        one = service(world, world.random.randrange(len(world.topics)), 200 + number, "steady")
        one.first_day, one.is_taken = plan.day(world), True
        world.principals.append(one)


def networks(world: World, plan: Plan) -> None:
    """A pool that grows into its team's next network, and a team that moves to other networks."""
    random = world.random
    moving, growing = random.sample(range(len(world.topics)), 2)
    day = plan.day(world)
    for one in services(world, "steady", "office", "nightly"):
        if one.team in (moving, growing):
            one.is_taken = True
            pools = [(100 + moving, 1)] if one.team == moving else [*one.pools, (growing, 3), (growing, 4)]
            move(world, one, day, pools)


def changed(world: World, one: Principal, day: int) -> Principal:
    """Return the successor that replaces a principal from `day` on, to give it other habits."""
    other = Principal(**{name: getattr(one, name) for name in one.__slots__})
    one.last_day, other.first_day = day - 1, day
    world.principals.append(other)
    return other


def move(world: World, one: Principal, day: int, pools: list[tuple[int, int]]) -> None:
    """Move a principal to other pools from `day` on."""
    moved = changed(world, one, day)
    moved.pools, moved.hosts = pools, list(one.hosts)
    traffic.deploy(world, moved)


def new_topics(world: World, trail: Trail, plan: Plan) -> None:
    """Deployments: new topics, also many at once; more of one's own team; another team's topic for good."""
    random = world.random
    for number, one in enumerate(services(world, "steady")[: world.draw(world.ranges.look_alikes) + 2]):
        one.is_taken = True
        day = plan.day(world, spare=7)
        count = random.randint(10, 25) if number == 0 else random.randint(1, 3)
        names = [world.new_topic(one.team) for _ in range(count)]
        uses = [Use(random.choice(("READ", "WRITE")), ("TOPIC", name), world.rate()) for name in names]
        late_uses(world, trail, plan, one, uses, day)
        crawler = next(other for other in world.principals if other.role == "crawler")
        crawled = [Use("DESCRIBE", ("TOPIC", name), 1.0) for name in names]
        late_uses(world, trail, plan, crawler, crawled, day + 1)
    for one in services(world, "steady", "office")[: world.draw(world.ranges.look_alikes)]:
        one.is_taken = True
        day = plan.day(world, spare=7)
        late_uses(world, trail, plan, one, topic_uses(world, one.team, one.name[5:]), day)
    for one in services(world, "steady", "office")[: world.draw(world.ranges.look_alikes)]:
        one.is_taken = True
        others = [name for team, topics in enumerate(world.topics) if team != one.team for name in topics[:6]]
        group = f"{one.name[5:]}{world.separator}import"
        uses = [
            Use("READ", ("TOPIC", random.choice(others)), world.rate()),
            Use("READ", ("GROUP", group), world.rate()),
        ]
        late_uses(world, trail, plan, one, uses, plan.day(world, spare=7))


def late_hours(world: World, trail: Trail, plan: Plan) -> None:
    """Long evenings, a night of work for several people, and clocks set an hour ahead."""
    random = world.random
    people = services(world, "human")
    for one in people[:2]:
        day = plan.day(world)
        hour = day * 24 + one.hours[-1] + 1 - one.zone
        traffic.do_uses(world, trail, one, one.uses, [hour, hour + 1])
    night = (plan.day(world) + 1) * 24 + random.randint(0, 2) - world.zones[0]
    for one in people[: random.randint(3, 5)]:
        one.is_taken = True  # a night worker must not also be silent for weeks in another story
        traffic.do_uses(world, trail, one, one.uses, [night, night + 1])
    for one in services(world, "nightly")[:1]:
        one.is_taken = True
        changed(world, one, plan.day(world)).zone = one.zone - 1


def inventories(world: World, trail: Trail, plan: Plan) -> None:
    """A person who looks at all topics every week, all year."""
    for one in services(world, "human")[:1]:
        one.is_taken = True
        every = [Use("DESCRIBE", ("TOPIC", name), 1.0) for team in world.topics for name in team]
        for day in range(world.random.randint(1, 7), plan.end, 7):
            traffic.do_uses(world, trail, one, every, [day * 24 + 12 - one.zone])


def wanderers(world: World, trail: Trail, plan: Plan) -> None:
    """People of the platform team who check a topic here and there, all year."""
    every = [name for team in world.topics for name in team]
    for one in services(world, "human")[:2]:
        one.is_taken = True
        for day in range(plan.end):
            if traffic.is_active(world, one, plan.start, day, frozenset()) and world.random.random() < 0.5:
                uses = [Use("READ", ("TOPIC", name), 5.0) for name in world.random.sample(every, k=2)]
                traffic.do_uses(world, trail, one, uses, traffic.hours_of(world, one, day)[:2])


def upgrade(world: World, trail: Trail, plan: Plan) -> None:
    """Brokers of a new version that use one more operation on the cluster from then on."""
    broker = next(one for one in world.principals if one.role == "broker")
    day = plan.day(world, spare=7)
    late_uses(world, trail, plan, broker, [Use("ALTER", ("CLUSTER", "kafka-cluster"), 30.0)], day)


def pauses(world: World, plan: Plan) -> None:
    """Services that stop for a fortnight."""
    for one in services(world, "office", "nightly")[:2]:
        one.is_taken = True
        first = world.random.randint(plan.first - 10, plan.end - 20)
        one.silent = (first, first + world.random.randint(8, 14))


def plan_all(world: World, trail: Trail, plan: Plan) -> None:
    """Plan all look-alikes; records what goes beyond the ordinary days in the trail."""
    onboarding(world, plan)
    late_hours(world, trail, plan)
    inventories(world, trail, plan)
    wanderers(world, trail, plan)
    upgrade(world, trail, plan)
    pauses(world, plan)
    new_topics(world, trail, plan)
    networks(world, plan)
