"""A fair queue: owners take turns, so many items of one owner do not lengthen the wait of another.

The items of one owner are in order of arrival. When one is taken, the others of its owner move behind the
items of all other owners. An owner that cannot use its turn now is held back: the queue passes over it until
it is released, and then it has the next turn.

Each call takes constant time, however many owners and items wait, except `owners` and `release_all`.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Owner = TypeVar("Owner")
Item = TypeVar("Item")

Callback = Callable[[], object]
"""Resumes an item."""


class FairQueue(Generic[Owner, Item]):
    """The items that wait, with their callbacks."""

    __slots__ = ("_count", "_held_back", "_ready")

    def __init__(self) -> None:
        # OrderedDicts: finding the first key of a dict takes longer the more keys before it were removed
        self._ready: Final[OrderedDict[Owner, OrderedDict[Item, Callback]]] = OrderedDict()
        self._held_back: Final[OrderedDict[Owner, OrderedDict[Item, Callback]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, owner: object) -> bool:
        return owner in self._ready or owner in self._held_back

    @property
    def first(self) -> tuple[Owner, Item] | None:
        """The next owner and its first item; None if no owner waits, or all are held back."""
        for owner, items in self._ready.items():
            return owner, next(iter(items))
        return None

    @property
    def first_of_all(self) -> tuple[Owner, Item] | None:
        """The same among all owners: held-back owners come first, in the order of their turns."""
        for owner, items in self._held_back.items():
            return owner, next(iter(items))
        return self.first

    def owners(self) -> list[Owner]:
        """Return all owners."""
        return [*self._held_back, *self._ready]

    def first_of(self, owner: Owner) -> Item:
        """Return the first item of an owner that waits."""
        return next(iter(self._queue_of(owner)[owner]))

    def add(self, owner: Owner, item: Item, go_on: Callback) -> None:
        """Add an item behind the others of its owner; an item that waits already keeps its place."""
        items = self._queue_of(owner).setdefault(owner, OrderedDict())
        self._count += item not in items
        items[item] = go_on

    def add_first(self, owner: Owner, item: Item, go_on: Callback) -> None:
        """Add an item before the others of its owner. The owner had a turn, so its next turn comes last."""
        items = self._queue_of(owner).pop(owner, OrderedDict())
        self._count += item not in items
        items[item] = go_on
        items.move_to_end(item, last=False)
        self._ready[owner] = items

    def take(self, owner: Owner, item: Item) -> Callback:
        """Remove the item whose turn it is; return its callback."""
        items = self._queue_of(owner).pop(owner)
        go_on = items.pop(item)
        self._count -= 1
        if items:
            self._ready[owner] = items
        return go_on

    def remove(self, owner: Owner, item: Item) -> bool:
        """Remove an item that no longer waits; return whether it waited. Its owner keeps its turn."""
        queue = self._queue_of(owner)
        items = queue.get(owner)
        if items is None or items.pop(item, None) is None:
            return False
        self._count -= 1
        if not items:
            del queue[owner]
        return True

    def hold_back(self, owner: Owner) -> None:
        """Pass over an owner until it is released."""
        self._held_back[owner] = self._ready.pop(owner)

    def release(self, owner: Owner) -> None:
        """Give the next turn to an owner that was held back; do nothing for any other owner."""
        items = self._held_back.pop(owner, None)
        if items is not None:
            self._ready[owner] = items
            self._ready.move_to_end(owner, last=False)

    def release_all(self) -> None:
        """Give the next turns to all owners that were held back, in their order."""
        for owner in reversed(tuple(self._held_back)):
            self.release(owner)

    def _queue_of(self, owner: Owner) -> OrderedDict[Owner, OrderedDict[Item, Callback]]:
        return self._held_back if owner in self._held_back else self._ready
