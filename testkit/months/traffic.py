"""The ordinary days: profiles of hours and weekdays, deployments, retries, holidays, and harmless denials."""

import math
from datetime import date, timedelta

from testkit.months.values import Trail
from testkit.months.world import Principal, Use, World


def is_active(world: World, one: Principal, start: date, day: int, holidays: frozenset[int]) -> bool:
    """Return whether a day is a working day of a principal."""
    if not one.first_day <= day <= one.last_day or one.silent[0] <= day < one.silent[1]:
        return False
    if one.role in ("office", "human") and day in holidays:
        return False
    local = start + timedelta(days=day)
    if one.day_of_month:
        return local.day == one.day_of_month
    if local.weekday() not in one.weekdays:
        return one.weekend_presence > 0 and world.random.random() < one.weekend_presence / 2
    return one.presence >= 1 or world.random.random() < one.presence


def hours_of(world: World, one: Principal, day: int) -> list[int]:
    """Return the working hours of a day, counted from the start of the history."""
    hours = list(one.hours)
    if one.role == "human":
        hours = sorted(world.random.sample(hours, k=world.random.randint(3, len(hours))))
        if world.random.random() < 0.06:  # now and then a long evening
            hours += range(hours[-1] + 1, hours[-1] + world.random.randint(2, 3))
    return [hour for hour in (day * 24 + hour - one.zone for hour in hours) if hour >= 0]


def amount(world: World, rate: float) -> int:
    """Return a count around a rate, skewed as counts of requests are."""
    noise = world.ranges.noise
    return max(1, round(rate * math.exp(world.random.gauss(0, noise) - noise * noise / 2)))


def do_uses(world: World, trail: Trail, one: Principal, uses: list[Use], hours: list[int]) -> None:
    """Record these uses by a principal in these hours, from its current hosts."""
    hosts = one.hosts
    if one.role == "human":
        team, pool = world.random.choices(one.pools, weights=[8, 4, 2, 1, 1])[0]
        hosts = [world.host(team, pool)]
    kind = "SuperUser" if one.is_super else None
    for use in uses:
        if one.role == "human" and world.random.random() < 0.4:
            continue
        for host in hosts:
            at = [(hour, amount(world, use.rate / len(hosts))) for hour in hours]
            trail.use(one.name, host, use.operation, use.resource, at, rule_kind=kind)


def deploy(world: World, one: Principal) -> None:
    """Move all pods of a service to new addresses of its pools."""
    one.hosts = [world.host(*world.random.choice(one.pools)) for _ in one.hosts]


def scale(world: World, one: Principal) -> None:
    """Add or remove a pod."""
    if len(one.hosts) > 1 and world.random.random() < 0.5:
        one.hosts.pop()
    elif len(one.hosts) < 6:
        one.hosts.append(world.host(*world.random.choice(one.pools)))


def blip(world: World, trail: Trail, one: Principal, hours: list[int]) -> None:
    """Record a few denials at once, like those of a rebalance during a change of ACLs."""
    use = world.random.choice(one.uses)
    hour = world.random.choice(hours)
    count = world.draw(world.ranges.blip_denials)
    host = world.random.choice(one.hosts)
    trail.use(one.name, host, use.operation, use.resource, [(hour, count)], decision="DENIED")


def live(world: World, trail: Trail, start: date, days: int) -> None:
    """Record the ordinary days of everybody in the trail."""
    random = world.random
    holidays = frozenset(random.sample(range(days), k=max(2, days // 30)))
    steady = [one for one in world.principals if one.role == "steady"]
    chronic = {one.name: float(world.draw(world.ranges.chronic_denials)) for one in steady[:2]}
    listers = {one.name for one in random.sample(steady, k=min(2, len(steady)))}
    every = [name for team in world.topics for name in team]
    for day in range(days):
        for one in world.principals:
            if not is_active(world, one, start, day, holidays):
                continue
            if one.deploy_every_days and random.random() < 1 / one.deploy_every_days:
                deploy(world, one)
            elif one.role == "steady" and random.random() < 0.15:
                scale(world, one)
            hours = hours_of(world, one, day)
            if not hours:
                continue
            do_uses(world, trail, one, one.uses, hours)
            if one.name in chronic:
                at = [(hour, amount(world, chronic[one.name])) for hour in hours]
                resource = ("TOPIC", f"legacy{world.separator}{one.team}")
                trail.use(one.name, one.hosts[0], "WRITE", resource, at, decision="DENIED")
            if one.name in listers and random.random() < 0.2:
                for name in every:
                    trail.use(
                        one.name, one.hosts[0], "DESCRIBE", ("TOPIC", name), [(hours[0], 1)],
                        decision=random.choice(("ALLOWED", "DENIED")), access="LISTING",
                    )  # fmt: skip
            if one.hosts and not one.is_super and random.random() < 0.02:
                blip(world, trail, one, hours)
