"""What the end-to-end tests share."""

from collections.abc import Iterator

import pytest

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import TOPICS, settings


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """The common world before one broker."""
    with GuardedCluster(tmp_path_factory.mktemp("scene"), settings(), topics=TOPICS) as scene:
        yield scene


@pytest.fixture
def scene(world: GuardedCluster) -> Iterator[GuardedCluster]:
    """The common world, judged after every test: nothing unauthorised passed, and this was looked at."""
    yield world
    try:
        world.assert_proper()
    finally:
        world.begin_anew()
