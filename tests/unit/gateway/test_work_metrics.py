"""Metrics of repeated requests, of expired sessions, and of the event loop's lag."""

import asyncio
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerMetrics, StandardAuthorizer
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.sink_writer import OnFull
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.loop_lag import SAMPLE_EVERY_S, WINDOW_S, LoopLag
from kustos.gateway.metrics.observer import FixedPosition, GatewayObserver
from kustos.gateway.session.logins import Login
from kustos.gateway.upstream.topic_ids import TopicIds
from kustos.gateway.workers.figures import NodeFigures
from kustos.wire.api_keys import ApiKey
from testkit.gateway.audit import CONTEXT, EVENTS, ControlledSink, decided
from testkit.protocol.random_requests import allow
from tests.unit.gateway.test_metrics import samples, value
from tests.unit.gateway.test_topic_ids import TOPICS, Upstream, topic_id

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
HELD_UP_S = 0.2
CLOCK_S = 0.01
"""More than the resolution of any event loop's clock."""


def figure(metrics: GatewayMetrics, name: str, **labels: str) -> float | None:
    return value(samples(metrics.text().decode()), name, **labels)


async def test_a_repeated_request_is_counted_in_addition_to_its_decisions() -> None:
    metrics = GatewayMetrics()
    observer = GatewayObserver(AuditLog(EVENTS, []), metrics, FixedPosition(1))
    assert figure(metrics, "kustos_repeated_requests_total") == 0
    items = [decided("a"), decided("b")]
    observer.decided(CONTEXT, items, 5)
    recorder = observer.recorder(CONTEXT, items)
    assert figure(metrics, "kustos_repeated_requests_total") == 0
    for correlation_id in (10, 11):
        assert recorder.record(correlation_id, 5)
        recorder.count()
    assert figure(metrics, "kustos_repeated_requests_total") == 2
    decisions = "kustos_authorization_decisions_total"
    assert figure(metrics, decisions, api="Metadata", result="ALLOWED") == 6


@pytest.mark.parametrize("on_full", [OnFull.BLOCK, OnFull.DENY])
async def test_a_full_log_in_mode_deny_rejects_repetitions(on_full: OnFull) -> None:
    sink = ControlledSink()
    log = AuditLog(EVENTS, [sink], queue_max_events=2, on_full=on_full)
    observer = GatewayObserver(log, GatewayMetrics(), FixedPosition(1))
    recorder = observer.recorder(CONTEXT, [decided("a")])
    assert recorder.record(1, 5)
    assert recorder.record(2, 5)
    assert observer.is_full is (on_full is OnFull.BLOCK)
    assert (observer.refusal() is not None) is (on_full is OnFull.DENY)
    assert recorder.record(3, 5) is (on_full is OnFull.BLOCK), "decided before the check for space"
    sink.may_write.set()
    await log.close()
    assert len(sink.names) == 2 + (on_full is OnFull.BLOCK)


async def test_decisions_count_in_the_rates_when_the_loop_is_sampled() -> None:
    now_ms = 0
    metrics, sampled = GatewayMetrics(), asyncio.Event()
    metrics.watch_authorizer(lambda: 0, lambda: 0, AuthorizerMetrics(lambda: now_ms))
    metrics.decided(ApiKey.METADATA, [decided("a")] * 3)

    def sample() -> None:
        metrics.sample_rates()
        sampled.set()

    lag = LoopLag(asyncio.get_running_loop().time, sample)
    lag.start()
    await sampled.wait()
    lag.stop()
    now_ms = 61_000
    metrics.decided(ApiKey.METADATA, [decided("a")])
    rates = [each for (name, _), each in samples(metrics.text().decode()).items() if "_rate_per" in name]
    assert sorted(rates) == [0, 2, 2], "without the three, which are older than a minute"


async def test_a_session_that_expired_counts_for_its_listener() -> None:
    metrics = GatewayMetrics()
    observer = GatewayObserver(AuditLog(EVENTS, []), metrics, FixedPosition(1))
    metrics.listener("CLIENTS")
    name = "kafka_server_socket_server_metrics_expired_connections_killed_total"
    assert figure(metrics, name, listener="CLIENTS") == 0
    login = Login(
        listener_name="CLIENTS",
        security_protocol="SASL_PLAINTEXT",
        host="10.0.0.1",
        mechanism="PLAIN",
        claimed_name="alice",
        is_reauthentication=False,
        principal=KafkaPrincipal("User", "alice"),
    )
    observer.session_expired(login)
    assert figure(metrics, name, listener="CLIENTS") == 1


async def test_topic_ids_count_as_known_or_as_queried() -> None:
    metrics, ids = GatewayMetrics(), TopicIds(Upstream(TOPICS).ask)
    metrics.watch_topic_ids(ids)
    wanted = [topic_id(0), topic_id(1), topic_id(2)]
    assert ids.known(wanted) is None
    assert await ids.resolve(wanted) == {topic_id(0): "topic-0", topic_id(2): "topic-2"}
    assert figure(metrics, "kustos_topic_ids_total", outcome="KNOWN") == 0
    assert figure(metrics, "kustos_topic_ids_total", outcome="QUERIED") == 3
    assert ids.known([topic_id(0), topic_id(2)]) is not None
    assert figure(metrics, "kustos_topic_ids_total", outcome="KNOWN") == 2
    assert figure(metrics, "kustos_topic_ids_total", outcome="QUERIED") == 3


def test_a_name_is_searched_once_per_connection_and_acl_version() -> None:
    standard = StandardAuthorizer.of([allow(TOPIC, "orders", READ), allow(TOPIC, "*", READ)])
    metrics = GatewayMetrics()
    metrics.watch_authorizer(lambda: 2, lambda: standard.searches, AuthorizerMetrics())
    session = standard.session(KafkaPrincipal("User", "alice"), "10.0.0.1")
    for _ in range(3):
        assert session.decide(READ, TOPIC, "orders").allowed
        assert session.decide(READ, TOPIC, "pay").allowed
    assert figure(metrics, "kustos_authorizer_searches_total") == 2
    standard.add_acl(UUID(int=9), allow(TOPIC, "other", READ))
    assert session.decide(READ, TOPIC, "orders").allowed
    assert figure(metrics, "kustos_authorizer_searches_total") == 3


def test_the_highest_lag_is_exported_for_one_to_two_minutes() -> None:
    now_s = 1000.0
    metrics, lag = GatewayMetrics(), LoopLag(lambda: now_s)
    metrics.watch_loop(lag)
    lag.late(0.003)
    lag.late(0.3)
    assert figure(metrics, "kustos_event_loop_lag_seconds_count") == 2
    assert figure(metrics, "kustos_event_loop_lag_seconds_bucket", le="0.005") == 1
    assert figure(metrics, "kustos_event_loop_lag_max_seconds") == 0.3
    now_s += WINDOW_S
    lag.late(0.001)
    assert figure(metrics, "kustos_event_loop_lag_max_seconds") == 0.3
    now_s += WINDOW_S
    assert figure(metrics, "kustos_event_loop_lag_max_seconds") == 0.001
    now_s += 2 * WINDOW_S
    assert figure(metrics, "kustos_event_loop_lag_max_seconds") == 0
    assert figure(metrics, "kustos_event_loop_lag_seconds_count") == 3


async def test_a_blocked_loop_has_a_lag() -> None:
    loop = asyncio.get_running_loop()
    lag = LoopLag(loop.time)
    lag.start()
    due_s, taken = loop.time() + SAMPLE_EVERY_S, asyncio.Event()
    # what no callback may do: nothing else runs until the timer is long due
    while loop.time() < due_s + HELD_UP_S:
        pass
    loop.call_later(SAMPLE_EVERY_S, taken.set)
    await taken.wait()
    assert lag.highest_s() >= HELD_UP_S - CLOCK_S
    lag.stop()
    lag.stop()


def test_the_lag_of_a_node_is_the_highest_lag_of_its_processes() -> None:
    pages = []
    for lag_s in (0.25, 0.5, 0.125):
        metrics, lag = GatewayMetrics(), LoopLag(lambda: 0.0)
        metrics.watch_loop(lag)
        lag.late(lag_s)
        pages.append(metrics.text())
    figures = NodeFigures()
    figures.keep("one", pages[0])
    figures.keep("two", pages[1])
    found = samples(figures.text(pages[2]).decode())
    assert value(found, "kustos_event_loop_lag_max_seconds") == 0.5
    assert value(found, "kustos_event_loop_lag_seconds_count") == 3
