"""Figures that others keep, looked up whenever the metrics are read."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from kustos.authorizer import AuthorizerMetrics
from kustos.gateway.audit_log import AuditLog
from kustos.gateway.purgatory import ACL_UPDATE, DelayedFuturePurgatory

_PLUGINS: Final = "kafka_server_plugins_"
_PLUGIN_LABELS: Final = {
    "config": "authorizer.class.name",
    "class": "StandardAuthorizer",
    "role": "broker",
}
"""The tags that Kafka gives the metrics of its authorizer."""

_MEANINGS: Final = {
    "authorization-allowed-rate-per-minute": "Decisions per minute that allowed.",
    "authorization-denied-rate-per-minute": "Decisions per minute that denied.",
    "authorization-request-rate-per-minute": "Decisions per minute.",
}


class Watched(Collector):
    """The metadata and the audit log."""

    def __init__(
        self, acl_count: Callable[[], int], metadata_offset: Callable[[], int], audit: AuditLog
    ) -> None:
        self._acl_count: Final = acl_count
        self._metadata_offset: Final = metadata_offset
        self._audit: Final = audit

    def collect(self) -> Iterable[Metric]:
        """Yield the figures of this moment."""
        count = self._acl_count()
        yield GaugeMetricFamily(
            "kafka_server_authorizer_acl_count",
            "ACLs in force, -1 where nobody counts them (KIP-801).",
            count,
        )
        yield GaugeMetricFamily("kafka_server_authorizer_metrics_acls_total_count", "ACLs in force.", count)
        yield GaugeMetricFamily(
            "kafka_server_broker_metadata_metrics_last_applied_record_offset",
            "Offset of the metadata log up to which its records are in force.",
            self._metadata_offset(),
        )
        audit = self._audit
        yield GaugeMetricFamily(
            "kustos_audit_full", "Whether the audit log holds up all requests.", int(audit.is_full)
        )
        labels = ("sink",)
        depth = GaugeMetricFamily("kustos_audit_queue_events", "Events that wait.", labels=labels)
        failing = GaugeMetricFamily("kustos_audit_sink_failing", "Whether it does not write.", labels=labels)
        written = CounterMetricFamily("kustos_audit_written_events", "Events written.", labels=labels)
        dropped = CounterMetricFamily("kustos_audit_dropped_events", "Events lost.", labels=labels)
        failures = CounterMetricFamily("kustos_audit_sink_failures", "Failed writes.", labels=labels)
        for lane in audit.lanes:
            name = (lane.sink.name,)
            depth.add_metric(name, lane.depth)
            failing.add_metric(name, int(lane.is_failing))
            written.add_metric(name, lane.written)
            dropped.add_metric(name, lane.dropped)
            failures.add_metric(name, lane.failures)
        yield from (depth, failing, written, dropped, failures)


class WatchedAuthorizer(Collector):
    """What Kafka's StandardAuthorizer registers (`kafka.server:type=plugins`, Kafka 4.4)."""

    def __init__(self, acl_count: Callable[[], int], rates: AuthorizerMetrics) -> None:
        self._acl_count: Final = acl_count
        self._rates: Final = rates

    def collect(self) -> Iterable[Metric]:
        """Yield the figures of this moment."""
        figures = {"acls-total-count": float(self._acl_count())} | self._rates.rates()
        for name, figure in figures.items():
            family = GaugeMetricFamily(
                _PLUGINS + name.replace("-", "_"),
                _MEANINGS.get(name, "ACLs of StandardAuthorizer in force."),
                labels=tuple(_PLUGIN_LABELS),
            )
            family.add_metric(tuple(_PLUGIN_LABELS.values()), figure)
            yield family


class WatchedPurgatory(Collector):
    """Changes of ACLs that wait (`kafka.server:type=DelayedOperationPurgatory`)."""

    def __init__(self, purgatory: DelayedFuturePurgatory) -> None:
        self._purgatory: Final = purgatory

    def collect(self) -> Iterable[Metric]:
        """Yield the figures of this moment."""
        purgatory = self._purgatory
        for name, meaning, figure in (
            ("num_delayed_operations", "Operations that wait.", purgatory.num_delayed_operations),
            ("purgatory_size", "Operations that are watched.", purgatory.purgatory_size),
        ):
            family = GaugeMetricFamily(
                f"kafka_server_delayed_operation_purgatory_{name}", meaning, labels=("delayedOperation",)
            )
            for operation in (purgatory.name, ACL_UPDATE):
                family.add_metric((operation,), figure)
            yield family


class TimeSplit:
    """How long the requests of one API took here, and how long they waited for others. Times in seconds."""

    __slots__ = ("count", "local_s", "remote_s")

    def __init__(self) -> None:
        self.count = 0
        self.local_s = self.remote_s = 0.0

    def add(self, seconds: float, remote_seconds: float) -> None:
        """Count a request that took so long, so much of it elsewhere."""
        self.count += 1
        self.local_s += seconds - remote_seconds
        self.remote_s += remote_seconds


class WatchedTimes(Collector):
    """Where the time of requests went (`kafka.network:type=RequestMetrics`): sums and counts."""

    def __init__(self, by_request: Mapping[str, TimeSplit]) -> None:
        self._by_request: Final = by_request

    def collect(self) -> Iterable[Metric]:
        """Yield the figures of this moment."""
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
        for request, split in self._by_request.items():
            local.add_metric((request,), split.count, split.local_s * 1000)
            remote.add_metric((request,), split.count, split.remote_s * 1000)
        yield from (local, remote)
