"""Does what the schedule says to brokers, workers and connections, and heals it."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from testkit.faults.relay import Line
from testkit.faults.scene import FaultScene
from testkit.faults.schedule import LANES, Fault, Kind, Lane, faults
from testkit.guarded.workers import is_alive, worker_pids
from testkit.kafka import KafkaNode
from testkit.processes import freeze, thaw
from testkit.waiting import wait_until

DISTURBED_SHARE: Final = 0.3
"""Of the connections of a side, when some are cut or slowed."""

REFUSING_SHARE: Final = 0.5
"""Of the brokers that are killed: connections to them are refused. To others they are made and reset, as by a
load balancer."""

READY_S: Final = 120.0


class Injector:
    """The lanes of one round, each in a thread; the worker `survivor` is never killed."""

    def __init__(self, scene: FaultScene) -> None:
        self.scene = scene
        self.counts: Counter[Kind] = Counter()
        self.problems: list[str] = []
        self.survivor: int | None = None
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, seed: int, number: int) -> None:
        """Begin the faults of round `number`."""
        self._ends.clear()
        self._threads = [
            threading.Thread(target=self._run, args=(lane, faults(seed, number, lane)), name=lane.name)
            for lane in LANES
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Return when no fault begins any more and all are healed."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _run(self, lane: Lane, drawn: Iterator[Fault]) -> None:
        for fault in drawn:
            if self._ends.wait(fault.wait_s):
                return
            self.counts[fault.kind] += 1
            try:
                self._inflict(fault, random.Random(fault.seed))
            except Exception as error:  # noqa: BLE001 (it is reported, whatever it is)
                self.problems.append(f"{fault.kind.value}: not healed, {error!r}")
                return

    def _inflict(self, fault: Fault, chance: random.Random) -> None:
        match fault.kind:
            case Kind.KILL_BROKER | Kind.PAUSE_BROKER:
                self._disturb_broker(fault, chance)
            case Kind.KILL_WORKER:
                self._kill_worker(chance)
            case Kind.PAUSE_WORKER:
                self._pause(chance.choice(worker_pids(self.scene.kustos)), fault.length_s)
            case Kind.KILL_NODE:
                self.kill_node()
            case _:
                self._disturb_lines(fault, chance)

    def _disturb_broker(self, fault: Fault, chance: random.Random) -> None:
        node = chance.choice(self.scene.brokers.nodes)
        if fault.kind is Kind.PAUSE_BROKER:
            self._pause(node.pid, fault.length_s)
        else:
            self._kill_broker(node, fault.length_s, refuses=chance.random() < REFUSING_SHARE)
        node.wait_ready(self.scene.broker_ids)

    def _kill_broker(self, node: KafkaNode, length_s: float, *, refuses: bool) -> None:
        """Kill a broker and start it again; without `refuses` connections are accepted before they end."""
        port = int(node.advertised["PLAINTEXT"].rpartition(":")[2])
        if refuses:
            self.scene.relays.refuse(port)
        node.kill()
        self._ends.wait(length_s)
        node.launch()
        node.wait_ready(self.scene.broker_ids)
        if refuses:
            self.scene.relays.accept_again(port)

    def _pause(self, pid: int, length_s: float) -> None:
        if not is_alive(pid):
            return
        freeze(pid)
        try:
            self._ends.wait(length_s)
        finally:
            thaw(pid)

    def _kill_worker(self, chance: random.Random) -> None:
        node = self.scene.kustos
        mortal = [pid for pid in worker_pids(node) if pid != self.survivor]
        if not mortal:
            return
        killed = chance.choice(mortal)
        os.kill(killed, signal.SIGKILL)
        wait_until(
            lambda: killed not in worker_pids(node) and node.is_ready(),
            what="another worker serves in its place",
            timeout_s=READY_S,
        )

    def kill_node(self) -> None:
        """Kill writer and workers, and start the node again."""
        self.scene.kustos.kill()
        self.scene.kustos.start()

    def _disturb_lines(self, fault: Fault, chance: random.Random) -> None:
        relays = self.scene.relays
        match fault.kind:
            case Kind.CUT:
                relays.disturb(fault.side, chance, DISTURBED_SHARE, Line.reset)
            case Kind.CUT_AMID_ANSWER:
                relays.disturb(fault.side, chance, 0.0, _end_amid_answer)
            case _:
                until_s = time.monotonic() + fault.length_s

                def slow(line: Line) -> None:
                    line.slow_until_s = until_s

                relays.disturb(fault.side, chance, DISTURBED_SHARE, slow)


def _end_amid_answer(line: Line) -> None:
    line.ends_amid_answer = True
