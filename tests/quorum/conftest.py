"""What the tests of cluster mode share."""

from collections.abc import Iterator

import pytest

from testkit.kafka import SNAPSHOTS_OFTEN
from testkit.kafka.listeners import INTERNAL_PASSWORD, INTERNAL_USER
from testkit.quorum.controllers import SCRAM_FOR_CONTROLLERS, Quorum
from testkit.quorum.nodes import kraft_node
from tests.quorum.world import World

SECRET = {"delegation.token.secret.key": "of-the-tokens"}
PATIENT = {"kustos.quorum.change.timeout.ms": "80000"}
"""For a change amid an election: on a crowded machine one may come after the other."""


@pytest.fixture(scope="session")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Three controllers that take snapshots often, and a broker."""
    with Quorum(
        tmp_path_factory.mktemp("quorum"),
        properties=SNAPSHOTS_OFTEN | SCRAM_FOR_CONTROLLERS | SECRET,
        users={INTERNAL_USER: INTERNAL_PASSWORD},
    ) as running:
        yield running


@pytest.fixture(scope="session")
def world(quorum: Quorum, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Three nodes that follow them; one of them logs in by SCRAM."""
    directory = tmp_path_factory.mktemp("nodes")
    # carol may do everything at kustos, and nothing at the controllers
    more = SECRET | PATIENT | {"super.users": "User:admin;User:carol"}
    mechanisms = ("PLAIN", "PLAIN", "SCRAM-SHA-256")
    nodes = [
        kraft_node(directory / f"kustos-{number}", quorum, more, mechanism)
        for number, mechanism in enumerate(mechanisms)
    ]
    try:
        for node in nodes:
            node.start()
        yield World(quorum, nodes)
    finally:
        for node in nodes:
            node.kill()
