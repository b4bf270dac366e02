"""Life cycles as data: states and events are values; a table lists all transitions, others raise.

The object that owns a state performs the IO; the table only names the next state. The reference page of the
states is generated from the tables.
"""

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from kustos.runtime import Symbol

StateT = TypeVar("StateT", bound=Symbol)
EventT = TypeVar("EventT", bound=Symbol)


class IllegalTransitionError(RuntimeError):
    """An event occurred in a state that does not allow it: a bug in the gateway."""


class LifeCycle(dict[tuple[StateT, EventT], StateT]):
    """Maps (state, event) to the next state; raises `IllegalTransitionError` for a pair without a row.

    It is a `dict` so that a transition costs one lookup: `self.state = LINK_LIFE[self.state, event]`.
    """

    def __init__(self, initial: StateT, rows: Iterable[tuple[StateT, EventT, StateT]]) -> None:
        self.initial = initial
        for state, event, target in rows:
            if (state, event) in self:
                raise ValueError(f"two rows for {event} in {state}")
            self[state, event] = target

    def __missing__(self, key: tuple[StateT, EventT]) -> NoReturn:
        """Raise, because the table has no row."""
        state, event = key
        raise IllegalTransitionError(f"{event} cannot occur in {state}")

    @property
    def states(self) -> list[StateT]:
        """All states, in the order of their class."""
        return list(type(self.initial))

    @property
    def final(self) -> list[StateT]:
        """The states that no event leaves."""
        left = {state for (state, _), target in self.items() if target is not state}
        return [state for state in self.states if state not in left]

    def diagram(self) -> str:
        """Return the diagram as Mermaid source: an arrow from state to state, labeled with its events."""
        arrows: dict[tuple[StateT, StateT], list[str]] = {}
        for (state, event), target in self.items():
            arrows.setdefault((state, target), []).append(event.value)
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.name}"]
        lines += [
            f"    {state.name} --> {target.name}: {'<br/>'.join(events)}"
            for (state, target), events in arrows.items()
        ]
        lines += [f"    {state.name} --> [*]" for state in self.final]
        return "\n".join(lines) + "\n"
