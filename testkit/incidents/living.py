"""Ordinary days: everybody's habits, and what shakes them without harm."""

import math

from testkit.incidents.ledger import MINUTES, Ledger
from testkit.incidents.organisation import Actor, Organisation


def is_at_work(made: Organisation, one: Actor, day: int) -> bool:
    """Return whether somebody comes on a day."""
    if day < one.began or one.away[0] <= day <= one.away[1]:
        return False
    if one.every > 1:
        return (day + len(one.name)) % one.every == 0
    if made.weekday(day) not in one.weekdays:
        return one.is_person and made.random.random() < 0.02
    return made.random.random() < one.share


def minutes_of(made: Organisation, one: Actor, day: int) -> list[float]:
    """Return the beginnings of the hours in which somebody is busy on a day, in minutes of the story."""
    start, end = one.busy
    if one.is_person:
        start += abs(made.random.gauss(0, 0.8))
        end -= abs(made.random.gauss(0, 1.2)) - (
            made.random.expovariate(1.5) if made.random.random() < 0.1 else 0
        )
    if end - start < 1:
        end = start + 0.5
    minutes = day * MINUTES - one.site.ahead + 60 * start
    return [minutes + 60 * number for number in range(max(1, math.ceil(end - start)))]


def day_of(made: Organisation, ledger: Ledger, one: Actor, day: int, factor: float = 1.0) -> None:
    """Write down somebody's day."""
    random = made.random
    mood = math.exp(random.gauss(0, 0.4)) * factor
    for minute in minutes_of(made, one, day):
        doing = [each for each in one.doing if random.random() < 0.5] if one.is_person else one.doing
        host = random.choice(one.hosts)
        for operation, resource in doing:
            count = max(1, round(one.rate * mood * random.uniform(0.6, 1.5) / len(one.doing)))
            at = minute + random.random() * 50
            for where in [host] if one.is_person else one.hosts:
                share = max(1, count // len(one.hosts))
                ledger.decided(at, one.name, where, operation, resource, share, is_super=one.is_super)


def lived(made: Organisation, ledger: Ledger, days: int) -> None:
    """Write down all ordinary days of everybody."""
    random = made.random
    rollouts = random.uniform(0.03, 0.2)
    silly = [one for one in made.actors if not one.is_person and not one.is_super][:3]
    strays = {one.name: random.choice(made.topics[one.team]) + "-old" for one in silly}
    for day in range(days):
        for one in made.actors:
            if not is_at_work(made, one, day):
                continue
            if not one.is_person and random.random() < rollouts:
                one.hosts = [made.address(one.site) for _ in one.hosts]
            if one.is_person and random.random() < 0.01:
                network = ".".join(one.hosts[-1].split(".")[:2])
                one.hosts[-1] = f"{network}.{random.randint(1, 250)}.{random.randint(2, 250)}"
            if one.name == "ci":
                built(made, ledger, one, day)
                continue
            day_of(made, ledger, one, day)
            if one.name in strays:
                _ask_in_vain(made, ledger, one, day, strays[one.name])
            if not one.is_super and random.random() < 0.015:
                operation, resource = random.choice(one.doing)
                at = random.choice(minutes_of(made, one, day)) + random.random() * 20
                ledger.decided(
                    at, one.name, one.hosts[0], operation, resource, random.randint(1, 25), is_allowed=False
                )
        _logins(made, ledger, day)


def built(made: Organisation, ledger: Ledger, one: Actor, day: int, *, may_delete: bool = True) -> None:
    """Write down the topics that tests make, use and delete on a day, some of them late in the evening."""
    random = made.random
    hours = minutes_of(made, one, day)
    for number in range(round(random.choice((4, 12, 30)) * math.exp(random.gauss(0, 0.5)))):
        topic = ("TOPIC", f"ci{made.joint}{day}{made.joint}{number}")
        host, at = random.choice(one.hosts), random.choice(hours) + random.random() * 50
        ledger.decided(at, one.name, host, "CREATE", topic)
        for operation in ("WRITE", "READ"):
            ledger.decided(at + 1, one.name, host, operation, topic, random.randint(1, 60))
        ledger.decided(at + 5, one.name, host, "DELETE", topic, is_allowed=may_delete)


def _ask_in_vain(made: Organisation, ledger: Ledger, one: Actor, day: int, topic: str) -> None:
    """Write down what a forgotten setting asks for day by day."""
    for hour in range(0, 24, 2):
        at = day * MINUTES + 60 * hour + made.random.random() * 60
        count = round(20 * math.exp(made.random.gauss(0, 0.3)))
        ledger.decided(at, one.name, one.hosts[0], "DESCRIBE", ("TOPIC", topic), count, is_allowed=False)


def _logins(made: Organisation, ledger: Ledger, day: int) -> None:
    """Write down the day's logins: programs now and then, people who mistype, an old password."""
    random = made.random
    for one in made.actors:
        if random.random() > 0.3 or day < one.began:
            continue
        at = day * MINUTES + random.random() * (MINUTES - 30)
        if one.is_person and random.random() < 0.1:
            ledger.logged_in(at, one.name, one.hosts[0], succeeded=False, attempts=random.randint(1, 4))
        ledger.logged_in(at + 2, one.name, one.hosts[0], succeeded=True)
    stale = made.actors[0]
    ledger.logged_in(
        day * MINUTES + random.random() * 900, f"{stale.name}-old", stale.hosts[0], succeeded=False,
        attempts=random.randint(60, 400),
    )  # fmt: skip
