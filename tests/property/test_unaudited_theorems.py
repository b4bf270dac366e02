"""While the audit log is full and may not block, no request is decided: none is forwarded unrecorded."""

from random import Random

import pytest

from kustos.authorizer import AuthorizerNotReadyError, Decision
from kustos.protocol import OpenDecider
from testkit.protocol.driver import EVERY_VERSION, HOST, PRINCIPAL, Driver
from testkit.protocol.random_requests import ALL_ALLOWED, frame_of, model, random_request
from testkit.tap.checker import Client
from testkit.tap.frames import read_request
from testkit.tap.needs import NEEDS


def refusing_driver(random: Random, mode: str) -> Driver:
    world = model()
    world.auto_creates = random.random() < 0.7
    driver = Driver(world, ALL_ALLOWED)
    driver.guard.is_shadow = mode == "shadow"
    if mode == "off":
        driver.guard.decider = OpenDecider()
    driver.guard.refusal = lambda: AuthorizerNotReadyError("the audit log is full")
    return driver


@pytest.mark.parametrize("mode", ["enforce", "shadow", "off"])
@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION[::2])
def test_no_request_that_needs_a_decision_is_forwarded(api_key: int, version: int, mode: str) -> None:
    for seed in range(10):
        random = Random(seed)
        driver = refusing_driver(random, mode)
        before = dict(driver.model.topics)
        request = random_request(api_key, version, random, driver.model)
        outcome = driver.run(frame_of(api_key, version, request))
        subject = Client(PRINCIPAL, HOST, [], driver.model.names)
        assert all(not NEEDS[api_key](read_request(each), subject) for each in outcome.forwarded)
        assert driver.model.topics == before
        assert outcome.opened is None or outcome.opened.exchange.decided == []


def test_a_full_log_refuses_requests_until_it_has_space() -> None:
    random = Random(1)
    driver = refusing_driver(random, "enforce")
    refusal = driver.guard.refusal
    request = random_request(3, 12, random, driver.model)
    frame = frame_of(3, 12, request)
    results: list[list[Decision]] = []
    for each in (lambda: None, refusal, lambda: None):
        driver.guard.refusal = each
        outcome = driver.run(frame)
        assert outcome.opened is not None
        results.append([item.decision for item in outcome.opened.exchange.decided])
    assert results[0] == results[2] != []
    assert results[1] == []
