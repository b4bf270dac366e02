"""What the guard promises, over every API and version of its table."""

from random import Random

import pytest
from tests.property.protocol_driver import EVERY_VERSION, Driver
from tests.property.protocol_requests import (
    ALL_ALLOWED,
    frame_of,
    model,
    random_acls,
    random_request,
)


@pytest.mark.parametrize(("api_key", "version"), EVERY_VERSION)
def test_nothing_unauthorised_is_forwarded_and_answers_are_kafkas(api_key: int, version: int) -> None:
    for seed in range(60):
        random = Random(seed)
        world = model()
        world.auto_creates = random.random() < 0.7
        driver = Driver(world, [[], ALL_ALLOWED, random_acls(random), random_acls(random)][seed % 4])
        frame = frame_of(api_key, version, random_request(api_key, version, random, world))
        _, violations = driver.checked(frame)
        assert not violations, f"seed {seed}: {violations}"
