"""The population of a month: teams with topics, and the principals that use them, each with its habits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from testkit.months.values import Ranges

TEAMS = (
    "payments", "orders", "billing", "search", "risk", "fraud", "catalog", "stock", "shipping", "mail",
    "ads", "users", "audit", "ledger", "rates", "loans", "cards", "fleet", "maps", "media", "chat", "news",
    "feeds", "jobs",
)  # fmt: skip
NOUNS = (
    "created", "updated", "deleted", "events", "state", "requests", "replies", "metrics", "snapshots",
    "changes", "errors", "batches", "keys", "sessions", "clicks", "views", "items", "prices", "alerts",
    "logs", "totals", "drafts", "copies",
)  # fmt: skip

Role = Literal["steady", "office", "nightly", "weekly", "monthly", "human", "crawler", "broker", "automation"]


@dataclass(frozen=True, slots=True)
class Use:
    """One use by a principal, and its rate per hour."""

    operation: str
    resource: tuple[str, str]
    rate: float


@dataclass(slots=True)
class Principal:
    """A principal and its habits; hours and weekdays are those of its time zone."""

    name: str
    team: int
    role: Role
    zone: int
    uses: list[Use]
    pools: list[tuple[int, int]]
    hosts: list[str]
    hours: tuple[int, ...]
    weekdays: frozenset[int] = frozenset(range(7))
    day_of_month: int = 0
    presence: float = 1.0
    weekend_presence: float = 0.0
    is_super: bool = False
    deploy_every_days: int = 0
    first_day: int = 0
    last_day: int = 10_000
    silent: tuple[int, int] = (0, 0)
    is_taken: bool = False


@dataclass(slots=True)
class World:
    """Everything that the stories of a month draw on."""

    random: Random
    ranges: Ranges
    network: str
    separator: str
    topics: list[list[str]]
    shared: list[str]
    names: list[str]
    zones: list[int]
    principals: list[Principal] = field(default_factory=list)

    def draw(self, span: tuple[int, int]) -> int:
        """Return a random number from the span."""
        return self.random.randint(*span)

    def rate(self) -> float:
        """Return a rate in events per hour, evenly spread over magnitudes."""
        low, high = self.ranges.rate
        return float(low * (high / low) ** self.random.random())

    def host(self, team: int, pool: int) -> str:
        """Return an address of a team's pool."""
        return self.network.format(team=team + 20, pool=pool, pod=self.random.randint(10, 250))

    def stranger(self) -> str:
        """Return an address outside all pools."""
        if ":" in self.network:
            return f"2001:db8:{self.random.randint(1, 60000):x}::{self.random.randint(1, 60000):x}"
        return f"{self.random.choice((45, 91, 185, 203))}." + ".".join(
            str(self.random.randint(1, 250)) for _ in range(3)
        )

    def topic(self, team: int, number: int) -> str:
        """Return the name of a team's topic."""
        noun = NOUNS[number % len(NOUNS)]
        tail = "" if number < len(NOUNS) else f"{self.separator}v{number // len(NOUNS) + 1}"
        return f"{self.names[team]}{self.separator}{noun}{tail}"

    def new_topic(self, team: int) -> str:
        """Return a topic that did not exist before."""
        name = self.topic(team, len(self.topics[team]))
        self.topics[team].append(name)
        return name


def topic_uses(world: World, team: int, group: str) -> list[Use]:
    """Return the uses of a service: a few of its team's topics, perhaps a shared one, and its group."""
    random = world.random
    own = random.sample(world.topics[team], k=min(len(world.topics[team]), random.randint(1, 4)))
    uses = [Use(random.choice(("READ", "WRITE")), ("TOPIC", name), world.rate()) for name in own]
    foreign = [name for name in world.shared if name not in world.topics[team]]
    if foreign and random.random() < 0.4:
        uses.append(Use("READ", ("TOPIC", random.choice(foreign)), world.rate()))
    if any(use.operation == "READ" for use in uses):
        uses.append(Use("READ", ("GROUP", group), world.rate()))
    return uses


def service(world: World, team: int, number: int, role: Role) -> Principal:
    """Return a program of a team."""
    random = world.random
    name = f"{world.names[team]}{world.separator}{role}{number}"
    pool = random.randint(1, 2)
    night = random.randint(0, 4)
    hours = {"steady": tuple(range(24)), "office": tuple(range(7, 19))}.get(role, (night, night + 1))
    weekdays = {
        "office": frozenset(range(5)),
        "weekly": frozenset({random.randint(0, 6)}),
    }.get(role, frozenset(range(7)))
    return Principal(
        name=f"User:{name}",
        team=team,
        role=role,
        zone=world.zones[team],
        uses=topic_uses(world, team, name),
        pools=[(team, pool)],
        hosts=[world.host(team, pool) for _ in range(random.randint(1, 4) if len(hours) > 2 else 1)],
        hours=hours,
        weekdays=weekdays,
        day_of_month=random.randint(1, 27) if role == "monthly" else 0,
        deploy_every_days=world.draw(world.ranges.deploy_every_days),
    )


def human(world: World, number: int, *, sporadic: bool) -> Principal:
    """Return a person of the platform team: in office hours, from the addresses of a VPN."""
    random = world.random
    topics = random.sample([name for team in world.topics for name in team], k=random.randint(3, 8))
    uses = [Use(random.choice(("DESCRIBE", "READ")), ("TOPIC", name), 4.0) for name in topics]
    uses.append(Use("DESCRIBE_CONFIGS", ("CLUSTER", "kafka-cluster"), 2.0))
    return Principal(
        name=f"User:person{number}",
        team=200,
        role="human",
        zone=world.zones[0],
        uses=uses,
        pools=[(200, pool) for pool in range(1, 6)],
        hosts=[],
        hours=tuple(range(9, 18)),
        weekdays=frozenset(range(5)),
        presence=random.uniform(0.15, 0.35) if sporadic else random.uniform(0.5, 0.9),
        weekend_presence=random.uniform(0.15, 0.4) if random.random() < 0.25 else 0.0,
    )


def _machinery(world: World) -> Iterator[Principal]:
    every = [name for team in world.topics for name in team]
    cluster = ("CLUSTER", "kafka-cluster")
    day = tuple(range(24))
    yield Principal(
        "User:broker", 210, "broker", 0, [Use("CLUSTER_ACTION", cluster, 600.0)], [(210, 1)],
        [world.host(210, 1) for _ in range(3)], day, is_super=True,
    )  # fmt: skip
    yield Principal(
        "User:automation", 211, "automation", 0,
        [Use("ALTER_CONFIGS", cluster, 3.0), Use("CREATE", cluster, 2.0), Use("DESCRIBE", cluster, 5.0)],
        [(211, 1)], [world.host(211, 1)], tuple(range(6, 20)), presence=0.9, is_super=True,
    )  # fmt: skip
    yield Principal(
        "User:drill", 212, "monthly", 0, [Use("ALTER", cluster, 4.0)], [(212, 1)], [world.host(212, 1)],
        (10, 11), day_of_month=world.random.randint(1, 27), is_super=True,
    )  # fmt: skip
    yield Principal(
        "User:crawler", 213, "crawler", 0, [Use("DESCRIBE", ("TOPIC", name), 1.0) for name in every],
        [(213, 1)], [world.host(213, 1)], (3,),
    )  # fmt: skip


def build(random: Random, ranges: Ranges) -> World:
    """Return a world whose parameters are drawn from the ranges."""
    teams = random.randint(*ranges.teams)
    world = World(
        random=random,
        ranges=ranges,
        network=random.choice(ranges.networks),
        separator=random.choice(ranges.separators),
        topics=[[] for _ in range(teams)],
        shared=[],
        names=random.sample(TEAMS, teams),
        zones=[random.choice(ranges.zones) for _ in range(teams)],
    )
    for team in range(teams):
        for _ in range(world.draw(ranges.topics)):
            world.new_topic(team)
        world.shared += random.sample(world.topics[team], k=min(2, len(world.topics[team])))
    for team in range(teams):
        for number in range(world.draw(ranges.services)):
            role: Role = random.choice(("steady", "steady", "office", "nightly"))
            world.principals.append(service(world, team, number, role))
    for role, count in (("weekly", 3), ("monthly", 3), ("office", 3)):
        for number in range(count):
            one = service(world, random.randrange(teams), 100 + number, role)
            world.principals.append(one)
    world.principals += [
        human(world, number, sporadic=random.random() < 0.3) for number in range(world.draw(ranges.humans))
    ]
    world.principals += _machinery(world)
    return world
