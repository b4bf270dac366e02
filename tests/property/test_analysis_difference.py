"""Theorems about `diff`: it is exactly where two authorizers disagree."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding
from kustos.analysis import Difference, Direction, Probe, Rules, diff
from testkit.acls.small_sets import (
    acl_sets,
    ask,
    authorizer_of,
    every_probe,
    probes,
    rules,
)

Sets = tuple[list[AclBinding], list[AclBinding]]


@st.composite
def set_pairs(draw: st.DrawFn) -> Sets:
    """Draw two sets that share some ACLs."""
    every = draw(acl_sets)
    shares = draw(
        st.lists(st.sampled_from(["old", "new", "both", "both"]), min_size=len(every), max_size=len(every))
    )
    pairs = list(zip(every, shares, strict=True))
    return [acl for acl, share in pairs if share != "new"], [acl for acl, share in pairs if share != "old"]


def direction_of(difference: Difference, probe: Probe) -> Direction | None:
    directions = [change.direction for change in difference.changes if probe in change.region]
    assert len(directions) <= 1, "changes are disjoint"
    return directions[0] if directions else None


def expected_direction(was: bool, now: bool) -> Direction | None:
    return None if was == now else Direction.GAINED if now else Direction.LOST


@settings(deadline=None)
@given(set_pairs(), rules, rules, st.booleans(), st.lists(probes, min_size=20, max_size=20))
def test_a_probe_changes_its_decision_exactly_if_it_lies_in_the_diff(
    sets: Sets, old_rules: Rules, other: Rules, same: bool, asked: list[Probe]
) -> None:
    new_rules = old_rules if same else other
    difference = diff(*sets, old_rules, new_rules)
    before, after = authorizer_of(sets[0], old_rules), authorizer_of(sets[1], new_rules)
    for probe in asked:
        expected = expected_direction(ask(before, probe), ask(after, probe))
        assert direction_of(difference, probe) is expected, probe


@settings(max_examples=60, deadline=None)
@given(set_pairs(), rules, rules, st.booleans())
def test_the_diff_is_where_exhaustive_probing_finds_a_change(
    sets: Sets, old_rules: Rules, other: Rules, same: bool
) -> None:
    new_rules = old_rules if same else other
    difference = diff(*sets, old_rules, new_rules)
    before, after = authorizer_of(sets[0], old_rules), authorizer_of(sets[1], new_rules)
    found = False
    for probe in every_probe(sets[0] + sets[1], old_rules, new_rules):
        expected = expected_direction(ask(before, probe), ask(after, probe))
        found = found or expected is not None
        if expected is not None or difference.changes:
            assert direction_of(difference, probe) is expected, probe
    assert difference.is_empty is not found


@settings(deadline=None)
@given(set_pairs(), rules)
def test_every_change_has_a_witness_that_changes(sets: Sets, some_rules: Rules) -> None:
    before, after = (authorizer_of(acls, some_rules) for acls in sets)
    for change in diff(*sets, some_rules).changes:
        witness = change.region.witness()
        assert witness in change.region
        assert expected_direction(ask(before, witness), ask(after, witness)) is change.direction


@settings(deadline=None)
@given(acl_sets, rules)
def test_a_set_does_not_differ_from_itself_in_another_order(
    acls: list[AclBinding], some_rules: Rules
) -> None:
    assert diff(acls, [*reversed(acls), *acls], some_rules).is_empty


@settings(deadline=None)
@given(set_pairs(), rules, st.integers(0, 3))
def test_a_cut_diff_is_never_empty_and_never_wrong(sets: Sets, some_rules: Rules, regions_max: int) -> None:
    whole = diff(*sets, some_rules)
    cut = diff(*sets, some_rules, regions_max=regions_max)
    assert cut.is_empty is whole.is_empty
    assert set(cut.changes) <= set(whole.changes)
    assert cut.is_cut is (len(cut.changes) < len(whole.changes))


@settings(deadline=None)
@given(set_pairs(), rules)
def test_the_diff_of_the_other_way_round_has_the_same_regions_reversed(sets: Sets, some_rules: Rules) -> None:
    there = {
        (change.region, change.direction is Direction.GAINED) for change in diff(*sets, some_rules).changes
    }
    back = {
        (change.region, change.direction is Direction.LOST)
        for change in diff(sets[1], sets[0], some_rules).changes
    }
    assert there == back
