"""Two brokers for all of these tests; kustos nodes of several kinds before them."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import pytest

from testkit.kustos import KustosNode
from testkit.late_passage.stage import Stage
from tests.e2e.late_passage.line import IMPATIENT, Line, Staged

_NUMBERS = count(1)


@pytest.fixture(scope="package")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """The brokers, and a node before them that is as it comes."""
    with Line(tmp_path_factory.mktemp("line")) as running:
        yield running


@pytest.fixture(scope="package")
def impatient(line: Line) -> Iterator[KustosNode]:
    """A node that soon gives up a broker that stands still."""
    with line.guard("impatient", **IMPATIENT) as node:
        yield node


@pytest.fixture
def staged(line: Line) -> Iterator[Staged]:
    """Sets the stage at the node that is as it comes, or at another."""
    with ExitStack() as stack:

        def enter(broker: int = 1, node: KustosNode | None = None) -> Stage:
            return stack.enter_context(line.stage(str(next(_NUMBERS)), node or line.kustos, broker))

        yield enter


@pytest.fixture
def stage(staged: Staged) -> Stage:
    """The stage behind the first broker."""
    return staged()
