"""Access that does not fit what was before, beside access that nearly does not: told of any cluster.

How often and how much is drawn about the thresholds of the docs, so what is found differs from run to run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

DAYS = 49
FIRST_DAY = datetime(2026, 9, 28, tzinfo=UTC)
"""A Monday."""
JUDGED = range(39, 49)
"""The last ten days: those before are history. Before them no story has an hour that a clock shows twice."""
BOSSES = ("User:boss", "User:bob")
"""Super users by configuration; of `User:boss` the events say so, too, where they name rules."""
TOPICS = ("payments", "orders", "payments.retry")


@dataclass(frozen=True, slots=True)
class Told:
    """A decision; None: some other rule than that of a super user, whichever fits."""

    time: datetime
    who: str
    host: str
    operation: str
    topic: str | None
    is_allowed: bool = True
    is_super: bool | None = False


Story = Iterator[Told]


def at(random: Random, day: int, hour: int) -> datetime:
    return FIRST_DAY + timedelta(days=day, hours=hour, milliseconds=random.randrange(3_600_000))


def judged_days(random: Random, most: int) -> list[int]:
    """Return some days that are judged, one after the other."""
    count = random.randrange(1, most + 1)
    first = random.choice(JUDGED[: -count + 1] if count > 1 else JUDGED)
    return [*range(first, first + count)]


def clerk(random: Random, number: int) -> Story:
    """Two work from nine to eleven: one each day, one on weekdays; in the last days something is odd."""
    who, mine = f"User:clerk-{number}", (f"sales.{number}", "sales.all")
    for day in range(DAYS):
        if number and day % 7 >= 5:
            continue
        for _ in range(random.randrange(1, 3)):
            yield Told(
                at(random, day, random.choice((9, 10, 11))), who, f"10.5.0.{random.randrange(3)}",
                random.choice(("READ", "WRITE")), random.choice(mine), random.random() < 0.95,
            )  # fmt: skip
    new = random.sample([*TOPICS, "sales.0", "sales.1", "unheard"], k=random.randrange(1, 4))
    for day in judged_days(random, 4):
        for topic in new:
            yield Told(at(random, day, 10), who, "10.5.0.1", "READ", topic, random.random() < 0.9)
    place = random.choice(("10.5.9.1", "10.66.0.1", "10.66.1.1", "172.16.5.4"))
    for day in judged_days(random, 4):
        yield Told(at(random, day, 9), who, place, "READ", mine[0], random.random() < 0.8)
    hours = random.sample(range(24), k=random.randrange(1, 3))
    for day in judged_days(random, 4):
        for hour in hours:
            yield Told(at(random, day, hour), who, "10.5.0.2", "READ", mine[1])


def sweeper(random: Random, _: int) -> Story:
    """Somebody tries an administrative operation on a dozen names, after weeks without or with some."""
    for day in range(0, DAYS - 10, random.randrange(1, 4)):
        yield Told(at(random, day, 12), "User:sweeper", "10.6.0.1", "DESCRIBE", "orders")
    for day in random.sample(range(DAYS - 10), k=random.choice((0, 0, 3))):
        yield Told(at(random, day, 12), "User:sweeper", "10.6.0.1", "ALTER", f"outer-{day}")
    operation, days = random.choice(("ALTER", "DESCRIBE_CONFIGS", "DELETE", "CREATE")), judged_days(random, 3)
    denied = random.random()
    for number in range(random.randrange(8, 27)):
        for _ in range(random.choice((1, 1, 2, 11))):
            yield Told(
                at(random, random.choice(days), random.randrange(24)), "User:sweeper",
                f"10.6.0.{random.randrange(4)}", operation, f"inner-{number}", random.random() > denied,
            )  # fmt: skip


def prober(random: Random, _: int) -> Story:
    """Somebody finds out which operations a credential may do."""
    operations = ("READ", "WRITE", "DESCRIBE", "CREATE", "ALTER", "DELETE", "ALTER_CONFIGS")
    days = judged_days(random, 2)
    for operation in random.sample(operations, k=random.randrange(3, 7)):
        for _ in range(random.randrange(1, 4)):
            yield Told(
                at(random, random.choice(days), 13), "User:prober", "10.7.0.1", operation,
                random.choice(TOPICS), is_allowed=False,
            )  # fmt: skip


def lister(random: Random, _: int) -> Story:
    """Somebody looks for topics, after some weeks with a few."""
    for day in range(0, DAYS - 10, random.randrange(3, 9)):
        yield Told(at(random, day, 14), "User:lister", "10.8.0.1", "DESCRIBE", f"known-{day % 4}")
    days = judged_days(random, 2)
    for number in range(random.randrange(11, 30)):
        is_allowed = random.random() < 0.2
        for _ in range(random.choice((1, 1, 2, 12))):
            time = at(random, random.choice(days), 14)
            yield Told(time, "User:lister", "10.8.0.1", "DESCRIBE", f"hidden-{number}", is_allowed)


def poor(random: Random, _: int) -> Story:
    """A client retries what it has no right to, some of it since long."""
    things = [(random.choice(("READ", "WRITE")), f"rich.{n}") for n in range(random.randrange(1, 5))]
    for day in random.sample(range(10, 38), k=random.randrange(2, 7)):
        for _ in range(random.randrange(1, 5)):
            yield Told(at(random, day, 15), "User:poor", "10.8.1.1", *things[0], is_allowed=False)
    day, hours = random.choice(JUDGED), random.sample(range(24), k=random.randrange(1, 4))
    for thing in things:
        for _ in range(random.randrange(5, 50)):
            yield Told(
                at(random, day, random.choice(hours)), "User:poor", "10.8.1.1", *thing, is_allowed=False
            )


def forcer(random: Random, _: int) -> Story:
    """Somebody tries many operations on many names, again and again."""
    yield Told(at(random, 3, 12), "User:forcer", "10.8.2.1", "READ", "yard.1")
    operations = random.sample(("READ", "WRITE", "CREATE", "ALTER", "DELETE"), k=random.randrange(2, 5))
    names = [f"{random.choice(('yard', 'vault'))}.{n}" for n in range(random.randrange(2, 5))]
    day, hours = random.choice(JUDGED), random.sample(range(24), k=random.randrange(1, 3))
    for operation in operations:
        for name in names:
            for _ in range(random.randrange(6, 18)):
                time = at(random, day, random.choice(hours))
                yield Told(time, "User:forcer", "10.8.2.1", operation, name, is_allowed=False)


def boss(random: Random, _: int) -> Story:
    """A super user does something new, after few days or many."""
    for day in random.sample(range(20, 39), k=random.choice((0, 3, 8, 14))):
        yield Told(at(random, day, 16), "User:boss", "10.9.0.1", "DESCRIBE", "orders", is_super=True)
    for day in judged_days(random, 4):
        for name in random.sample(TOPICS, k=random.randrange(1, 3)):
            operation = random.choice(("DESCRIBE", "ALTER", "ALTER"))
            yield Told(at(random, day, 16), "User:boss", "10.9.0.1", operation, name, is_super=True)


def sleeper(random: Random, _: int) -> Story:
    """A credential is used again after weeks, from where it was or from elsewhere."""
    share, last = random.choice((0.6, 0.95, 1.0)), random.randrange(6, 26)
    for day in range(last):
        if random.random() < share:
            yield Told(at(random, day, 17), "User:sleeper", "10.4.0.1", "READ", "orders")
    host = random.choice(("10.4.7.1", "10.40.0.1"))
    for day in judged_days(random, 2):
        yield Told(at(random, day, 17), "User:sleeper", host, "READ", "orders")


STORIES: tuple[tuple[Callable[[Random, int], Story], int], ...] = (
    (clerk, 0), (clerk, 1), (sweeper, 0), (prober, 0), (lister, 0), (poor, 0), (forcer, 0), (boss, 0),
    (sleeper, 0),
)  # fmt: skip


def told(random: Random) -> list[Told]:
    """Return the decisions of most stories."""
    return [one for story, number in STORIES if random.random() < 0.85 for one in story(random, number)]
