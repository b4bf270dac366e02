"""A whole month from a seed."""

from random import Random

from testkit.months import injections, lookalikes, traffic, world
from testkit.months.values import Label, Month, Ranges, Trail


def merged(labels: list[Label]) -> tuple[Label, ...]:
    """Return the labels, merging those of one kind and principal on adjacent days."""
    merged: list[Label] = []
    for label in sorted(labels):
        last = merged[-1] if merged else None
        if last and last[:2] == label[:2] and label.first_day <= last.last_day:
            merged[-1] = last._replace(last_day=max(last.last_day, label.last_day))
        else:
            merged.append(label)
    return tuple(merged)


def make_month(seed: int, ranges: Ranges) -> Month:
    """Return the month of a seed: the same for the same seed and ranges."""
    random = Random(seed)
    start = random.choice(ranges.starts)
    history, window = random.randint(*ranges.history_days), random.randint(*ranges.window_days)
    plan = lookalikes.Plan(start, history, history + window)
    people, trail = world.build(random, ranges), Trail()
    lookalikes.plan_all(people, trail, plan)
    labels = injections.inject_all(people, trail, plan)
    traffic.live(people, trail, start, plan.end)
    return Month(start, history, window, trail, merged(labels))
