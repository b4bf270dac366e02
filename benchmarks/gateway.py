"""The gateway beside a dumb relay and a direct connection: the same clients, the same SASL, the same broker.

`theirs` of the throughputs is a relay that writes what it reads, before a second listener of the same broker:
what any process in between costs. A direct connection is printed beside it. With TLS `theirs` is the broker's
own SASL_SSL, and a relay with TLS on both sides is printed beside it. Broker, gateway and client share the
machine. Rounds alternate, medians are compared. Kafka's own perf tools make the load; the latency of a single
record is taken by a small producer of the same client library, since those tools round to milliseconds.
Processor time is that of the process in between.
"""

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.guarding.crowds import connections, listings, workers
from benchmarks.guarding.load import Round, Route
from benchmarks.guarding.routes import Routes, started
from testkit.gateway.function_trace import functions_of_repeated_produce
from testkit.jars import KAFKA

RECORDS = 60_000 if QUICK else 500_000
SENDS = 1_000 if QUICK else 5_000
WARM_UP_SENDS = 500 if QUICK else 2_000
ROUNDS = 1 if QUICK else 5
OF_RELAY = 0.9
"""The least share of the relay's throughput."""

OF_TLS = 0.8
"""The least share of the broker's own throughput with TLS."""

CPU_PRODUCE = 1 / 2
CPU_CONSUME = 1 / 2.5
"""Processor time of the relay by ours, at least."""

ADDED_US_MAX = 75.0
RESIDENT_MB_MAX = 120.0
FUNCTIONS_MAX = 35
"""For a record that comes alone: between two records, caches belong to the broker and the client."""


def rounds(name: str, routes: Sequence[Route], run: Callable[[Route], Round]) -> dict[str, Round]:
    """Return the median of alternating rounds by route."""
    taken: dict[str, list[Round]] = {route.name: [] for route in routes}
    for number in range(1, ROUNDS + 1):
        for route in routes:
            taken[route.name].append(run(route))
        told = ", ".join(
            f"{key} {each[-1].rate:.1f} ({each[-1].cpu_us:.2f} µs)" for key, each in taken.items()
        )
        progress(f"  {name} {number}/{ROUNDS}: {told}")
    return {
        key: Round(
            rate=statistics.median(each.rate for each in done),
            cpu_us=statistics.median(each.cpu_us for each in done),
        )
        for key, done in taken.items()
    }


def throughput(name: str, unit: str, found: dict[str, Round], theirs: str, ours: str, floor: float) -> Figure:
    """Return the figure of rates."""
    return Figure(
        name=name,
        unit=unit,
        ours=found[ours].rate,
        theirs=found[theirs].rate,
        size=RECORDS,
        higher_is_better=True,
        floor=floor,
    )


def plaintext(routes: Routes) -> list[Figure]:
    """Return what is measured beside the relay."""
    ways = routes.ways
    figures = []
    for acks in ("1", "all"):
        found = rounds(f"gateway-produce, acks={acks}", ways, lambda route: route.produce(RECORDS, acks))  # noqa: B023
        name = "gateway-produce" if acks == "1" else "gateway-produce-all"
        figures += [
            throughput(name, "records/s", found, "relay", "kustos", OF_RELAY),
            throughput(f"{name}-direct", "records/s", found, "direct", "kustos", 0.0),
            cpu(name.replace("gateway", "gateway-cpu"), found, CPU_PRODUCE),
        ]
    found = rounds("gateway-consume", ways, lambda route: route.consume(RECORDS))
    figures += [
        throughput("gateway-consume", "MB/s", found, "relay", "kustos", OF_RELAY),
        throughput("gateway-consume-direct", "MB/s", found, "direct", "kustos", 0.0),
        cpu("gateway-cpu-consume", found, CPU_CONSUME),
    ]
    return figures


def cpu(name: str, found: dict[str, Round], floor: float) -> Figure:
    """Return the figure of processor time for a record."""
    ours, theirs = found["kustos"].cpu_us, found["relay"].cpu_us
    return Figure(name=name, unit="µs", ours=ours, theirs=theirs, size=RECORDS, floor=floor)


def encrypted(routes: Routes) -> list[Figure]:
    """Return what is measured with TLS."""
    produced = rounds("gateway-produce-tls", routes.ways, lambda route: route.produce(RECORDS, "1"))
    consumed = rounds("gateway-consume-tls", routes.ways, lambda route: route.consume(RECORDS))
    return [
        throughput(f"gateway-{name}-tls{of}", unit, found, f"{way}-tls", "kustos-tls", floor)
        for name, unit, found in (("produce", "records/s", produced), ("consume", "MB/s", consumed))
        for of, way, floor in (("", "direct", OF_TLS), ("-relay", "relay", 0.0))
    ]


def latency(routes: Routes) -> list[Figure]:
    """Return the time that kustos adds to the acknowledgement of a single record, and that of the relay."""
    added: dict[str, list[float]] = {"relay": [], "kustos": []}
    for number in range(1, ROUNDS + 1):
        direct, relay, ours = (route.latency_us(WARM_UP_SENDS, SENDS) for route in routes.ways)
        added["relay"].append(relay - direct)
        added["kustos"].append(ours - direct)
        told = f"direct {direct:.1f}, relay {relay:.1f}, kustos {ours:.1f} µs"
        progress(f"  gateway-latency-p50 {number}/{ROUNDS}: {told}")
    relay_us, ours_us = (statistics.median(each) for each in added.values())
    return [
        Figure(
            name=f"gateway-latency-p50{of}", unit="µs", ours=ours_us, theirs=theirs, size=SENDS, floor=floor
        )
        for of, theirs, floor in (("", ADDED_US_MAX, 1.0), ("-relay", relay_us, None))
    ]


def memory(routes: Routes) -> Figure:
    """Return the most memory that the node had in all of that."""
    ours = routes.kustos.resident_mb()
    return Figure(
        name="gateway-memory", unit="MB", ours=ours, theirs=RESIDENT_MB_MAX, size=RECORDS, floor=1.0
    )


def functions() -> Figure:
    """Return how many of our functions one record enters, from its request to its answer and its event."""
    count = functions_of_repeated_produce()
    return Figure(
        name="gateway-functions", unit="functions", ours=count, theirs=FUNCTIONS_MAX, size=1, floor=1.0
    )


PARTS: dict[str, Callable[[Routes, Routes, Path], list[Figure]]] = {
    "plaintext": lambda plain, _tls, _directory: plaintext(plain),
    "tls": lambda _plain, tls, _directory: encrypted(tls),
    "latency": lambda plain, _tls, _directory: latency(plain),
    "memory": lambda plain, _tls, _directory: [memory(plain)],
    "functions": lambda _plain, _tls, _directory: [functions()],
    "connections": lambda plain, _tls, _directory: connections(plain),
    "metadata": lambda _plain, _tls, directory: listings(directory),
    "workers": lambda plain, _tls, directory: workers(directory, plain.upstream),
}
"""What can be measured by itself: `python -m benchmarks.gateway tls memory`."""


def main(wanted: Sequence[str]) -> None:
    """Run the benchmark and print its figures; exit with 1 for a part that is none."""
    if unknown := [part for part in wanted if part not in PARTS]:
        sys.exit(f"there is no part `{unknown[0]}`; choose of {', '.join(PARTS)}")
    directory = Path(tempfile.mkdtemp(prefix="kustos-bench-"))
    try:
        progress(f"starting Kafka {KAFKA.version}, a relay and kustos")
        with started(directory) as (plain, tls):
            plain.direct.create_topic()
            plain.direct.produce(RECORDS, "1")
            figures = [figure for part in wanted or PARTS for figure in PARTS[part](plain, tls, directory)]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    emit(figures)


if __name__ == "__main__":
    main(sys.argv[1:])
