"""Theorems about candidate ACLs: exactly the differences are reported, and no answer changes."""

from random import Random

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import CandidateAcls, SharedRules, StandardAuthorizer
from kustos.gateway.shadow import CandidateTrial
from kustos.protocol import Decided
from testkit.protocol.driver import EVERY_VERSION, HOST, PRINCIPAL, Driver, context_of
from testkit.protocol.random_requests import frame_of, model, random_acls, random_request

CONTEXT = context_of(None)  # type: ignore[arg-type]


def decided_for(api_key: int, version: int, seed: int, *, shadow: bool) -> tuple[list[Decided], Random]:
    """Return the guard's decisions on a random request, and the random generator."""
    random = Random(seed)
    world = model()
    driver = Driver(world, random_acls(random))
    driver.guard.is_shadow = shadow
    outcome = driver.run(frame_of(api_key, version, random_request(api_key, version, random, world)))
    return ([] if outcome.opened is None else outcome.opened.exchange.decided), random


@pytest.mark.parametrize("shadow", [False, True], ids=["enforced", "shadow"])
@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION[::3])
def test_reported_differences_equal_those_between_two_authorizers(
    api_key: int, version: int, shadow: bool
) -> None:
    for seed in range(12):
        decided, random = decided_for(api_key, version, seed, shadow=shadow)
        if not decided:
            continue
        rules = SharedRules(
            frozenset({PRINCIPAL}) if seed % 5 == 0 else frozenset(),
            allow_everyone_if_no_acl_found=seed % 4 == 0,
        )
        acls = random_acls(random)
        trial = CandidateTrial()
        trial.put_on_trial("acls.yaml", CandidateAcls(acls, lambda rules=rules: rules))  # type: ignore[misc]
        compared = trial.compare(CONTEXT, decided)
        # answer and evidence of the enforced ACLs stay as they are
        assert [item._replace(candidate=None) for item in compared] == decided
        session = StandardAuthorizer.of(acls, **rules._asdict()).session(
            KafkaPrincipal.parse(PRINCIPAL), HOST
        )
        for item in compared:
            action = item.action
            expected = (
                session.decide_by_resource_type(action.operation, action.resource_type)
                if item.name is None
                else session.decide(action.operation, action.resource_type, item.name)
            )
            enforced = item.decision if item.shadow is None else item.shadow.decision
            assert enforced is not None
            differs = expected.allowed is not enforced.allowed
            assert (item.candidate is not None) is differs
            if item.candidate is not None:
                assert item.candidate.decision == expected
        counted = {outcome.value: 0 for outcome, _ in trial.counts}
        for (outcome, _), count in trial.counts.items():
            counted[outcome.value] += count
        assert sum(counted.values()) == len(decided)
        reported = [item.candidate.result for item in compared if item.candidate is not None]
        assert counted.get("LOST", 0) == reported.count("DENIED")
        assert counted.get("GAINED", 0) == reported.count("ALLOWED")


def test_the_same_acls_in_any_order_have_no_differences() -> None:
    for seed in range(50):
        random = Random(seed)
        acls = random_acls(random)
        shuffled = random.sample(acls, len(acls))
        first, second = (CandidateAcls(each, SharedRules) for each in (acls, [*shuffled, shuffled[0]]))
        assert (first.id, first.acl_count) == (second.id, second.acl_count)


def test_every_decision_without_acls_is_an_error_and_differs() -> None:
    trial = CandidateTrial()
    decided, _ = decided_for(3, 12, 4, shadow=False)
    assert decided
    assert trial.compare(CONTEXT, decided) is decided, "no candidate is loaded"
    trial.lack("acls.yaml", "gone")
    compared = trial.compare(CONTEXT, decided)
    assert {item.candidate.result for item in compared if item.candidate is not None} == {"ERROR"}
    assert {outcome.value for outcome, _ in trial.counts} == {"ERROR"}
    assert trial.counts.total() == len(decided)
    assert trial.load_failures == 1


def test_a_candidate_failure_is_reported_as_an_error_without_other_effects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    trial = CandidateTrial()
    acls = CandidateAcls([], SharedRules)
    monkeypatch.setattr(CandidateAcls, "difference", broken)
    trial.put_on_trial("acls.yaml", acls)
    decided, _ = decided_for(3, 12, 4, shadow=False)
    for item in trial.compare(CONTEXT, decided):
        assert item.candidate is not None
        assert item.candidate.rule == "Error(ZeroDivisionError)"
    assert {outcome.value for outcome, _ in trial.counts} == {"ERROR"}
