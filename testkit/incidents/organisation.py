"""An organisation: sites with their clocks and networks, teams with topics, programs, and people."""

import math
from dataclasses import dataclass, field
from random import Random

from testkit.incidents.ledger import CLUSTER, Resource

SYLLABLES = ("ba", "ko", "ri", "ten", "sul", "mo", "fex", "da", "nu", "vil", "qua", "zor", "pel", "ish")
THINGS = ("Placed", "Shipped", "Rated", "Viewed", "Cleared", "Opened", "Merged", "Expired", "Scored", "Sent")


@dataclass(slots=True)
class Site:
    """Where programs run and people sit: minutes ahead of UTC, business hours, and address blocks."""

    ahead: int
    opens: float
    closes: float
    block: str
    office: str


@dataclass(slots=True)
class Actor:
    """A program or a person: what it does, how often, when and from where.

    `rate` is in events an hour; `busy` the local hours; `share` of days on which it comes at all.
    """

    name: str
    site: Site
    team: int
    doing: list[tuple[str, Resource]]
    rate: float
    busy: tuple[float, float]
    weekdays: frozenset[int]
    share: float = 1.0
    every: int = 1
    pods: int = 1
    is_person: bool = False
    is_super: bool = False
    hosts: list[str] = field(default_factory=list)
    began: int = 0
    away: tuple[int, int] = (-1, -1)
    is_used: bool = False


@dataclass(slots=True)
class Organisation:
    """All of it, with the source of chance that the story goes on to draw from."""

    random: Random
    sites: list[Site]
    teams: list[str]
    topics: list[list[str]]
    actors: list[Actor]
    has_prefixes: bool
    joint: str
    first_weekday: int

    def name_topic(self, team: int) -> str:
        """Return a topic's name in the organisation's style."""
        word = "".join(self.random.choices(SYLLABLES, k=2))
        thing = self.random.choice(THINGS)
        if not self.has_prefixes:
            return f"{word.title()}{thing}V{self.random.randint(1, 4)}"
        parts = [self.teams[team], word, thing.lower(), f"v{self.random.randint(1, 4)}"]
        return self.joint.join(parts[: self.random.randint(3, 4)])

    def address(self, site: Site) -> str:
        """Return an address of a pod: anywhere in the site's block of sixteen networks."""
        return f"{site.block}.{self.random.randint(16, 31)}.{self.random.randint(2, 254)}"

    def outside(self) -> str:
        """Return an address on the internet."""
        return ".".join(str(self.random.randint(low, 250)) for low in (20, 1, 1, 1))

    def weekday(self, day: int) -> int:
        """Return the weekday of a day of the story, 0 for a Monday."""
        return (self.first_weekday + day) % 7

    def unused(self, *, is_person: bool | None = None, is_long_known: bool = True) -> Actor | None:
        """Return somebody to whom nothing happened yet, None if there is nobody."""
        free = [
            one
            for one in self.actors
            if not one.is_used
            and not one.is_super
            and (is_person is None or one.is_person == is_person)
            and (not is_long_known or (one.began == 0 and one.every == 1))
        ]
        if not free:
            return None
        chosen = self.random.choice(free)
        chosen.is_used = True
        return chosen


def founded(random: Random, first_weekday: int) -> Organisation:
    """Return an organisation, drawn from its own parameters, whose story begins on a weekday."""
    sites = [
        Site(
            ahead=60 * random.choice((-8, -5, -3, 0, 1, 2, 5, 8, 10)),
            opens=random.uniform(6.5, 10),
            closes=random.uniform(15.5, 20),
            block=f"{random.choice(('10', '172'))}.{random.randint(16, 250)}",
            office=f"192.168.{random.randint(1, 250)}",
        )
        for _ in range(random.randint(1, 3))
    ]
    teams = ["".join(random.sample(SYLLABLES, k=random.randint(2, 3))) for _ in range(random.randint(4, 9))]
    made = Organisation(
        random, sites, teams, [[] for _ in teams], [], random.random() < 0.75,
        random.choice((".", "-", "_")), first_weekday,
    )  # fmt: skip
    for team in range(len(teams)):
        made.topics[team] = sorted({made.name_topic(team) for _ in range(random.randint(6, 22))})
    for team in range(len(teams)):
        site = random.choice(sites)
        for number in range(random.randint(3, 9)):
            made.actors.append(program(made, team, site, f"{teams[team]}-{number}"))
        for number in range(random.randint(1, 3)):
            made.actors.append(person(made, team, site, f"{teams[team]}.{number}"))
    made.actors += _keepers(made)
    return made


def program(made: Organisation, team: int, site: Site, name: str) -> Actor:
    """Return a program: always on, in business hours, or a batch at night, each week or each month."""
    random = made.random
    own = random.sample(made.topics[team], k=min(len(made.topics[team]), random.randint(1, 5)))
    doing: list[tuple[str, Resource]] = [(random.choice(("READ", "WRITE")), ("TOPIC", one)) for one in own]
    if random.random() < 0.3:
        other = random.randrange(len(made.topics))
        doing.append(("READ", ("TOPIC", random.choice(made.topics[other]))))
    if any(operation == "READ" for operation, _ in doing):
        doing.append(("READ", ("GROUP", f"{name}-group")))
    style = random.choices(("always", "business", "night", "weekly", "monthly"), (6, 3, 2, 1, 1))[0]
    night = random.uniform(0, 4)
    short = (night, night + random.uniform(0.3, 2.5))
    one = Actor(
        name=name,
        site=site,
        team=team,
        doing=doing,
        rate=math.exp(random.uniform(math.log(3), math.log(700))),
        busy={"always": (0.0, 24.0), "business": (site.opens, site.closes)}.get(style, short),
        weekdays=frozenset(range(5)) if style == "business" else frozenset(range(7)),
        every={"weekly": 7, "monthly": 30}.get(style, 1),
        pods=random.randint(1, 5) if style in ("always", "business") else 1,
    )
    one.hosts = [made.address(site) for _ in range(one.pods)]
    return one


def person(made: Organisation, team: int, site: Site, name: str) -> Actor:
    """Return a person, in the office or at home, who looks at topics with tools."""
    random = made.random
    pool = made.topics[team] + made.topics[random.randrange(len(made.topics))]
    seen = random.sample(pool, k=min(len(pool), random.randint(2, 7)))
    doing: list[tuple[str, Resource]] = [
        (random.choice(("READ", "DESCRIBE")), ("TOPIC", one)) for one in seen
    ]
    one = Actor(
        name=name,
        site=site,
        team=team,
        doing=[*doing, ("DESCRIBE", CLUSTER)],
        rate=random.uniform(1, 12),
        busy=(site.opens, site.closes),
        weekdays=frozenset(range(5)) if random.random() < 0.85 else frozenset(range(6)),
        share=random.choice((0.2, 0.5, 0.8, 0.95)),
        is_person=True,
    )
    home = f"{random.randint(60, 99)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
    one.hosts = [f"{site.office}.{random.randint(2, 250)}", f"{home}.{random.randint(2, 250)}"]
    return one


def _keepers(made: Organisation) -> list[Actor]:
    random, site = made.random, made.sites[0]
    every = [("DESCRIBE", ("TOPIC", name)) for names in made.topics for name in names]
    always = frozenset(range(7))
    brokers = Actor("brokers", site, 0, [("CLUSTER_ACTION", CLUSTER)], 400.0, (0.0, 24.0), always, pods=3)
    brokers.is_super = True
    watcher = Actor("exporter", site, 0, every, 6.0, (0.0, 24.0), always)
    builder = Actor(
        "pipeline-bot", site, 0, [("CREATE", CLUSTER), ("ALTER_CONFIGS", CLUSTER)], 2.0,
        (site.opens, site.closes), frozenset(range(5)), share=0.6,
    )  # fmt: skip
    night = random.uniform(0, 4)
    walker = Actor(
        "inventory", site, 0, every, 1.0, (night, night + 0.9), always, every=random.choice((28, 30))
    )
    tests = Actor("ci", site, 0, [], 1.0, (site.opens, site.closes + 3), frozenset(range(5)), pods=4)
    for one in (brokers, watcher, builder, walker, tests):
        one.hosts = [made.address(site) for _ in range(one.pods)]
        one.is_used = True
    watcher.rate = random.choice((1.0, 4.0))
    return [brokers, watcher, builder, walker, tests]
