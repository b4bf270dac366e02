"""Attacks: each takes somebody's credential, or none, and plays out in the story's last days."""

from collections.abc import Callable
from functools import wraps

from testkit.incidents.ledger import CLUSTER, MINUTES, Ledger, Resource
from testkit.incidents.living import minutes_of
from testkit.incidents.oddities import Period
from testkit.incidents.organisation import Actor, Organisation

CHANGES = ("ALTER", "DELETE", "CREATE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
EVERYTHING = (*CHANGES, "READ", "WRITE", "DESCRIBE", "CLUSTER_ACTION", "IDEMPOTENT_WRITE", "CREATE_TOKENS")


Attack = Callable[[Organisation, Ledger, Period], None]


def on_somebody(attack: Callable[[Organisation, Ledger, Period, Actor], None]) -> Attack:
    """Return the attack on an actor to whom nothing else happens; it does nothing if there is none."""

    @wraps(attack)
    def played(made: Organisation, ledger: Ledger, period: Period) -> None:
        one = made.unused()
        if one is not None:
            attack(made, ledger, period, one)

    return played


def all_topics(made: Organisation) -> list[str]:
    """Return the names of all topics."""
    return [name for names in made.topics for name in names]


def somewhere(made: Organisation, one: Actor) -> str:
    """Return an address of the thief: outside, in another site, or beside the victim."""
    site = made.random.choice(made.sites)
    own = made.random.choice(one.hosts)
    return made.random.choices((made.outside(), made.address(site), own), (4, 1, 3))[0]


def begin_of(made: Organisation, one: Actor, day: int) -> float:
    """Return a minute of the day in UTC: most thieves come while their victim works."""
    if made.random.random() < 0.3:
        return day * MINUTES + made.random.random() * MINUTES * 0.8
    minute = made.random.choice(minutes_of(made, one, day))
    # where clocks are ahead, the first hours of work are of the day before, which may not be judged
    return minute if minute >= day * MINUTES else minute + MINUTES


def sprayed_passwords(made: Organisation, ledger: Ledger, period: Period) -> None:
    """A password or two tried on many names, in an hour or over days."""
    random, host = made.random, made.outside()
    day, hours = random.randrange(period[0], period[1] - 2), random.choice((0.5, 6, 40))
    names = [one.name for one in made.actors] + [f"admin{number}" for number in range(20)]
    days = {
        ledger.logged_in(
            day * MINUTES + random.random() * hours * 60, name, host, succeeded=False,
            attempts=random.randint(1, 2),
        )
        for name in random.sample(names, k=random.randint(14, min(60, len(names))))
    }  # fmt: skip
    ledger.happened("sprayed passwords", None, days, is_attack=True, host=host)


@on_somebody
def guessed_password(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """Many passwords tried on one name; sometimes one was right."""
    random = made.random
    host, day = made.outside(), random.randrange(*period)
    at = day * MINUTES + random.random() * 1200
    for later in range(random.randint(5, 40)):
        ledger.logged_in(at + later, one.name, host, succeeded=False, attempts=random.randint(3, 60))
    if random.random() < 0.4:
        ledger.logged_in(at + 60, one.name, host, succeeded=True)
        operation, resource = one.doing[0]
        ledger.decided(at + 62, one.name, host, operation, resource, random.randint(1, 50))
    ledger.happened("guessed a password", one.name, {day, day + 1}, is_attack=True, host=host)


@on_somebody
def guessed_slowly(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """A few passwords a day tried on one name, each from another of several hosts, for days."""
    random = made.random
    length = random.randint(3, 6)
    day = random.randrange(period[0], period[1] - length)
    hosts = [made.outside() for _ in range(random.randint(3, 7))]
    if random.random() < 0.3:
        hosts = [made.address(random.choice(made.sites)) for _ in hosts]
    days = set()
    for later in range(length):
        for _ in range(random.randint(8, 30)):
            at, host = (day + later + random.random()) * MINUTES, random.choice(hosts)
            days.add(ledger.logged_in(at, one.name, host, succeeded=False))
    if random.random() < 0.3:
        at = (max(days) + 1) * MINUTES - 1
        ledger.logged_in(at, one.name, hosts[0], succeeded=False)
        ledger.logged_in(at, one.name, hosts[0], succeeded=True)
    ledger.happened("guessed a password slowly", one.name, days, is_attack=True)


@on_somebody
def stolen_credential(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """A credential used from another place, for what it may do, for an hour or some days."""
    random = made.random
    day, host = random.randrange(period[0], period[1] - 3), made.outside()
    if random.random() < 0.25:
        host = made.address(random.choice(made.sites))
    days = set()
    for later in range(random.randint(1, 3)):
        begin = begin_of(made, one, day + later)
        for operation, resource in random.sample(one.doing, k=random.randint(1, len(one.doing))):
            at = begin + random.random() * 55
            days.add(ledger.decided(at, one.name, host, operation, resource, random.randint(1, 400)))
    ledger.happened("a stolen credential", one.name, days, is_attack=True, host=host)


@on_somebody
def swept_names(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """One or two changes tried on many names: fast or slow, from one host or several, some allowed."""
    random = made.random
    day, names = random.randrange(period[0], period[1] - 2), all_topics(made)
    hosts = [somewhere(made, one) for _ in range(random.randint(1, 3))]
    minutes = random.choice((3, 60, 600, 2500))
    allowed = random.choice((0.0, 0.0, 0.2, 0.6))
    operations = random.sample(CHANGES, k=random.randint(1, 2))
    begin, days = begin_of(made, one, day), set()
    for name in random.sample(names, k=random.randint(min(14, len(names)), min(90, len(names)))):
        for operation in operations:
            at, is_allowed = begin + random.random() * minutes, random.random() < allowed
            host = random.choice(hosts)
            days.add(ledger.decided(at, one.name, host, operation, ("TOPIC", name), is_allowed=is_allowed))
    ledger.happened("swept over names", one.name, days, is_attack=True)


@on_somebody
def read_out(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """Data carried off: many topics read in a day, or a few each day for a week or two."""
    random = made.random
    mine = {resource[1] for _, resource in one.doing}
    names = [name for name in all_topics(made) if name not in mine]
    random.shuffle(names)
    is_slow = random.random() < 0.6
    length = random.randint(5, 13) if is_slow else 1
    daily = random.randint(2, 6) if is_slow else random.randint(10, 50)
    day, host = random.randrange(period[0], max(period[0] + 1, period[1] - length)), somewhere(made, one)
    days = set()
    for number, name in enumerate(names[: length * daily]):
        at = begin_of(made, one, day + number // daily) + random.random() * 50
        days.add(ledger.decided(at, one.name, host, "READ", ("TOPIC", name), random.randint(2, 300)))
    what = "read out slowly" if is_slow else "read out at once"
    ledger.happened(what, one.name, {each for each in days if each < period[1]}, is_attack=True)


@on_somebody
def looked_around_slowly(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """Some topics a day looked for over days, existing and guessed, until all that matter are known."""
    random = made.random
    mine = {resource[1] for _, resource in one.doing}
    names = [name for name in all_topics(made) if name not in mine]
    names += [made.name_topic(random.randrange(len(made.topics))) + "s" for _ in range(20)]
    random.shuffle(names)
    length, daily = random.randint(5, 11), random.randint(4, 9)
    day, host = random.randrange(period[0], period[1] - length), somewhere(made, one)
    operation, allowed = random.choice(("DESCRIBE", "READ")), random.choice((0.0, 0.5, 1.0))
    days = set()
    for number, name in enumerate(names[: length * daily]):
        at = begin_of(made, one, day + number // daily) + random.random() * 50
        days.add(
            ledger.decided(
                at, one.name, host, operation, ("TOPIC", name), random.randint(1, 3),
                is_allowed=random.random() < allowed,
            )
        )  # fmt: skip
    ledger.happened("looked around slowly", one.name, days, is_attack=True)


@on_somebody
def woken_account(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """A credential that nobody used for weeks or months, and then somebody did."""
    random = made.random
    day = random.randrange(*period)
    one.away = (max(12, day - random.randint(26, 75)), 10_000)
    host, begin, days = somewhere(made, one), begin_of(made, one, day), set()
    for operation, resource in one.doing:
        at = begin + random.random() * 100
        days.add(ledger.decided(at, one.name, host, operation, resource, random.randint(1, 30)))
    ledger.happened("a woken account", one.name, days, is_attack=True)


@on_somebody
def probed_rights(made: Organisation, ledger: Ledger, period: Period, one: Actor) -> None:
    """Somebody who finds out what a credential may do: many operations, a few things, once or twice each."""
    random = made.random
    day, host = random.randrange(*period), somewhere(made, one)
    things: list[Resource] = [CLUSTER, ("TOPIC", random.choice(all_topics(made)))]
    things += [("GROUP", "probe"), ("TRANSACTIONAL_ID", "probe"), ("DELEGATION_TOKEN", "probe")]
    begin, days = begin_of(made, one, day), set()
    for operation in random.sample(EVERYTHING, k=random.randint(5, len(EVERYTHING))):
        for resource in things[: random.randint(1, 3)]:
            at = begin + random.random() * 90
            count = random.randint(1, 2)
            days.add(ledger.decided(at, one.name, host, operation, resource, count, is_allowed=False))
    ledger.happened("probed its rights", one.name, days, is_attack=True)


def abused_keepers(made: Organisation, ledger: Ledger, period: Period) -> None:
    """The brokers' own credential, with which somebody reads or deletes."""
    random = made.random
    one = next(each for each in made.actors if each.is_super)
    day, operation = random.randrange(*period), random.choice(("READ", "DELETE", "ALTER"))
    resource: Resource = ("TOPIC", random.choice(all_topics(made)))
    at = day * MINUTES + random.random() * 1300
    host = random.choice((one.hosts[0], made.outside()))
    found = ledger.decided(at, one.name, host, operation, resource, random.randint(1, 90), is_super=True)
    ledger.happened("abused the brokers' credential", one.name, {found}, is_attack=True)


ATTACKS: tuple[Attack, ...] = (
    sprayed_passwords,
    guessed_password,
    guessed_slowly,
    stolen_credential,
    swept_names,
    read_out,
    looked_around_slowly,
    woken_account,
    probed_rights,
)
ONCE: tuple[Attack, ...] = (abused_keepers,)
