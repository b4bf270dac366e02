"""What the tests of cluster mode share, as it takes long to start: controllers, a broker and nodes."""

import asyncio
from dataclasses import dataclass

from testkit.kustos import KustosNode
from testkit.quorum.controllers import Quorum
from testkit.quorum.storm import everywhere
from testkit.waiting import wait_until


@dataclass
class World:
    """Who follows whom."""

    quorum: Quorum
    nodes: list[KustosNode]

    def settled(self) -> None:
        """Return once nodes, broker and controllers hold the same ACLs."""
        wait_until(lambda: asyncio.run(everywhere(self.quorum, self.nodes)), what="all are alike")
