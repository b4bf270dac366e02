"""Metrics that other parts of the node keep, computed at each scrape."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kustos.authorizer import AuthorizerMetrics
from kustos.client import FAILURES
from kustos.gateway.apis.purgatory import ACL_UPDATE, DelayedFuturePurgatory
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.tallies import ApiTally
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.request_budget import RequestBudget
from kustos.gateway.upstream.topic_ids import TopicIds

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
        """Yield the current values."""
        count = self._acl_count()
        yield GaugeMetricFamily(
            "kafka_server_authorizer_acl_count",
            "ACLs in force, -1 if the authorizer does not count them (KIP-801).",
            count,
        )
        yield GaugeMetricFamily("kafka_server_authorizer_metrics_acls_total_count", "ACLs in force.", count)
        yield GaugeMetricFamily(
            "kustos_tasks", "Tasks of the event loops; some for each connection.", _tasks()
        )
        yield GaugeMetricFamily(
            "kafka_server_broker_metadata_metrics_last_applied_record_offset",
            "Offset of the metadata log up to which its records are in force.",
            self._metadata_offset(),
        )
        audit = self._audit
        yield GaugeMetricFamily(
            "kustos_audit_full", "Whether the audit log holds up or refuses all requests.", int(audit.is_full)
        )
        yield CounterMetricFamily(
            "kustos_audit_summarized_decisions",
            "Denials and filtered names counted in summary events, because their principal exceeded its "
            "budget of denials.",
            audit.budgets.summaries.denied,
        )
        yield CounterMetricFamily(
            "kustos_audit_summarized_allowed_decisions",
            "Allowed decisions counted in summary events, because their principal exceeded its budget of use "
            "or of changes.",
            audit.budgets.summaries.allowed,
        )
        yield CounterMetricFamily(
            "kustos_audit_summarized_logins",
            "Logins counted in summary events, because their principal exceeded its budget of logins.",
            audit.security.logins.counted,
        )
        yield CounterMetricFamily(
            "kustos_audit_refused_requests",
            "Requests that came while the audit log was full: what needed a decision was refused "
            "(`kustos.audit.on.full=deny`).",
            audit.refused_requests,
        )
        labels = ("sink",)
        depth = GaugeMetricFamily(
            "kustos_audit_queue_events", "Events that wait to be written.", labels=labels
        )
        failing = GaugeMetricFamily(
            "kustos_audit_sink_failing", "Whether the sink fails to write.", labels=labels
        )
        written = CounterMetricFamily("kustos_audit_written_events", "Events written.", labels=labels)
        dropped = CounterMetricFamily("kustos_audit_dropped_events", "Events lost.", labels=labels)
        failures = CounterMetricFamily("kustos_audit_sink_failures", "Failed writes.", labels=labels)
        shortened = CounterMetricFamily(
            "kustos_audit_shortened_events", "Events written with long texts cut.", labels=labels
        )
        for writer in audit.writers:
            name = (writer.sink.name,)
            depth.add_metric(name, writer.depth)
            failing.add_metric(name, int(writer.is_failing))
            written.add_metric(name, writer.written)
            dropped.add_metric(name, writer.dropped)
            failures.add_metric(name, writer.failures)
            shortened.add_metric(name, writer.sink.shortened_events)
        yield from (depth, failing, written, dropped, failures, shortened)


def _tasks() -> int:
    """Return the number of tasks that are not done, 0 outside of an event loop."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0


class WatchedAnswers(Collector):
    """The budget of answers that clients have not received."""

    def __init__(self, answers: AnswerBudget) -> None:
        self._answers: Final = answers

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        yield GaugeMetricFamily(
            "kustos_answers_held_bytes",
            "Bytes of answers that are held or reserved for clients.",
            self._answers.used_bytes,
        )
        yield GaugeMetricFamily(
            "kustos_answers_max_bytes",
            "The limit for all clients together; each connection may have 1 MiB more.",
            self._answers.max_bytes,
        )


class WatchedRequests(Collector):
    """The budget of requests that wait to be served."""

    def __init__(self, requests: RequestBudget) -> None:
        self._requests: Final = requests

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        requests = self._requests
        yield GaugeMetricFamily(
            "kustos_requests_held_bytes",
            "Bytes of requests that are not whole, or wait for their turn.",
            requests.used_bytes,
        )
        yield GaugeMetricFamily(
            "kustos_requests_max_bytes",
            "The limit for all clients together; beyond it large requests take turns.",
            requests.max_bytes,
        )
        yield GaugeMetricFamily("kustos_requests_waiting", "Requests that wait to be read.", requests.waiting)
        yield CounterMetricFamily(
            "kustos_slow_requests_ended",
            "Connections ended because their request did not become whole while others waited.",
            requests.ended,
        )


class WatchedLog(Collector):
    """The node's own metadata log."""

    def __init__(self, takes_changes: Callable[[], bool]) -> None:
        self._takes_changes: Final = takes_changes

    def collect(self) -> Iterable[Metric]:
        """Yield the current value."""
        yield GaugeMetricFamily(
            "kustos_metadata_takes_changes",
            "Whether changes can be written; 0 after a failed write, until the node restarts.",
            int(self._takes_changes()),
        )


class WatchedListeners(Collector):
    """Whether each listener enforces decisions; the keys of `enforces` are listener names."""

    def __init__(self, enforces: Mapping[str, bool]) -> None:
        self._enforces: Final = enforces

    def collect(self) -> Iterable[Metric]:
        """Yield the values, which never change."""
        family = GaugeMetricFamily(
            "kustos_listener_enforces",
            "Whether the listener enforces what the authorizer decides; 0: it is not a guard "
            "(`kustos.authorization.mode`).",
            labels=("listener",),
        )
        for name, enforces in self._enforces.items():
            family.add_metric((name,), int(enforces))
        yield family


class WatchedAuthorizer(Collector):
    """The metrics of Kafka's StandardAuthorizer (`kafka.server:type=plugins`, Kafka 4.4), and searches."""

    def __init__(
        self,
        acl_count: Callable[[], int],
        searches: Callable[[], int],
        rates: AuthorizerMetrics,
        apis: Mapping[str, ApiTally],
    ) -> None:
        self._acl_count: Final = acl_count
        self._searches: Final = searches
        self._rates: Final = rates
        self._apis: Final = apis
        self._allowed = self._refused = 0
        """The decisions already counted in `rates`."""

    def sample(self) -> None:
        """Count the decisions since the last call in the rates, logged or not, as Kafka does."""
        apis = self._apis.values()
        allowed = sum(api.allowed for api in apis)
        refused = sum(api.denied + api.probed + api.filtered + api.shadowed for api in apis)
        self._rates.record(allowed - self._allowed, refused - self._refused)
        self._allowed, self._refused = allowed, refused

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        self.sample()
        figures = {"acls-total-count": float(self._acl_count())} | self._rates.rates()
        for name, figure in figures.items():
            family = GaugeMetricFamily(
                _PLUGINS + name.replace("-", "_"),
                _MEANINGS.get(name, "ACLs of StandardAuthorizer in force."),
                labels=tuple(_PLUGIN_LABELS),
            )
            family.add_metric(tuple(_PLUGIN_LABELS.values()), figure)
            yield family
        yield CounterMetricFamily(
            "kustos_authorizer_searches",
            "Names searched in the ACLs: a connection searches for each once, and again after a change of "
            "ACLs. All other decisions are known, or need no search.",
            self._searches(),
        )


class WatchedTopicIds(Collector):
    """The names of topic ids."""

    def __init__(self, topic_ids: TopicIds) -> None:
        self._topic_ids: Final = topic_ids

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        family = CounterMetricFamily(
            "kustos_topic_ids",
            "Topic ids by outcome: KNOWN had a name when a request named it, QUERIED was looked up "
            "at upstream, also to refresh a name.",
            labels=("outcome",),
        )
        family.add_metric(("KNOWN",), self._topic_ids.known_ids)
        family.add_metric(("QUERIED",), self._topic_ids.queried_ids)
        yield family


class WatchedPurgatory(Collector):
    """Waiting changes of ACLs (`kafka.server:type=DelayedOperationPurgatory`)."""

    def __init__(self, purgatory: DelayedFuturePurgatory) -> None:
        self._purgatory: Final = purgatory

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
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


class WatchedProcess(Collector):
    """Background failures of a process: of its tasks, and of writing its log."""

    def __init__(self, lost_lines: Callable[[], int]) -> None:
        self._lost_lines: Final = lost_lines

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        failures = CounterMetricFamily(
            "kustos_background_failures",
            "Failures of background tasks, by task; a task that serves the node runs again afterwards.",
            labels=("task",),
        )
        # another thread may add the first failure of a task
        for name, count in sorted(FAILURES.copy().items()):
            failures.add_metric((name,), count)
        yield failures
        yield CounterMetricFamily(
            "kustos_log_lines_lost",
            "Lines of the log that were not written, as standard error took them too slowly or not at all.",
            self._lost_lines(),
        )


@dataclass(frozen=True, slots=True)
class QuorumFigures:
    """The state of a quorum; `staleness_ms` is None before the metadata was first current."""

    staleness_ms: int | None
    is_stale: bool
    epoch: int
    high_watermark: int


class WatchedQuorum(Collector):
    """The quorum of a node in cluster mode."""

    def __init__(self, figures: Callable[[], QuorumFigures]) -> None:
        self._figures: Final = figures

    def collect(self) -> Iterable[Metric]:
        """Yield the current values."""
        now = self._figures()
        yield GaugeMetricFamily(
            "kustos_metadata_staleness_seconds",
            "The highest age that the metadata of the quorum may have, -1 before it was first current.",
            -1 if now.staleness_ms is None else now.staleness_ms / 1000,
        )
        yield GaugeMetricFamily(
            "kustos_metadata_stale",
            "Whether the metadata is too old to decide by, so that everything is denied.",
            int(now.is_stale),
        )
        yield GaugeMetricFamily(
            "kafka_server_raft_metrics_current_epoch", "The epoch of the quorum's leader.", now.epoch
        )
        yield GaugeMetricFamily(
            "kafka_server_raft_metrics_high_watermark",
            "Offset below which the metadata log is known to be committed.",
            now.high_watermark,
        )
