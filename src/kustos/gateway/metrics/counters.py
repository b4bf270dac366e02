"""What the gateway counts, in Prometheus' form; Kafka's JMX names where Kafka has the figure.

A JMX name such as `kafka.server:type=socket-server-metrics, connection-count` is written as the usual
exporters write it: `kafka_server_socket_server_metrics_connection_count`. No label ever holds what a
client chooses (principal, client id, topic): labels are APIs of our table, listeners and mechanisms of
the settings, so the number of series is bounded.
"""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kustos.authorizer import AuthorizerMetrics
from kustos.gateway.apis.purgatory import DelayedFuturePurgatory
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.watched import (
    TimeSplit,
    Watched,
    WatchedAnswers,
    WatchedAuthorizer,
    WatchedPurgatory,
    WatchedTimes,
)
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.protocol import ADMIN_TABLE, TABLE, Decided
from kustos.wire import api_name

PROBE: Final = "PROBE"
"""The result of a denial that refused nothing (`Decided.is_probe`): it is no refusal."""

OTHER: Final = "other"
"""The label of everything outside our tables."""

MECHANISMS: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "SSL"})
"""SSL: a certificate of the client."""

LISTENERS_MAX: Final = 64
"""Listeners with series of their own; the settings allow fewer."""

BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
"""From a request that passes through to one that waits for a group to form."""

_UNAUTHENTICATED: Final = "kustos_unauthenticated_connections"
_SOCKETS: Final = "kafka_server_socket_server_metrics_"


class ApiMetrics:
    """The series of one API, bound once."""

    __slots__ = ("allowed", "denied", "probed", "split", "total", "upstream")

    def __init__(
        self, decisions: Counter, total: Histogram, upstream: Histogram, split: TimeSplit, name: str
    ) -> None:
        self.split: Final = split
        self.allowed: Final = decisions.labels(name, "ALLOWED")
        self.denied: Final = decisions.labels(name, "DENIED")
        self.probed: Final = decisions.labels(name, PROBE)
        self.total: Final = total.labels(name)
        self.upstream: Final = upstream.labels(name)


class SocketMetrics:
    """The series of one listener, bound once."""

    __slots__ = ("created", "incoming", "open", "outgoing")

    def __init__(
        self, opened: Gauge, created: Counter, incoming: Counter, outgoing: Counter, name: str
    ) -> None:
        self.open: Final = opened.labels(name)
        self.created: Final = created.labels(name)
        self.incoming: Final = incoming.labels(name)
        self.outgoing: Final = outgoing.labels(name)


class GatewayMetrics:
    """Counts what happens; nothing here is global, so two gateways in a process count apart.

    `mechanisms`: those of the settings that are not kustos's own.
    """

    def __init__(self, mechanisms: frozenset[str] = frozenset()) -> None:
        self._mechanisms: Final = MECHANISMS | mechanisms
        self.registry: Final = CollectorRegistry()
        registry = self.registry
        self._decisions: Final = Counter(
            "kustos_authorization_decisions",
            "Decisions by API and result; counted once for each item of a request. PROBE is a denial that "
            "refuses nothing, because a later check decides.",
            ("api", "result"),
            registry=registry,
        )
        self._total: Final = Histogram(
            "kustos_request_seconds",
            "Time from a request to its answer (Kafka's TotalTimeMs).",
            ("api",),
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._upstream: Final = Histogram(
            "kustos_request_upstream_seconds",
            "The part of that time that upstream took.",
            ("api",),
            buckets=BUCKETS_S,
            registry=registry,
        )
        labels = ("listener",)
        self._open: Final = Gauge(
            _SOCKETS + "connection_count", "Open connections.", labels, registry=registry
        )
        self._created: Final = Counter(
            _SOCKETS + "connection_creation", "Connections made.", labels, registry=registry
        )
        self._incoming: Final = Counter(
            _SOCKETS + "incoming_byte", "Bytes from clients.", labels, registry=registry
        )
        self._outgoing: Final = Counter(
            _SOCKETS + "outgoing_byte", "Bytes to clients.", labels, registry=registry
        )
        self._succeeded: Final = Counter(
            _SOCKETS + "successful_authentication", "Logins.", ("mechanism",), registry=registry
        )
        self._failed: Final = Counter(
            _SOCKETS + "failed_authentication", "Failed logins.", ("mechanism",), registry=registry
        )
        self._upstream_errors: Final = Counter(
            "kustos_upstream_connection_errors",
            "Connections to upstream brokers that could not be made, or broke.",
            registry=registry,
        )
        self._turned_away: Final = Counter(
            "kustos_connections_turned_away",
            "Connections closed on arrival because there were too many.",
            registry=registry,
        )
        self._unauthenticated: Final = Gauge(
            _UNAUTHENTICATED, "Open connections without authentication yet.", labels, registry=registry
        )
        self._handshakes: Final = Counter(
            "kustos_failed_handshakes",
            "Connections that ended before anybody could log in, by kind: in the TLS handshake, as they "
            "spoke another protocol than the listener's, or by a limit on unauthenticated clients.",
            ("listener", "kind"),
            registry=registry,
        )
        self._rates: AuthorizerMetrics | None = None
        self._splits: Final[dict[str, TimeSplit]] = {}
        registry.register(WatchedTimes(self._splits))
        self._by_api: Final[dict[int, ApiMetrics]] = {}
        self._by_listener: Final[dict[str, SocketMetrics]] = {}

    def decided(self, api_key: int, decided: Iterable[Decided]) -> None:
        """Count the decisions of a request."""
        allowed = denied = probed = 0
        for item in decided:
            if item.decision.allowed:
                allowed += 1
            elif item.is_probe:
                probed += 1
            else:
                denied += 1
        metrics = self._by_api.get(api_key) or self._bind_api(api_key)
        if allowed:
            metrics.allowed.inc(allowed)
        if denied:
            metrics.denied.inc(denied)
        if probed:
            metrics.probed.inc(probed)
        if self._rates is not None:
            # Kafka's own rates count each answer of the authorizer, logged or not
            self._rates.record(allowed, denied + probed)

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Count an answered request; `upstream_seconds` None if upstream was not queried or not timed.

        `held_seconds`: how long it waited for kustos itself, for example for a change of ACLs.
        """
        metrics = self._by_api.get(api_key) or self._bind_api(api_key)
        metrics.total.observe(seconds)
        metrics.split.add(seconds, (upstream_seconds or 0.0) + held_seconds)
        if upstream_seconds is not None:
            metrics.upstream.observe(upstream_seconds)

    def connections_changed(self, listener: str, change: int) -> None:
        """Count a connection in (1) or out (-1)."""
        metrics = self.listener(listener)
        metrics.open.inc(change)
        if change > 0:
            metrics.created.inc(change)

    def received(self, listener: str, size_bytes: int) -> None:
        """Count bytes that came from a client."""
        self.listener(listener).incoming.inc(size_bytes)

    def sent(self, listener: str, size_bytes: int) -> None:
        """Count bytes that went to a client."""
        self.listener(listener).outgoing.inc(size_bytes)

    def authenticated(self, mechanism: str, succeeded: bool) -> None:
        """Count a finished login; one without a known mechanism counts under `other`."""
        counter = self._succeeded if succeeded else self._failed
        counter.labels(mechanism if mechanism in self._mechanisms else OTHER).inc()

    def upstream_failed(self) -> None:
        """Count a connection to upstream that could not be made, or broke."""
        self._upstream_errors.inc()

    def turned_away(self) -> None:
        """Count a connection that was closed on arrival."""
        self._turned_away.inc()

    def unauthenticated_changed(self, listener: str, change: int) -> None:
        """Count a connection that has to authenticate (1), or that has, or has ended (-1)."""
        self._unauthenticated.labels(listener if listener in self._by_listener else OTHER).inc(change)

    def handshake_failed(self, listener: str, kind: str) -> None:
        """Count a connection that ended before anybody could log in; the kinds are few."""
        name = listener if listener in self._by_listener else OTHER
        self._handshakes.labels(name, kind).inc()

    def listener(self, name: str) -> SocketMetrics:
        """Return the series of a listener, to be kept by its connections."""
        metrics = self._by_listener.get(name)
        if metrics is None:
            if len(self._by_listener) >= LISTENERS_MAX:
                name = OTHER
            metrics = self._by_listener[name] = SocketMetrics(
                self._open, self._created, self._incoming, self._outgoing, name
            )
        return metrics

    def _bind_api(self, api_key: int) -> ApiMetrics:
        name, kept = (
            (api_name(api_key), api_key) if api_key in TABLE or api_key in ADMIN_TABLE else (OTHER, -1)
        )
        metrics = self._by_api.get(kept)
        if metrics is None:
            split = self._splits.setdefault(name, TimeSplit())
            metrics = ApiMetrics(self._decisions, self._total, self._upstream, split, name)
            self._by_api[kept] = metrics
        return metrics

    def watch(
        self, *, acl_count: Callable[[], int], metadata_offset: Callable[[], int], audit: AuditLog
    ) -> None:
        """Export these figures too, looked up whenever the metrics are read; call it once."""
        self.registry.register(Watched(acl_count, metadata_offset, audit))

    def watch_authorizer(self, acl_count: Callable[[], int], rates: AuthorizerMetrics) -> None:
        """Export StandardAuthorizer's own figures too, and count decisions in `rates`; call it once."""
        self._rates = rates
        self.registry.register(WatchedAuthorizer(acl_count, rates))

    def watch_answers(self, answers: AnswerBudget) -> None:
        """Export the figures of the answer budget too; call it once."""
        self.registry.register(WatchedAnswers(answers))

    def watch_purgatory(self, purgatory: DelayedFuturePurgatory) -> None:
        """Export the figures of the purgatory too; call it once."""
        self.registry.register(WatchedPurgatory(purgatory))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
