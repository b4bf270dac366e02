"""Theorems about shadow mode: every request for upstream passes, and every denial is reported."""

from random import Random

import pytest

from kustos.acl import AclBinding
from kustos.protocol import Decided
from kustos.protocol.rows import OWN_APIS
from testkit.protocol.driver import EVERY_VERSION, Driver, Outcome
from testkit.protocol.random_requests import ALL_ALLOWED, frame_of, model, random_acls, random_request

PASSING = [(key, version) for key, version in EVERY_VERSION if key not in OWN_APIS]
GUARDED = [(key, version) for key, version in EVERY_VERSION if key in OWN_APIS]


def ran(
    api_key: int,
    version: int,
    seed: int,
    acls: list[AclBinding] | None = None,
    *,
    shadow: bool,
    ready: bool = True,
) -> Outcome:
    """Return what becomes of the request of this seed, by random ACLs of it if none are given."""
    random = Random(seed)
    world = model()
    world.auto_creates = random.random() < 0.7
    drawn = random_acls(random)
    driver = Driver(world, drawn if acls is None else acls, ready=ready)
    driver.guard.is_shadow = shadow
    return driver.run(frame_of(api_key, version, random_request(api_key, version, random, world)))


def decided(outcome: Outcome) -> list[Decided]:
    return [] if outcome.opened is None else outcome.opened.exchange.decided


def seen(outcome: Outcome) -> tuple[list[bytes], bytes | None, str | None]:
    return outcome.forwarded, outcome.response, outcome.closed


@pytest.mark.parametrize(("api_key", "version"), PASSING)
def test_upstream_and_client_see_the_same_as_if_everything_were_allowed(api_key: int, version: int) -> None:
    for seed in range(30):
        for ready in (True, False):
            outcome = ran(api_key, version, seed, shadow=True, ready=ready)
            assert seen(outcome) == seen(ran(api_key, version, seed, ALL_ALLOWED, shadow=False)), seed


@pytest.mark.parametrize(("api_key", "version"), PASSING)
def test_every_shadow_denial_is_reported_with_its_rule(api_key: int, version: int) -> None:
    for seed in range(30):
        refused = {
            (item.action, item.name, item.listing, item.decision)
            for item in decided(ran(api_key, version, seed, shadow=False))
            if not item.decision.allowed and not item.is_probe
        }
        reported = {
            (item.action, item.name, item.listing, item.shadow.decision)
            for item in decided(ran(api_key, version, seed, shadow=True))
            if item.shadow is not None
        }
        # a request that is refused as a whole asks nothing more, and in the shadow it goes on
        assert refused <= reported, seed


@pytest.mark.parametrize(("api_key", "version"), PASSING)
def test_a_missing_decision_is_reported_as_an_error_and_never_as_an_approval(
    api_key: int, version: int
) -> None:
    for seed in range(10):
        for item in decided(ran(api_key, version, seed, shadow=True, ready=False)):
            assert item.shadow is not None
            assert (item.shadow.result, item.shadow.rule) == ("ERROR", "Error(AuthorizerNotReadyError)")


@pytest.mark.parametrize(("api_key", "version"), GUARDED)
def test_locally_served_requests_are_guarded_in_shadow_mode(api_key: int, version: int) -> None:
    for seed in range(30):
        guarded, shadow = (ran(api_key, version, seed, shadow=each) for each in (False, True))
        assert seen(guarded) == seen(shadow)
        assert guarded.served == shadow.served
        assert decided(guarded) == decided(shadow)
