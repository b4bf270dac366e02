"""What is measured of many: connections, topics, and workers side by side."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.figures import QUICK, Figure, progress
from benchmarks.guarding.load import Route, resident_mb
from benchmarks.guarding.routes import PASSWORD, TOPIC, USER, Routes, acls, client_file
from testkit.kafka import KafkaNode, NodeSettings
from testkit.kafka.listeners import PLAINTEXT, SASL_PLAINTEXT
from testkit.kafka.probe import complete_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.processes import spawn
from testkit.waiting import PATIENCE_S, wait_until

ROUNDS: Final = 1 if QUICK else 3
CONNECTIONS: Final = 200 if QUICK else 2_000
ASKING_S: Final = 5 if QUICK else 20
OF_DIRECT_P99: Final = 1 / 3
CONNECTIONS_MB_MAX: Final = 300.0

TOPICS, VISIBLE = (1_000, 100) if QUICK else (10_000, 100)
LISTINGS: Final = 10 if QUICK else 40
OF_DIRECT_LISTING: Final = 1 / 2
PAUSE_MS_MAX: Final = 10.0
MADE_AT_ONCE: Final = 500

WORKERS: Final = (1, 2)
PRODUCERS: Final = 4
RECORDS_EACH: Final = 15_000 if QUICK else 150_000
OF_ONE_WORKER: Final = 1.7
CPU_OF_ONE_WORKER: Final = 1 / 1.1
FREE_CORES: Final = 6
"""Two for the workers, the others for broker and producers: with fewer, two workers have no two cores."""


def asked(module: str, *arguments: str) -> dict[str, Any]:
    """Return what a load program tells at its end."""
    line = [sys.executable, "-m", f"benchmarks.guarding.{module}", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{module} failed\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def crowd(route: Route) -> tuple[dict[str, float], float]:
    """Return how long answers to many connections took, and the memory of the process in between."""
    arguments = (route.bootstrap, str(CONNECTIONS), str(ASKING_S))
    line = [sys.executable, "-m", "benchmarks.guarding.many", *arguments]
    program = spawn(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout is not None
    told: dict[str, float] = json.loads(program.stdout.readline())
    memory_mb = 0.0 if route.pid is None else resident_mb(route.pid)
    program.communicate()
    return told, memory_mb


def connections(routes: Routes) -> list[Figure]:
    """Return the figures of many connections that each ask for little, beside the broker and a relay."""
    p99: dict[str, list[float]] = {route.name: [] for route in routes.ways}
    memory_mb = 0.0
    for number in range(1, ROUNDS + 1):
        for route in routes.ways:
            told, taken_mb = crowd(route)
            p99[route.name].append(told["p99"])
            if route is routes.kustos:
                memory_mb = max(memory_mb, taken_mb)
            shown = ", ".join(f"{key} {value:.2f}" for key, value in told.items())
            progress(f"  gateway-connections {number}/{ROUNDS}, {route.name}: {shown}; {taken_mb:.0f} MB")
    name = f"gateway-connections-{CONNECTIONS}"
    medians = {way: statistics.median(values) for way, values in p99.items()}

    def beside(way: str, line: str, floor: float | None) -> Figure:
        ours, theirs = medians["kustos"], medians[way]
        return Figure(name=line, unit="ms", ours=ours, theirs=theirs, size=CONNECTIONS, floor=floor)

    return [
        beside("direct", name, OF_DIRECT_P99),
        beside("relay", f"{name}-relay", None),
        Figure(
            name=f"{name}-memory",
            unit="MB",
            ours=memory_mb,
            theirs=CONNECTIONS_MB_MAX,
            size=CONNECTIONS,
            floor=1.0,
        ),
    ]


@contextmanager
def many_topics(directory: Path) -> Iterator[tuple[str, str]]:
    """Start a broker with many topics, of which the user may see few through a node; yield both addresses."""
    users = {USER: PASSWORD}
    listeners = (PLAINTEXT, SASL_PLAINTEXT)
    kafka = KafkaNode(
        directory / "kafka-topics", NodeSettings(listeners=listeners, users=users, peak=True, heap="1g")
    )
    with ExitStack() as stack:
        stack.enter_context(kafka)
        admin = AdminClient(kafka.internal_client)
        names = [f"{TOPIC}-{number}" for number in range(VISIBLE)]
        names += [f"strange-{number:05}" for number in range(TOPICS - VISIBLE)]
        for start in range(0, TOPICS, MADE_AT_ONCE):
            made = admin.create_topics([NewTopic(name, 1, 1) for name in names[start : start + MADE_AT_ONCE]])
            for each in made.values():
                each.result(PATIENCE_S)
        wait_until(
            lambda: len(complete_topics(kafka.internal_port, sasl=False)) >= TOPICS,
            what="the broker knows all topics",
        )
        settings = KustosSettings(users=users, acls=acls())
        node = stack.enter_context(KustosNode(directory / "kustos-topics", kafka.bootstrap, settings))
        yield kafka.address("SASL_PLAINTEXT"), node.bootstrap


def listings(directory: Path) -> list[Figure]:
    """Return the figures of a listing of all topics of which few are seen."""
    with many_topics(directory) as (direct, guarded):
        taken: dict[str, list[dict[str, Any]]] = {direct: [], guarded: []}
        for number in range(1, ROUNDS + 1):
            for address, told in taken.items():
                told.append(asked("listing", address, str(LISTINGS)))
            for name, told in zip(("direct", "kustos"), taken.values(), strict=True):
                shown = ", ".join(f"{key} {value:.1f}" for key, value in told[-1].items())
                progress(f"  gateway-metadata {number}/{ROUNDS}, {name}: {shown}")
    medians = {
        address: {key: statistics.median(each[key] for each in told) for key in ("ms", "worst_wait_ms")}
        for address, told in taken.items()
    }
    name = f"gateway-metadata-{TOPICS // 1_000}k"
    theirs = medians[direct]["ms"]
    return [
        Figure(
            name=name,
            unit="ms",
            ours=max(medians[guarded]["ms"] - theirs, 0.001),
            theirs=theirs,
            size=TOPICS,
            floor=OF_DIRECT_LISTING,
        ),
        Figure(
            name=f"{name}-wait",
            unit="ms",
            ours=medians[guarded]["worst_wait_ms"],
            theirs=medians[direct]["worst_wait_ms"],
            size=TOPICS,
            floor=1.0,
            enough=PAUSE_MS_MAX,
        ),
    ]


def side_by_side(route: Route) -> tuple[float, float]:
    """Return the records a second of several producers at once, and the processor µs of a record."""
    before_s = route.cpu_so_far_s()
    with ThreadPoolExecutor(PRODUCERS) as pool:
        done = list(pool.map(lambda _: route.produce(RECORDS_EACH, "1"), range(PRODUCERS)))
    spent_s = route.cpu_so_far_s() - before_s
    return sum(each.rate for each in done), spent_s * 1e6 / (RECORDS_EACH * PRODUCERS)


def workers(directory: Path, upstream: str) -> list[Figure]:
    """Return the figures of two worker processes beside one process."""
    users = {USER: PASSWORD}
    found: dict[int, list[tuple[float, float]]] = {count: [] for count in WORKERS}
    with ExitStack() as stack:
        routes = {}
        for count in WORKERS:
            settings = KustosSettings(users=users, acls=acls(), properties={"kustos.workers": str(count)})
            node = stack.enter_context(KustosNode(directory / f"kustos-{count}", upstream, settings))
            assert node.server is not None
            name = f"workers-{count}"
            file = client_file(directory, name, node.bootstrap, "SASL_PLAINTEXT", directory / "authority.pem")
            routes[count] = Route(
                name=name, bootstrap=node.bootstrap, topic=TOPIC, properties=file, pid=node.server.pid
            )
        for number in range(1, ROUNDS + 1):
            for count, route in routes.items():
                found[count].append(side_by_side(route))
            shown = ", ".join(f"{each[-1][0]:.0f} ({each[-1][1]:.2f} µs)" for each in found.values())
            progress(f"  gateway-workers-2 {number}/{ROUNDS}: one and two, {shown}")
    one, two = (
        tuple(statistics.median(values) for values in zip(*found[count], strict=True)) for count in WORKERS
    )
    size = RECORDS_EACH * PRODUCERS
    cores = os.cpu_count() or 1
    if cores < FREE_CORES:
        progress(f"  {cores} cores: two workers have no two cores for themselves, so there is no floor")
    return [
        Figure(
            name="gateway-workers-2",
            unit="records/s",
            ours=two[0],
            theirs=one[0],
            size=size,
            higher_is_better=True,
            floor=OF_ONE_WORKER if cores >= FREE_CORES else None,
        ),
        Figure(
            name="gateway-workers-2-cpu",
            unit="µs",
            ours=two[1],
            theirs=one[1],
            size=size,
            floor=CPU_OF_ONE_WORKER,
        ),
    ]
