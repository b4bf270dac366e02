"""Theorems about the queue in which owners take turns."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.session.fair_queue import FairQueue

OWNERS = "abcd"
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["add", "add first", "remove"]), st.sampled_from(OWNERS), st.integers(0, 3)
        ),
        st.tuples(st.sampled_from(["take", "take of all", "hold back", "release all"]), st.none(), st.none()),
        st.tuples(st.just("release"), st.sampled_from(OWNERS), st.none()),
    ),
    max_size=60,
)


class Model:
    """The queue as two lists of owners with their items, the first turn first."""

    def __init__(self) -> None:
        self.ready: list[tuple[str, list[int]]] = []
        self.held_back: list[tuple[str, list[int]]] = []

    def line_of(self, owner: str) -> list[tuple[str, list[int]]]:
        return self.held_back if any(each == owner for each, _ in self.held_back) else self.ready

    def items(self, owner: str) -> list[int]:
        return dict(self.held_back + self.ready).get(owner, [])

    def without(self, owner: str) -> None:
        self.ready = [each for each in self.ready if each[0] != owner]
        self.held_back = [each for each in self.held_back if each[0] != owner]

    def first(self, *, of_all: bool) -> tuple[str, int] | None:
        line = [*(self.held_back if of_all else ()), *self.ready]
        return (line[0][0], line[0][1][0]) if line else None

    def do(self, step: str, owner: str | None, item: int | None) -> None:
        if step in {"take", "take of all", "hold back"}:
            first = self.first(of_all=step == "take of all")
            if first is None:
                return
            if step == "hold back":
                self.held_back.append(self.ready.pop(0))
                return
            owner, item = first
            rest = [each for each in self.items(owner) if each != item]
            self.without(owner)
            self.ready += [(owner, rest)] if rest else []
        elif step == "release all":
            self.ready, self.held_back = self.held_back + self.ready, []
        elif owner is not None:
            self.of_owner(step, owner, item)

    def of_owner(self, step: str, owner: str, item: int | None) -> None:
        items = self.items(owner)
        if step == "release":
            if self.line_of(owner) is self.held_back:
                self.without(owner)
                self.ready.insert(0, (owner, items))
        elif item is not None and step == "add":
            if not items:
                self.ready.append((owner, [item]))
            elif item not in items:
                items.append(item)
        elif item is not None and step == "add first":
            rest = [each for each in items if each != item]
            self.without(owner)
            self.ready.append((owner, [item, *rest]))
        elif item in items:
            items.remove(item)
            if not items:
                self.without(owner)


def do(queue: FairQueue[str, int], step: str, owner: str | None, item: int | None) -> None:
    if step in {"take", "take of all", "hold back"}:
        first = queue.first_of_all if step == "take of all" else queue.first
        if first is not None and step == "hold back":
            queue.hold_back(first[0])
        elif first is not None:
            queue.take(*first)
    elif step == "release all":
        queue.release_all()
    elif owner is not None and item is None:
        queue.release(owner)
    elif owner is not None and item is not None:
        if step == "remove":
            queue.remove(owner, item)
        else:
            (queue.add if step == "add" else queue.add_first)(owner, item, lambda: None)


@given(STEPS)
def test_turns_follow_the_specified_order(steps: list[tuple[str, str | None, int | None]]) -> None:
    queue, model = FairQueue[str, int](), Model()
    for step in steps:
        do(queue, *step)
        model.do(*step)
        assert queue.first == model.first(of_all=False)
        assert queue.first_of_all == model.first(of_all=True)
        assert len(queue) == sum(len(model.items(owner)) for owner in OWNERS)
        assert queue.owners() == [owner for owner, _ in model.held_back + model.ready]
        for owner in OWNERS:
            assert (owner in queue) == bool(model.items(owner))
            if owner in queue:
                assert queue.first_of(owner) == model.items(owner)[0]


@given(st.lists(st.sampled_from(OWNERS), min_size=1, max_size=40))
def test_every_other_owner_has_a_turn_between_two_items_of_one_owner(arrivals: list[str]) -> None:
    queue = FairQueue[str, int]()
    taken: list[tuple[str, int]] = []
    for number, owner in enumerate(arrivals):
        queue.add(owner, number, lambda number=number: taken.append((arrivals[number], number)))  # type: ignore[misc]
    while (first := queue.first) is not None:
        queue.take(*first)()
    left = Counter(arrivals)
    since: dict[str, set[str]] = {}
    for owner, _ in taken:
        assert {each for each in left if each != owner} <= since.get(owner, set(left))
        left -= Counter([owner])
        since = {each: seen | {owner} for each, seen in since.items()} | {owner: set()}
    for owner in OWNERS:
        numbers = [number for each, number in taken if each == owner]
        assert numbers == sorted(numbers)
