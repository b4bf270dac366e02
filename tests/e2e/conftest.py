"""What the end-to-end tests share."""

from collections.abc import Iterator

import pytest

from tests.e2e.scene import Scene
from tests.e2e.world import TOPICS, settings


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """The common world before one broker."""
    with Scene(tmp_path_factory.mktemp("scene"), settings(), topics=TOPICS) as scene:
        yield scene


@pytest.fixture
def scene(world: Scene) -> Iterator[Scene]:
    """The common world, judged after every test: nothing unauthorised passed, and this was looked at."""
    yield world
    try:
        world.assert_proper()
    finally:
        world.begin_anew()
