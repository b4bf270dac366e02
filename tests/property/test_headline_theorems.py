"""Theorems about the headline of a difference: it is true, and counts everything it omits."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    ResourcePattern,
)
from kustos.analysis import Claim, Consequence, Headline, Probe, Rules, diff, headline_of
from kustos.analysis.importance import by_importance, most_important, order_of
from kustos.authorizer import Decision, StandardAuthorizer
from testkit.acls.small_sets import (
    acl_sets,
    ask,
    authorizer_of,
    every_probe,
    plain_bindings,
    probes,
    rules,
)

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
Sets = tuple[list[AclBinding], list[AclBinding]]


@st.composite
def set_pairs(draw: st.DrawFn) -> Sets:
    """Draw two sets that share most ACLs; sometimes one of `User:*` on every topic is added or removed."""
    every = draw(acl_sets | st.lists(plain_bindings, min_size=3, max_size=9, unique=True))
    share = st.sampled_from(["old", "new", "both", "both", "both"])
    shares = draw(st.lists(share, min_size=len(every), max_size=len(every)))
    pairs = list(zip(every, shares, strict=True))
    if draw(st.booleans()):
        of_everyone = draw(plain_bindings)
        name = draw(st.sampled_from(["*", of_everyone.pattern.name]))
        binding = AclBinding(
            replace(of_everyone.pattern, name=name), replace(of_everyone.entry, principal="User:*")
        )
        pairs = [pair for pair in pairs if pair[0] != binding]
        pairs.append((binding, draw(st.sampled_from(["old", "new"]))))
    return [acl for acl, share in pairs if share != "new"], [acl for acl, share in pairs if share != "old"]


def told(headline: Headline) -> list[Consequence]:
    return [*headline.gained, *headline.lost]


def decide(authorizer: StandardAuthorizer, probe: Probe) -> Decision:
    session = authorizer.session(KafkaPrincipal.parse(probe.principal), probe.host)
    return session.decide(probe.operation, probe.resource_type, probe.name)


def is_true(
    consequence: Consequence, probe: Probe, before: StandardAuthorizer, after: StandardAuthorizer
) -> bool:
    """Return whether the claim is true for a question in the region, according to the authorizer."""
    was, now = decide(before, probe), decide(after, probe)
    gained = consequence.direction.value == "GAINED"
    rule = now.rule.binding
    by = None if rule is None else rule.entry.permission_type
    match consequence.claim:
        case Claim.CHANGED:
            return (was.allowed, now.allowed) == (not gained, gained)
        case Claim.ALLOWED:
            return now.allowed or (consequence.others > 0 and by is DENY)
        case Claim.DENIED:
            return not now.allowed or (consequence.others > 0 and by is ALLOW)
        case Claim.NOT_DENIED:
            return by is not DENY or consequence.others > 0


def speaks_of(binding: AclBinding, probe: Probe) -> bool:
    """Return whether an ACL alone affects the decision on a question."""
    if binding.entry.permission_type is ALLOW:
        return ask(authorizer_of([binding], Rules()), probe)
    everything = AclBinding(
        ResourcePattern(probe.resource_type, probe.name),
        AccessControlEntry(probe.principal, "*", AclOperation.ALL, ALLOW),
    )
    return not ask(authorizer_of([everything, binding], Rules()), probe)


@settings(deadline=None)
@given(set_pairs(), rules, st.integers(1, 4))
def test_each_region_belongs_to_one_consequence_or_to_the_rest(
    sets: Sets, some_rules: Rules, consequences_max: int
) -> None:
    difference = diff(*sets, some_rules)
    headline = headline_of(difference, *sets, some_rules, consequences_max=consequences_max)
    parts = [*(each.changes for each in told(headline)), headline.gained_rest.changes]
    parts.append(headline.lost_rest.changes)
    assert Counter(change for part in parts for change in part) == Counter(difference.changes)
    for side in (headline.gained, headline.lost):
        assert len(side) <= consequences_max
        assert [order_of(each.region) for each in side] == sorted(order_of(each.region) for each in side)
    assert all(each.changes for each in told(headline))
    assert not headline.gained_rest.changes or len(headline.gained) == consequences_max


@settings(deadline=None)
@given(set_pairs(), rules, st.integers(0, 5))
def test_each_region_is_shown_or_left_out_once_the_important_ones_first(
    sets: Sets, some_rules: Rules, shown_max: int
) -> None:
    changes = diff(*sets, some_rules).changes
    shown = most_important(changes, shown_max)
    assert Counter([*shown.changes, *shown.gained_left, *shown.lost_left]) == Counter(changes)
    assert len(shown.changes) == min(shown_max, len(changes))
    for left in (shown.gained_left, shown.lost_left):
        for one in left:
            beside = [each for each in shown.changes if each.direction is one.direction]
            assert all(order_of(each.region) <= order_of(one.region) for each in beside)


@settings(deadline=None)
@given(set_pairs(), rules, rules, st.booleans(), st.lists(probes, min_size=20, max_size=20))
def test_the_headline_is_true_of_drawn_questions(
    sets: Sets, old_rules: Rules, other: Rules, same: bool, asked: list[Probe]
) -> None:
    new_rules = old_rules if same else other
    headline = headline_of(diff(*sets, old_rules, new_rules), *sets, new_rules)
    before, after = authorizer_of(sets[0], old_rules), authorizer_of(sets[1], new_rules)
    for each in told(headline):
        for probe in [*asked, each.region.witness(), *(change.region.witness() for change in each.changes)]:
            assert probe not in each.region or is_true(each, probe, before, after), (each, probe)


@settings(max_examples=25, deadline=None)
@given(set_pairs(), rules)
def test_the_headline_is_true_of_every_class_and_counts_those_that_speak_against_it(
    sets: Sets, some_rules: Rules
) -> None:
    headline = headline_of(diff(*sets, some_rules), *sets, some_rules)
    before, after = (authorizer_of(acls, some_rules) for acls in sets)
    consequences = told(headline)
    if not consequences:
        return
    near = list(every_probe(sets[0] + sets[1], some_rules))
    for each in consequences:
        inside = [probe for probe in near if probe in each.region]
        assert all(is_true(each, probe, before, after) for probe in inside), each
        assert all(change.region.witness() in each.region for change in each.changes)
        if each.others:
            opposite = ALLOW if each.claim is Claim.DENIED else DENY
            against = [acl for acl in set(sets[1]) if acl.entry.permission_type is opposite]
            common = [probe for probe in inside if probe.principal not in some_rules.super_users]
            assert each.others == sum(any(speaks_of(acl, probe) for probe in common) for acl in against)


@settings(deadline=None)
@given(set_pairs(), rules)
def test_a_consequence_follows_from_changed_acls(sets: Sets, some_rules: Rules) -> None:
    headline = headline_of(diff(*sets, some_rules), *sets, some_rules)
    for each in told(headline):
        if each.example is None:
            assert some_rules.allow_everyone_if_no_acl_found
            assert each.acls == 0
            continue
        old, new = sets if each.example.is_added else sets[::-1]
        assert each.example.binding in new
        assert each.example.binding not in old
        assert 1 <= each.acls <= len(set(old) ^ set(new))


@settings(deadline=None)
@given(set_pairs(), rules)
def test_nothing_comes_before_everything_for_everyone(sets: Sets, some_rules: Rules) -> None:
    opened = diff([], [], Rules(), Rules(allow_everyone_if_no_acl_found=True)).changes
    most = min(order_of(change.region) for change in opened)
    for change in by_importance(diff(*sets, some_rules).changes):
        assert most <= order_of(change.region)
