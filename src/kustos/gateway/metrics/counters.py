"""The counters of the gateway, in Prometheus' form, with Kafka's JMX names where Kafka has the same metric.

A JMX name such as `kafka.server:type=socket-server-metrics, connection-count` has the form in which the usual
exporters write it: `kafka_server_socket_server_metrics_connection_count`. No label contains a text that a
client chooses (principal, client id, topic). Labels are APIs of the gateway's table, and listeners and
mechanisms of the settings, so the number of series is bounded.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, generate_latest

from kustos.authorizer import AuthorizerMetrics
from kustos.gateway.apis.purgatory import DelayedFuturePurgatory
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.loop_lag import LoopLag, WatchedLoop
from kustos.gateway.metrics.tallies import (
    ApiTally,
    DecisionSums,
    LoginTally,
    SocketTally,
    Tallied,
    WatchedTimes,
)
from kustos.gateway.metrics.watched import (
    Watched,
    WatchedAnswers,
    WatchedAuthorizer,
    WatchedListeners,
    WatchedPurgatory,
    WatchedRequests,
    WatchedTopicIds,
)
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.request_budget import RequestBudget
from kustos.gateway.upstream.topic_ids import TopicIds
from kustos.protocol import ADMIN_TABLE, TABLE, Decided
from kustos.wire import api_name

OTHER: Final = "other"
"""The label of APIs, listeners and mechanisms that are not in the tables."""

MECHANISMS: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "SSL"})
"""SSL: the client authenticates with a certificate."""

LISTENERS_MAX: Final = 64
"""The maximum number of listeners with their own series; the settings allow fewer."""


def _token_counter(registry: CollectorRegistry) -> Counter:
    return Counter(
        "kustos_upstream_delegation_tokens",
        "Delegation tokens that kustos requested upstream in the name of clients, by outcome: `created`, "
        "`refused` or `unanswered`.",
        ("outcome",),
        registry=registry,
    )


class GatewayMetrics:
    """The counters of one gateway. Nothing is global, so two gateways in a process count separately.

    `mechanisms`: the mechanisms of the settings that kustos does not implement itself.
    """

    def __init__(self, mechanisms: frozenset[str] = frozenset()) -> None:
        self._mechanisms: Final = MECHANISMS | mechanisms
        self.registry: Final = CollectorRegistry()
        registry = self.registry
        self._upstream_errors: Final = Counter(
            "kustos_upstream_connection_errors",
            "Connections to upstream brokers that could not be made, or broke.",
            registry=registry,
        )
        self._tokens: Final = _token_counter(registry)
        self._rejected: Final = Counter(
            "kustos_connections_rejected",
            "Connections closed on arrival because there were too many.",
            registry=registry,
        )
        self._handshakes: Final = Counter(
            "kustos_failed_handshakes",
            "Connections that ended before anybody could log in, by kind: in the TLS handshake, as they "
            "spoke another protocol than the listener's, or by a limit on unauthenticated clients.",
            ("listener", "kind"),
            registry=registry,
        )
        self._authorizer: WatchedAuthorizer | None = None
        self._apis: Final[dict[str, ApiTally]] = {}
        self._sockets: Final[dict[str, SocketTally]] = {}
        self._logins: Final[dict[str, LoginTally]] = {}
        registry.register(Tallied(self._apis, self._sockets, self._logins))
        registry.register(WatchedTimes(self._apis))
        self._by_api: Final[dict[int, ApiTally]] = {}
        self._listeners: Final[set[str]] = set()

    def decided(self, api_key: int, decided: Iterable[Decided]) -> None:
        """Count the decisions of a request."""
        self.tally(api_key).add(DecisionSums.of(decided))

    def session_expired(self, listener: str) -> None:
        """Count a connection that is closed because the session of its login has expired."""
        self.listener(listener).expired += 1

    def answered(
        self,
        api_key: int,
        seconds: float,
        upstream_seconds: float | None = None,
        held_seconds: float = 0.0,
    ) -> None:
        """Count an answered request; `upstream_seconds` is None if upstream was not queried or not timed.

        `held_seconds`: how long the request waited for kustos itself, for example for a change of ACLs.
        """
        tally = self._by_api.get(api_key) or self.tally(api_key)
        tally.total.observe(seconds)
        tally.remote_s += held_seconds
        if upstream_seconds is not None:
            tally.upstream.observe(upstream_seconds)
            tally.remote_s += upstream_seconds

    def authenticated(self, mechanism: str, succeeded: bool, is_reauthentication: bool = False) -> None:
        """Count a finished login; count an unknown mechanism under `other`.

        Logins of live sessions have separate counters (KIP-368).
        """
        name = mechanism if mechanism in self._mechanisms else OTHER
        tally = self._logins.get(name) or self._logins.setdefault(name, LoginTally())
        if is_reauthentication:
            tally.renewed += succeeded
            tally.unrenewed += not succeeded
        else:
            tally.succeeded += succeeded
            tally.failed += not succeeded

    def upstream_failed(self) -> None:
        """Count a connection to upstream that failed to open, or broke."""
        self._upstream_errors.inc()

    def token_requested(self, outcome: str) -> None:
        """Count a delegation token that was requested upstream; the number of outcomes is small."""
        self._tokens.labels(outcome).inc()

    def rejected(self) -> None:
        """Count a connection that was closed on arrival."""
        self._rejected.inc()

    def handshake_failed(self, listener: str, kind: str) -> None:
        """Count a connection that ended before the client could log in; the number of kinds is small."""
        name = listener if listener in self._listeners else OTHER
        self._handshakes.labels(name, kind).inc()

    def listener(self, name: str) -> SocketTally:
        """Return the metrics of a listener."""
        return self._sockets.get(name) or self._sockets.setdefault(self._label(name), SocketTally())

    def _label(self, listener: str) -> str:
        if listener not in self._listeners:
            if len(self._listeners) >= LISTENERS_MAX:
                return OTHER
            self._listeners.add(listener)
        return listener

    def tally(self, api_key: int) -> ApiTally:
        """Return the metrics of an API."""
        if (known := self._by_api.get(api_key)) is not None:
            return known
        is_known = api_key in TABLE or api_key in ADMIN_TABLE
        tally = self._apis.setdefault(api_name(api_key) if is_known else OTHER, ApiTally())
        if is_known:
            self._by_api[api_key] = tally
        return tally

    def sample_rates(self) -> None:
        """Pass the decisions since the last call on to Kafka's rates per minute.

        The timer of the event loop's lag calls this method ten times a second, so no request reads a clock
        for the rates.
        """
        if self._authorizer is not None:
            self._authorizer.sample()

    def watch(
        self, *, acl_count: Callable[[], int], metadata_offset: Callable[[], int], audit: AuditLog
    ) -> None:
        """Export these values too, computed at each scrape; call it once."""
        self.registry.register(Watched(acl_count, metadata_offset, audit))

    def watch_authorizer(
        self, acl_count: Callable[[], int], searches: Callable[[], int], rates: AuthorizerMetrics
    ) -> None:
        """Export StandardAuthorizer's own metrics too, and count decisions in `rates`; call it once."""
        self._authorizer = WatchedAuthorizer(acl_count, searches, rates, self._apis)
        self.registry.register(self._authorizer)

    def watch_topic_ids(self, topic_ids: TopicIds) -> None:
        """Export the number of known topic ids too; call it once."""
        self.registry.register(WatchedTopicIds(topic_ids))

    def watch_loop(self, lag: LoopLag) -> None:
        """Export the lag of the event loop too; call it once."""
        self.registry.register(WatchedLoop(lag))

    def watch_listeners(self, enforces: Mapping[str, bool]) -> None:
        """Export too which listeners enforce decisions; call it once."""
        self.registry.register(WatchedListeners(enforces))

    def watch_answers(self, answers: AnswerBudget) -> None:
        """Export the metrics of the answer budget too; call it once."""
        self.registry.register(WatchedAnswers(answers))

    def watch_requests(self, requests: RequestBudget) -> None:
        """Export the metrics of the request budget too; call it once."""
        self.registry.register(WatchedRequests(requests))

    def watch_purgatory(self, purgatory: DelayedFuturePurgatory) -> None:
        """Export the metrics of the purgatory too; call it once."""
        self.registry.register(WatchedPurgatory(purgatory))

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
