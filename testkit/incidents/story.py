"""A whole story from a seed: habits for months, and in the last weeks the incidents."""

from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from testkit.incidents.attacks import ATTACKS, ONCE
from testkit.incidents.ledger import Ledger
from testkit.incidents.living import lived
from testkit.incidents.oddities import ODDITIES
from testkit.incidents.organisation import founded

EPOCH = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class Story:
    """The ledger, its first day, the first judged day, and the day after the last one."""

    start: date
    judged: date
    end: date
    ledger: Ledger

    def day(self, of: date) -> int:
        """Return a date as a day of the story."""
        return (of - self.start).days


def told(seed: int) -> Story:
    """Return the story of a seed: the same for the same seed."""
    random = Random(f"incidents {seed}")
    start = EPOCH + timedelta(days=random.randrange(1000))
    before, judged = random.randint(63, 100), random.randint(25, 33)
    made, ledger, period = founded(random, start.weekday()), Ledger(), (before, before + judged)
    events = [event for event in ATTACKS for _ in range(random.randint(1, 2))]
    events += [event for event in ODDITIES for _ in range(random.randint(0, 2))]
    random.shuffle(events)
    for event in (*ONCE, *events):
        event(made, ledger, period)
    lived(made, ledger, period[1])
    for key in [key for key in ledger.decisions if key.day >= period[1]]:
        del ledger.decisions[key]
    return Story(start, start + timedelta(days=before), start + timedelta(days=before + judged), ledger)
