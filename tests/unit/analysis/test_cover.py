"""The search for the fewest pieces: never more than the fewest, and only what covers everything."""

import pytest

from kustos.analysis.cover import Allow, Cover, smallest_choice

ROWS = (0b0000000_1111111, 0b1111111_0000000)
COLUMNS = (0b0001111_0001111, 0b0110000_0110000, 0b1000000_1000000)
EVERYTHING = ROWS[0] | ROWS[1]
SINGLES = tuple(1 << cell for cell in range(14))


def test_the_widest_piece_first_is_not_the_answer() -> None:
    allows = tuple(Allow(cells, 0) for cells in (*COLUMNS, *ROWS, *SINGLES))
    assert smallest_choice(EVERYTHING, 0, allows, (), pieces_max=4) == Cover((3, 4), ())
    assert smallest_choice(EVERYTHING, 0, allows, (), pieces_max=1) is None


def test_denies_are_chosen_by_the_same_rule() -> None:
    found = smallest_choice(0, EVERYTHING, (), (*COLUMNS, *ROWS, *SINGLES), pieces_max=4)
    assert found == Cover((), (3, 4))


@pytest.mark.parametrize(
    ("allows", "denies", "expected"),
    [
        ((Allow(0b11, 0b100),), (0b100,), Cover((0,), (0,))),
        ((Allow(0b11, 0b100), Allow(0b01, 0), Allow(0b10, 0)), (), Cover((1, 2), ())),
        ((Allow(0b11, 0b100),), (0b1000,), None),
        ((Allow(0b01, 0),), (), None),
    ],
)
def test_what_is_allowed_beyond_is_owed(
    allows: tuple[Allow, ...], denies: tuple[int, ...], expected: Cover | None
) -> None:
    assert smallest_choice(0b11, 0, allows, denies, pieces_max=3) == expected


def test_nothing_takes_no_pieces() -> None:
    assert smallest_choice(0, 0, (), (), pieces_max=0) == Cover((), ())
