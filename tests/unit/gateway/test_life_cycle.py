"""Life cycles as data: an event with a row leads to its state, others raise, and the diagram is complete."""

import pytest

from kustos.gateway.life_cycle import IllegalTransitionError, LifeCycle
from kustos.runtime import Symbol
from scripts.generate_docs import LIFE_CYCLES


class Door(Symbol):
    """The states of a door."""

    OPEN = "It is open."
    SHUT = "It is shut."
    GONE = "There is no door."


class Push(Symbol):
    """What happens to a door."""

    SHUTS = "somebody shuts it"
    SLAMS = "the wind slams it"
    BREAKS = "somebody breaks it"


ROWS = (
    (Door.OPEN, Push.SHUTS, Door.SHUT),
    (Door.SHUT, Push.SHUTS, Door.SHUT),
    (Door.OPEN, Push.SLAMS, Door.SHUT),
    (Door.SHUT, Push.BREAKS, Door.GONE),
)


def test_an_event_leads_to_the_next_state_and_one_without_a_row_raises() -> None:
    life = LifeCycle[Door, Push](Door.OPEN, ROWS)
    assert life[Door.OPEN, Push.SHUTS] is Door.SHUT
    with pytest.raises(IllegalTransitionError, match=r"Push\.BREAKS cannot occur in Door\.OPEN"):
        life[Door.OPEN, Push.BREAKS]
    assert life.final == [Door.GONE]
    assert life.diagram() == (
        "stateDiagram-v2\n"
        "    [*] --> OPEN\n"
        "    OPEN --> SHUT: somebody shuts it<br/>the wind slams it\n"
        "    SHUT --> SHUT: somebody shuts it\n"
        "    SHUT --> GONE: somebody breaks it\n"
        "    GONE --> [*]\n"
    )


def test_two_rows_for_one_event_in_one_state_are_refused() -> None:
    with pytest.raises(ValueError, match="two rows"):
        LifeCycle(Door.OPEN, (*ROWS, (Door.OPEN, Push.SHUTS, Door.GONE)))


@pytest.mark.parametrize("title", LIFE_CYCLES)
def test_every_state_is_reached_and_every_event_is_used(title: str) -> None:
    life = LIFE_CYCLES[title]
    reached: set[Symbol] = {life.initial}
    for _ in life:
        reached |= {target for (state, _), target in life.items() if state in reached}
    assert reached == set(life.states)
    events: set[Symbol] = {event for _, event in life}
    kinds = {type(event) for event in events}
    assert events == {event for kind in kinds for event in kind}
    assert life.final, "every life ends"
