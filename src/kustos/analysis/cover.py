"""The smallest choice of allows and denies with a given outcome: an exact search with a limit.

Cells are bits. An allow must cover each wanted cell; a deny must cover every other cell that an allow covers
(a debt). No deny covers a wanted cell, so the order does not matter: the search chooses allows first, then
denies for the debts.

The search deepens iteratively: it looks for answers of one, two, three ... pieces, so the first answer is a
smallest one. Each step covers the cell that the fewest pieces can cover, which keeps the search narrow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

SEARCH_STEPS_MAX: Final = 4_000
"""Steps of one search, about 50 ms. Past the limit the search reports no smaller choice, which is safe."""

CHOICES_KEPT_MAX: Final = 128
"""Choices in the cache: the same few shapes of related ACLs occur many times in one set."""


class Allow(NamedTuple):
    """The cells that an allow covers: wanted cells and debts."""

    wanted: int
    debts: int


@dataclass(frozen=True, slots=True)
class Cover:
    """Positions of the chosen pieces among the candidates."""

    allows: tuple[int, ...]
    denies: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of pieces."""
        return len(self.allows) + len(self.denies)


@lru_cache(maxsize=CHOICES_KEPT_MAX)
def smallest_choice(
    wanted: int, debts: int, allows: tuple[Allow, ...], denies: tuple[int, ...], *, pieces_max: int
) -> Cover | None:
    """Return a smallest choice that covers `wanted` and all debts, including the initial `debts`.

    None if no choice has at most `pieces_max` pieces, or the search found no choice within SEARCH_STEPS_MAX.
    """
    search = _CoverSearch(wanted, debts, allows, denies)
    for pieces in range(pieces_max + 1):
        found = search.within(pieces)
        if found is not None or search.is_exhausted:
            return found
    return None


class _CoverSearch:
    def __init__(self, wanted: int, debts: int, allows: Sequence[Allow], denies: Sequence[int]) -> None:
        every_debt = debts
        for allow in allows:
            every_debt |= allow.debts
        blocks = _blocks(
            [allow.wanted for allow in allows] + [wanted, every_debt],
            [allow.debts for allow in allows] + [*denies, debts],
        )
        self._wanted = _squeezed(wanted, blocks)
        self._debts = _squeezed(debts, blocks)
        squeezed = [
            (_squeezed(allow.wanted & wanted, blocks), _squeezed(allow.debts, blocks), position)
            for position, allow in enumerate(allows)
        ]
        self._allows = _undominated_allows(squeezed)
        self._denies = _undominated_denies(
            [(_squeezed(deny & every_debt, blocks), position) for position, deny in enumerate(denies)]
        )
        self._steps_left = SEARCH_STEPS_MAX
        self._failed: dict[tuple[int, int], int] = {}

    @property
    def is_exhausted(self) -> bool:
        return self._steps_left <= 0

    def within(self, pieces: int) -> Cover | None:
        """Return a choice of at most this many pieces."""
        self._failed.clear()
        found = self._cover(self._wanted, self._debts, pieces)
        if found is None:
            return None
        allows = tuple([position for is_allow, position in found if is_allow])
        return Cover(allows, tuple([position for is_allow, position in found if not is_allow]))

    def _cover(self, wanted: int, debts: int, pieces: int) -> list[tuple[bool, int]] | None:
        if not wanted and not debts:
            return []
        key = wanted, debts
        if pieces <= 0 or self._steps_left <= 0 or self._failed.get(key, -1) >= pieces:
            return None
        self._steps_left -= 1
        found = self._allow(wanted, debts, pieces) if wanted else self._deny(debts, pieces)
        if found is None:
            self._failed[key] = pieces
        return found

    def _allow(self, wanted: int, debts: int, pieces: int) -> list[tuple[bool, int]] | None:
        most = max((allow[0] & wanted).bit_count() for allow in self._allows) if self._allows else 0
        if not most or wanted.bit_count() > most * pieces:
            return None
        for covered, owed, position in _narrowest(wanted, self._allows):
            rest = self._cover(wanted & ~covered, debts | owed, pieces - 1)
            if rest is not None:
                return [(True, position), *rest]
        return None

    def _deny(self, debts: int, pieces: int) -> list[tuple[bool, int]] | None:
        most = max((deny[0] & debts).bit_count() for deny in self._denies) if self._denies else 0
        if not most or debts.bit_count() > most * pieces:
            return None
        for covered, _, position in _narrowest(debts, self._denies):
            rest = self._cover(0, debts & ~covered, pieces - 1)
            if rest is not None:
                return [(False, position), *rest]
        return None


Piece = tuple[int, int, int]
"""Covered cells, debts, position among the candidates."""


def _narrowest(cells: int, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces that cover the cell with the fewest covering pieces, widest first."""
    best: list[Piece] | None = None
    while cells:
        bit = cells & -cells
        cells ^= bit
        covering = [piece for piece in pieces if piece[0] & bit]
        if best is None or len(covering) < len(best):
            best = covering
            if len(best) <= 1:
                break
    return sorted(best or (), key=lambda piece: (-piece[0].bit_count(), piece[1].bit_count(), piece[2]))


def _blocks(*groups: Iterable[int]) -> list[int]:
    """Return the cells grouped into blocks that no mask splits."""
    masks = dict.fromkeys(mask for group in groups for mask in group if mask)
    whole = 0
    for mask in masks:
        whole |= mask
    blocks = [whole] if whole else []
    for mask in masks:
        divided: list[int] = []
        for block in blocks:
            inside = block & mask
            divided += [part for part in (inside, block ^ inside) if part]
        blocks = divided
    return blocks


def _squeezed(mask: int, blocks: list[int]) -> int:
    """Return the mask compressed to one bit per block."""
    squeezed = 0
    for position, block in enumerate(blocks):
        if block & mask:
            squeezed |= 1 << position
    return squeezed


def _undominated_allows(pieces: list[Piece]) -> list[Piece]:
    """Return the allows without another allow that covers at least the same cells with no more debts."""
    kept: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (-piece[0].bit_count(), piece[1].bit_count(), piece[2])):
        if piece[0] and not any(not piece[0] & ~k[0] and not k[1] & ~piece[1] for k in kept):
            kept.append(piece)
    return kept


def _undominated_denies(pieces: list[tuple[int, int]]) -> list[Piece]:
    """Return the denies without another deny that covers at least the same cells."""
    kept: list[Piece] = []
    for covered, position in sorted(pieces, key=lambda piece: (-piece[0].bit_count(), piece[1])):
        if covered and not any(not covered & ~k[0] for k in kept):
            kept.append((covered, 0, position))
    return kept
