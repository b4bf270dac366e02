"""The cheapest choice of ACLs where prefixes and hosts cross, found by branch and bound.

With several host terms for the same names, the sets that ACLs match are no longer nested, and the cheapest
set that serves every need is a weighted set cover. Such conflicts are few and small: each is searched alone,
from the best plan known, for a bounded number of steps. The result never costs more than that plan.
"""

from collections.abc import Sequence
from typing import Final

STEPS_MAX: Final = 2_000
"""Branches of one search: well under a second. Searches that prove their result take a few dozen."""

NEEDS_MAX: Final = 96
CANDIDATES_MAX: Final = 384
"""A larger conflict keeps the better one of its two plans: a search of `STEPS_MAX` would seldom help it."""

_EPSILON: Final = 1e-9

Candidate = tuple[float, int]
"""The cost, and the needs that the candidate serves, as bits."""


def cheapest_cover(candidates: Sequence[Candidate], known_cost: float) -> list[int] | None:
    """Return the numbers of candidates that together serve every need more cheaply than `known_cost`.

    None if the steps, or the limits of size, do not suffice to find any.
    """
    everything = 0
    for _, mask in candidates:
        everything |= mask
    if everything.bit_count() > NEEDS_MAX:
        return None
    kept = _undominated(candidates)
    if len(kept) > CANDIDATES_MAX:
        return None
    search = _Search([candidates[number] for number in kept], known_cost)
    search.branch(everything, (), 0.0)
    return None if search.best is None else [kept[number] for number in search.best]


def _undominated(candidates: Sequence[Candidate]) -> list[int]:
    """Return the candidates without those that another one of no higher cost replaces."""
    order = sorted(range(len(candidates)), key=lambda n: (candidates[n][0], -candidates[n][1].bit_count(), n))
    kept: list[int] = []
    for number in order:
        mask = candidates[number][1]
        if mask and not any(mask & ~candidates[other][1] == 0 for other in kept):
            kept.append(number)
    return kept


class _Search:
    """Depth first, on the need that the fewest candidates serve; cut off by a bound from below."""

    def __init__(self, candidates: list[Candidate], known_cost: float) -> None:
        self._candidates = candidates
        self._cost = known_cost
        self._steps = STEPS_MAX
        self.best: tuple[int, ...] | None = None

    def branch(self, left: int, chosen: tuple[int, ...], cost: float) -> None:
        """Try to serve the needs left."""
        if not left:
            if cost < self._cost - _EPSILON:
                self._cost, self.best = cost, chosen
            return
        self._steps -= 1
        if self._steps < 0:
            return
        bound, able = self._look(left)
        if cost + bound > self._cost - _EPSILON:
            return
        for number in sorted(able, key=lambda n: self._share(n, left)):
            price, mask = self._candidates[number]
            self.branch(left & ~mask, (*chosen, number), cost + price)

    def _share(self, number: int, left: int) -> float:
        price, mask = self._candidates[number]
        return price / (mask & left).bit_count()

    def _look(self, left: int) -> tuple[float, list[int]]:
        """Return a lower bound of the cost of the rest, and the candidates for the need with the fewest."""
        open_ones = [
            (number, mask & left, price / (mask & left).bit_count())
            for number, (price, mask) in enumerate(self._candidates)
            if mask & left
        ]
        bound, fewest = 0.0, [number for number, _, _ in open_ones]
        rest = left
        while rest:
            need = rest & -rest
            rest ^= need
            able = [(number, share) for number, mask, share in open_ones if mask & need]
            bound += min([share for _, share in able])
            if len(able) < len(fewest):
                fewest = [number for number, _ in able]
        return bound, fewest
