"""Combines the metrics of all processes into the metrics of one node.

Counters and times are added up; so are gauges, except those in a table. The counters of a worker that ended
stay in the sums: its last page is kept, because counters must not decrease.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

Key = tuple[str, tuple[tuple[str, str], ...]]
Combine = Callable[[float, float], float]

THE_FIRST: Final = "the first"
"""Equal in all processes: the node's value is the writer's own."""

_COMBINED: Final[dict[str, Combine | str]] = {
    "kafka_server_authorizer_acl_count": THE_FIRST,
    "kafka_server_authorizer_metrics_acls_total_count": THE_FIRST,
    "kafka_server_plugins_acls_total_count": THE_FIRST,
    "kafka_server_broker_metadata_metrics_last_applied_record_offset": min,
    "kustos_listener_enforces": min,
    "kustos_candidate_acls": min,
    "kustos_audit_full": max,
    "kustos_audit_sink_failing": max,
    "kustos_event_loop_lag_max_seconds": max,
}
"""The gauges that are not added up, and how they are combined."""

_CREATED: Final = "_created"
_COUNTED: Final = frozenset({"counter", "histogram", "summary"})


class Page:
    """Metric families, in order of arrival."""

    def __init__(self) -> None:
        self._families: Final[dict[str, tuple[str, str, dict[Key, float]]]] = {}

    @classmethod
    def of(cls, text: bytes) -> "Page":
        """Parse a page in Prometheus' text format; raise ValueError if it is invalid."""
        page = cls()
        page._add(text_string_to_metric_families(text.decode()))
        return page

    def _add(self, families: Iterable[Metric]) -> None:
        for family in families:
            samples = {
                (sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in family.samples
            }
            self._families[family.name] = (family.type, family.documentation, samples)

    def add(self, other: "Page") -> None:
        """Add the metrics of another process."""
        for name, (kind, meaning, samples) in other._families.items():
            _, _, known = self._families.setdefault(name, (kind, meaning, {}))
            combine = min if name.endswith(_CREATED) else _COMBINED.get(name, float.__add__)
            for key, value in samples.items():
                if key not in known:
                    known[key] = value
                elif not isinstance(combine, str):
                    known[key] = combine(known[key], value)

    def counted(self) -> "Page":
        """Return the metrics that remain when the process has ended."""
        page = Page()
        for name, (kind, meaning, samples) in self._families.items():
            if kind in _COUNTED or name.endswith(_CREATED):
                page._families[name] = (kind, meaning, dict(samples))
        return page

    def text(self) -> bytes:
        """Return the page in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(_Shown(self._metrics()))
        return generate_latest(registry)

    def _metrics(self) -> list[Metric]:
        metrics = []
        for name, (kind, meaning, samples) in self._families.items():
            metric = Metric(name, meaning, kind)
            for (sample, labels), value in samples.items():
                metric.add_sample(sample, dict(labels), value)
            metrics.append(metric)
        return metrics


class _Shown(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics: Final = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


class NodeFigures:
    """Adds up the pages of the writer and of its workers, running and ended."""

    def __init__(self) -> None:
        self._last: Final[dict[Any, Page]] = {}
        self._gone: Final = Page()

    def keep(self, worker: Any, text: bytes) -> None:
        """Keep a worker's page; raise ValueError if it is invalid."""
        self._last[worker] = Page.of(text)

    def forget(self, worker: Any) -> None:
        """Drop a worker that has ended; its counters stay."""
        page = self._last.pop(worker, None)
        if page is not None:
            self._gone.add(page.counted())

    def text(self, own: bytes) -> bytes:
        """Return the page of the node; `own` is the writer's page."""
        page = Page.of(own)
        for other in (*self._last.values(), self._gone):
            page.add(other)
        return page.text()


class WatchedWorkerPool(Collector):
    """The state of the workers; `states` counts workers that serve, that ended and that were fenced."""

    def __init__(self, states: Callable[[], tuple[int, int, int]]) -> None:
        self._states: Final = states

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        serving, ended, fenced = self._states()
        yield GaugeMetricFamily("kustos_workers_serving", "Worker processes that serve.", serving)
        yield CounterMetricFamily(
            "kustos_workers_ended", "Worker processes that ended and were restarted.", ended
        )
        yield CounterMetricFamily(
            "kustos_workers_fenced",
            "Worker processes that were fenced: they lost their clients and ended.",
            fenced,
        )
