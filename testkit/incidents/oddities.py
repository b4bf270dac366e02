"""What looks odd and is no attack: each takes the organisation and plays out in the story's last days."""

from collections.abc import Callable

from testkit.incidents.ledger import MINUTES, Ledger, Resource
from testkit.incidents.living import built, day_of, minutes_of
from testkit.incidents.organisation import Organisation, person, program

Period = tuple[int, int]
"""The first judged day, and the day after the last one."""


def retried_right(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A program that lacks a right for hours, after a deploy or because of a misspelt name, and retries."""
    random = made.random
    one = made.unused(is_person=False)
    if one is None:
        return
    day, length = random.randrange(*period), random.uniform(0.5, 30)
    topic = random.choice(random.choice(made.topics))
    wanted: Resource = ("TOPIC", random.choice((topic, topic[:-1], topic + "s", made.name_topic(one.team))))
    asks = random.choice((("WRITE",), ("READ", "DESCRIBE"), ("WRITE", "DESCRIBE"), ("READ",)))
    pause = random.choice((0.02, 0.1, 1.0, 2.0))
    days = set()
    for hour in range(max(1, round(length))):
        for operation in asks:
            at = day * MINUTES + 60 * hour + random.random() * 59
            count = round(60 / pause / len(asks))
            days.add(ledger.decided(at, one.name, one.hosts[0], operation, wanted, count, is_allowed=False))
    ledger.happened("a right that is missing", one.name, days, is_attack=False)


def moved_site(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A site whose programs move to other machines, all within two days."""
    random = made.random
    site, day = random.choice(made.sites), random.randrange(*period)
    block = f"10.{random.randint(16, 250)}"
    moving = [one for one in made.actors if one.site is site and not one.is_person and not one.is_used]
    for one in moving[: random.randint(3, 12)]:
        one.is_used = True
        old, since = list(one.hosts), day + random.randint(0, 1)
        one.away = (since, period[1])
        ledger.happened("moved to other machines", one.name, set(range(since, period[1])), is_attack=False)
        one.hosts = [f"{block}.{random.randint(1, 3)}.{random.randint(2, 250)}" for _ in old]
        for later in range(since, period[1]):
            if one.every == 1 and made.weekday(later) in one.weekdays:
                day_of(made, ledger, one, later)
        one.hosts = old


def new_team(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A team that begins, with programs, people and topics, and with others' topics that it needs."""
    random = made.random
    day = random.randrange(period[0], period[1] - 1)
    made.teams.append("".join(random.sample(("lu", "gra", "pim", "tho", "wex"), k=2)))
    made.topics.append([])
    team = len(made.topics) - 1
    made.topics[team] = sorted({made.name_topic(team) for _ in range(random.randint(4, 15))})
    site = random.choice(made.sites)
    for number in range(random.randint(2, 6)):
        one = program(made, team, site, f"{made.teams[team]}-{number}")
        one.began, one.is_used = day + random.randint(0, 3), True
        made.actors.append(one)
    one = person(made, team, site, f"{made.teams[team]}.0")
    one.began, one.is_used = day, True
    made.actors.append(one)
    maker = next(each for each in made.actors if each.name == "pipeline-bot")
    while made.weekday(day) not in maker.weekdays:
        day -= 1
    for name in made.topics[team]:
        at = minutes_of(made, maker, day)[0] + 50 * random.random()
        ledger.decided(at, maker.name, maker.hosts[0], "CREATE", ("TOPIC", name))


def taken_over(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A program that takes over the topics of another team for good."""
    random = made.random
    one = made.unused(is_person=False)
    if one is None:
        return
    day = random.randrange(period[0], max(period[0] + 1, period[1] - 8))
    names = random.sample(sorted(random.choice(made.topics)), k=3)
    for later in range(day, period[1]):
        for minute in minutes_of(made, one, later) if made.weekday(later) in one.weekdays else ():
            for name in names:
                ledger.decided(minute, one.name, one.hosts[0], "READ", ("TOPIC", name), random.randint(1, 90))
    ledger.happened("took over topics", one.name, set(range(day, period[1])), is_attack=False)


def night_on_call(made: Organisation, ledger: Ledger, period: Period) -> None:
    """One to four people who look for a fault, at night where it is, and wherever they are."""
    random = made.random
    day, hour = random.randrange(*period), random.uniform(0, 4)
    begin = day * MINUTES - random.choice(made.sites).ahead + 60 * hour
    for _ in range(random.randint(1, 4)):
        one = made.unused(is_person=True)
        if one is None:
            return
        days = set()
        for half in range(random.randint(2, 6)):
            operation, resource = random.choice(one.doing)
            days.add(
                ledger.decided(
                    begin + 30 * half, one.name, one.hosts[-1], operation, resource, random.randint(1, 20)
                )
            )
        ledger.happened("a night on call", one.name, days, is_attack=False)


def holidays(made: Organisation, ledger: Ledger, period: Period) -> None:
    """People who are away for two to four weeks and come back."""
    for _ in range(made.random.randint(1, 4)):
        one = made.unused(is_person=True)
        if one is not None:
            first = made.random.randint(period[0] - 20, period[1] - 16)
            one.away = (first, first + made.random.randint(13, 27))
            days = {one.away[1] + later for later in range(1, 8)}
            ledger.happened("back from holidays", one.name, days, is_attack=False)


def replayed_history(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A program that reads everything again for two days, at many times its rate."""
    one = made.unused(is_person=False)
    if one is None:
        return
    day = made.random.randrange(period[0], period[1] - 1)
    for later in (day, day + 1):
        day_of(made, ledger, one, later, factor=made.random.uniform(8, 60))
    ledger.happened("read everything again", one.name, {day, day + 1}, is_attack=False)


def lost_acls(made: Organisation, ledger: Ledger, period: Period) -> None:
    """ACLs of a team that are gone for an hour or two: all that its programs do is denied."""
    random = made.random
    team, day = random.randrange(len(made.topics)), random.randrange(*period)
    begin, length = random.random() * (MINUTES - 200), random.uniform(5, 130)
    for one in made.actors:
        if one.team != team or one.is_person or one.is_super or one.is_used:
            continue
        one.is_used = True
        for operation, resource in one.doing:
            at = day * MINUTES + begin + random.random() * length
            count = max(1, round(one.rate * length / 60))
            ledger.decided(at, one.name, one.hosts[0], operation, resource, count, is_allowed=False)
        ledger.happened("ACLs that were lost", one.name, {day}, is_attack=False)


def tidied_up(made: Organisation, ledger: Ledger, period: Period) -> None:
    """Somebody who deletes a few old topics, and was refused one of them."""
    random = made.random
    one = made.unused(is_person=True)
    if one is None:
        return
    day = random.randrange(*period)
    names = random.sample(made.topics[one.team], k=min(4, len(made.topics[one.team])))
    for number, name in enumerate(names):
        at = minutes_of(made, one, day)[0] + 10 * number
        ledger.decided(at, one.name, one.hosts[0], "DELETE", ("TOPIC", name), is_allowed=number > 0)
    ledger.happened("tidied up", one.name, {day}, is_attack=False)


def rotated_password(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A program with a mistyped password after a rotation: it retries for hours, until somebody mends it."""
    random = made.random
    one = made.unused(is_person=False)
    if one is None:
        return
    at = random.randrange(period[0], period[1] - 3) * MINUTES + random.random() * MINUTES
    host = random.choice((one.hosts[0], made.address(one.site)))
    days, every = set(), random.choice((2, 10, 60))
    for later in range(0, round(60 * random.choice((1, 9, 40))), 30):
        failed = max(1, round(1800 / every * random.uniform(0.7, 1.2)))
        days.add(ledger.logged_in(at + later, one.name, host, succeeded=False, attempts=failed))
    mended = random.choice((host, made.address(one.site)))
    ledger.logged_in(at + later + 40, one.name, mended, succeeded=True)
    ledger.happened("a mistyped new password", one.name, days, is_attack=False, host=host)


def widened_watch(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A program that shall watch all topics from now on, and may not describe some of them."""
    random = made.random
    one = made.unused(is_person=False)
    if one is None:
        return
    names = [name for names in made.topics for name in names]
    hidden = set(random.sample(names, k=round(len(names) * random.choice((0, 0, 0.1, 0.4)))))
    day, pause = random.randrange(period[0], period[1] - 8), random.choice((1, 6))
    for later in range(day, period[1]):
        for minute in minutes_of(made, one, later)[::pause] if made.weekday(later) in one.weekdays else ():
            for name in names:
                resource, is_allowed = ("TOPIC", name), name not in hidden
                ledger.decided(
                    minute,
                    one.name,
                    one.hosts[0],
                    "DESCRIBE",
                    resource,
                    is_listing=True,
                    is_allowed=is_allowed,
                )
                ledger.decided(minute, one.name, one.hosts[0], "DESCRIBE", resource, is_allowed=is_allowed)
    ledger.happened("watches all topics now", one.name, set(range(day, period[1])), is_attack=False)


def refused_tests(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A day on which tests may not delete the topics that they made."""
    one = next(each for each in made.actors if each.name == "ci")
    day = made.random.choice([each for each in range(*period) if made.weekday(each) in one.weekdays])
    built(made, ledger, one, day, may_delete=False)
    ledger.happened("tests that may not delete", one.name, {day}, is_attack=False)


ODDITIES: tuple[Callable[[Organisation, Ledger, Period], None], ...] = (
    retried_right,
    moved_site,
    new_team,
    taken_over,
    night_on_call,
    holidays,
    replayed_history,
    lost_acls,
    tidied_up,
    rotated_password,
    widened_watch,
    refused_tests,
)
