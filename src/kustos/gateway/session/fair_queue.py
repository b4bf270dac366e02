"""A queue in which owners take turns, so that many items of one owner do not lengthen the wait of another.

The items of one owner are in order of arrival. Once one is taken, the others of its owner come behind those
of all other owners. An owner that cannot use its turn now is held back: it is passed over until it is
released, and then has the next turn.

Each call takes constant time, however many owners and items wait, except `owners` and `release_all`.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Owner = TypeVar("Owner")
Item = TypeVar("Item")

Callback = Callable[[], object]
"""Lets an item go on."""


class FairQueue(Generic[Owner, Item]):
    """The items that wait, with their callbacks."""

    __slots__ = ("_count", "_held_back", "_ready")

    def __init__(self) -> None:
        # OrderedDicts: to find the first key of a dict takes longer the more keys before it were removed
        self._ready: Final[OrderedDict[Owner, OrderedDict[Item, Callback]]] = OrderedDict()
        self._held_back: Final[OrderedDict[Owner, OrderedDict[Item, Callback]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, owner: object) -> bool:
        return owner in self._ready or owner in self._held_back

    @property
    def first(self) -> tuple[Owner, Item] | None:
        """The owner whose turn it is and its first item; None if no owner waits, or all are held back."""
        for owner, items in self._ready.items():
            return owner, next(iter(items))
        return None

    @property
    def first_of_all(self) -> tuple[Owner, Item] | None:
        """The same among all owners: those held back come first, in the order of their turns."""
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
        """Let an item wait, behind the others of its owner; one that waits keeps its place."""
        items = self._queue_of(owner).setdefault(owner, OrderedDict())
        self._count += item not in items
        items[item] = go_on

    def add_first(self, owner: Owner, item: Item, go_on: Callback) -> None:
        """Let an item wait before the others of its owner, which had a turn: its next one comes last."""
        items = self._queue_of(owner).pop(owner, OrderedDict())
        self._count += item not in items
        items[item] = go_on
        items.move_to_end(item, last=False)
        self._ready[owner] = items

    def take(self, owner: Owner, item: Item) -> Callback:
        """Take an item out, as its turn has come; return its callback."""
        items = self._queue_of(owner).pop(owner)
        go_on = items.pop(item)
        self._count -= 1
        if items:
            self._ready[owner] = items
        return go_on

    def remove(self, owner: Owner, item: Item) -> bool:
        """Remove an item that waits no longer; return whether it waited. Its owner keeps its turn."""
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
        """Let an owner that was held back have the next turn; another one is left as it is."""
        items = self._held_back.pop(owner, None)
        if items is not None:
            self._ready[owner] = items
            self._ready.move_to_end(owner, last=False)

    def release_all(self) -> None:
        """Let all that were held back have the next turns, in their order."""
        for owner in reversed(tuple(self._held_back)):
            self.release(owner)

    def _queue_of(self, owner: Owner) -> OrderedDict[Owner, OrderedDict[Item, Callback]]:
        return self._held_back if owner in self._held_back else self._ready
