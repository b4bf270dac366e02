"""The metrics that each request changes: plain numbers, converted to Prometheus' series when they are read.

A series of `prometheus_client` takes a lock and half a dozen calls for each event, a fifth of the cost of a
small request. One event loop counts and reads.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final, NamedTuple, Self

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from kustos.protocol import Decided

BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
"""The buckets range from a request that only passes through to one that waits for a group to form."""

SOCKETS: Final = "kafka_server_socket_server_metrics_"


class Times:
    """A histogram of seconds over `BUCKETS_S`."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts: Final = [0] * (len(BUCKETS_S) + 1)
        """One for each bucket, and one for longer times."""
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds

    def add_to(self, family: HistogramMetricFamily, *labels: str) -> None:
        """Add this series to its family."""
        limits = (*map(str, map(float, BUCKETS_S)), "+Inf")
        buckets = list(zip(limits, accumulate(self.counts), strict=True))
        family.add_metric(labels, buckets, self.sum_s)


class DecisionSums(NamedTuple):
    """The number of a request's decisions of each kind."""

    allowed: int
    denied: int
    probed: int
    filtered: int
    shadowed: int

    @classmethod
    def of(cls, decided: Iterable[Decided]) -> Self:
        """Return the sums of these decisions."""
        allowed = denied = probed = filtered = shadowed = 0
        for item in decided:
            if item.shadow is not None:
                shadowed += 1
            elif item.decision.allowed:
                allowed += 1
            elif item.is_probe:
                probed += 1
            elif item.listing:
                filtered += 1
            else:
                denied += 1
        return cls(allowed, denied, probed, filtered, shadowed)


class ApiTally:
    """The metrics of one API. `remote_s`: the part of `total` that its requests waited elsewhere."""

    __slots__ = (
        "allowed",
        "denied",
        "filtered",
        "probed",
        "remote_s",
        "repeated",
        "shadowed",
        "total",
        "upstream",
    )

    def __init__(self) -> None:
        self.allowed = self.denied = self.probed = self.filtered = self.shadowed = self.repeated = 0
        self.total: Final = Times()
        self.upstream: Final = Times()
        self.remote_s = 0.0

    def add(self, sums: DecisionSums, repeated: int = 0) -> None:
        """Count the decisions of a request; `repeated`: 1 if the decisions are from an earlier request."""
        self.repeated += repeated
        self.allowed += sums.allowed
        self.denied += sums.denied
        self.probed += sums.probed
        self.filtered += sums.filtered
        self.shadowed += sums.shadowed


class SocketTally:
    """The bytes and connections of one listener; `expired`: closed because their sessions had expired."""

    __slots__ = ("created", "expired", "incoming_bytes", "open", "outgoing_bytes", "unauthenticated")

    def __init__(self) -> None:
        self.created = self.open = self.unauthenticated = self.expired = 0
        self.incoming_bytes = self.outgoing_bytes = 0


class LoginTally:
    """The logins of one mechanism; `renewed` and `unrenewed` count the logins of live sessions (KIP-368)."""

    __slots__ = ("failed", "renewed", "succeeded", "unrenewed")

    def __init__(self) -> None:
        self.failed = self.succeeded = self.renewed = self.unrenewed = 0


class Tallied(Collector):
    """Exports the tallies."""

    def __init__(
        self,
        apis: Mapping[str, ApiTally],
        sockets: Mapping[str, SocketTally],
        logins: Mapping[str, LoginTally],
    ) -> None:
        self._apis: Final = apis
        self._sockets: Final = sockets
        self._logins: Final = logins

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        decisions = CounterMetricFamily(
            "kustos_authorization_decisions",
            "Decisions by API and result; counted once for each item of a request. Three kinds of denials "
            "refuse nothing: PROBE, because a later check decides; FILTERED, which leaves a name out of a "
            "list; SHADOW_DENIED, which a listener in mode `shadow` does not enforce.",
            labels=("api", "result"),
        )
        total = HistogramMetricFamily(
            "kustos_request_seconds",
            "Time from a request to its answer (Kafka's TotalTimeMs).",
            labels=("api",),
        )
        upstream = HistogramMetricFamily(
            "kustos_request_upstream_seconds", "The part of that time that upstream took.", labels=("api",)
        )
        repeated = CounterMetricFamily(
            "kustos_repeated_requests",
            "Requests that repeat an earlier one of their connection, a Produce but for its records, and "
            "take over its decisions.",
            sum(api.repeated for api in self._apis.values()),
        )
        for name, api in self._apis.items():
            for result, count in (
                ("ALLOWED", api.allowed),
                ("DENIED", api.denied),
                ("PROBE", api.probed),
                ("FILTERED", api.filtered),
                ("SHADOW_DENIED", api.shadowed),
            ):
                decisions.add_metric((name, result), count)
            api.total.add_to(total, name)
            api.upstream.add_to(upstream, name)
        yield from (decisions, repeated, total, upstream)
        yield from self._connections()
        yield from self._ended_logins()

    def _connections(self) -> Iterable[Metric]:
        labels = ("listener",)
        families = (
            (
                CounterMetricFamily(SOCKETS + "connection_creation", "Connections made.", labels=labels),
                "created",
            ),
            (GaugeMetricFamily(SOCKETS + "connection_count", "Open connections.", labels=labels), "open"),
            (
                GaugeMetricFamily(
                    "kustos_unauthenticated_connections",
                    "Open connections without authentication yet.",
                    labels=labels,
                ),
                "unauthenticated",
            ),
            (
                CounterMetricFamily(
                    SOCKETS + "expired_connections_killed",
                    "Connections closed because the session of a login had ended (KIP-368).",
                    labels=labels,
                ),
                "expired",
            ),
            (
                CounterMetricFamily(SOCKETS + "incoming_byte", "Bytes from clients.", labels=labels),
                "incoming_bytes",
            ),
            (
                CounterMetricFamily(SOCKETS + "outgoing_byte", "Bytes to clients.", labels=labels),
                "outgoing_bytes",
            ),
        )
        for family, field in families:
            for name, socket in self._sockets.items():
                family.add_metric((name,), getattr(socket, field))
            yield family

    def _ended_logins(self) -> Iterable[Metric]:
        labels = ("mechanism",)
        for name, help_text, field in (
            ("successful_authentication", "Logins.", "succeeded"),
            ("failed_authentication", "Failed logins.", "failed"),
            ("successful_reauthentication", "Logins of live sessions (KIP-368).", "renewed"),
            ("failed_reauthentication", "Failed logins of live sessions (KIP-368).", "unrenewed"),
        ):
            family = CounterMetricFamily(SOCKETS + name, help_text, labels=labels)
            for mechanism, logins in self._logins.items():
                family.add_metric((mechanism,), getattr(logins, field))
            yield family


class WatchedTimes(Collector):
    """The time of requests here and elsewhere (`kafka.network:type=RequestMetrics`): sums and counts."""

    def __init__(self, apis: Mapping[str, ApiTally]) -> None:
        self._apis: Final = apis

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        local = SummaryMetricFamily(
            "kafka_network_request_metrics_local_time_ms",
            "Milliseconds that requests were worked on here.",
            labels=("request",),
        )
        remote = SummaryMetricFamily(
            "kafka_network_request_metrics_remote_time_ms",
            "Milliseconds that requests waited for upstream, or for the authorizer to change ACLs.",
            labels=("request",),
        )
        for request, api in self._apis.items():
            count = sum(api.total.counts)
            local.add_metric((request,), count, (api.total.sum_s - api.remote_s) * 1000)
            remote.add_metric((request,), count, api.remote_s * 1000)
        yield from (local, remote)
