"""Metrics as Prometheus reads them, over HTTP as it asks for them."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from socket import AF_INET, SOCK_STREAM, socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kustos.authorizer import AuthorizerMetrics
from kustos.client import NodeAddress
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.audit import OnFull
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.counters import LISTENERS_MAX, GatewayMetrics
from kustos.gateway.metrics.observer import FixedPosition, GatewayObserver
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.server.http import HttpEndpoint
from kustos.wire.api_keys import ApiKey
from testkit.gateway.audit import CONTEXT, DENIED, EVENTS, decided, refusing

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def get(port: int, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["content-type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["content-type"], error.read().decode()


def test_events_are_counted() -> None:
    metrics = GatewayMetrics()
    metrics.decided(ApiKey.METADATA, [decided("a"), decided("b"), decided("c", DENIED)])
    metrics.answered(ApiKey.METADATA, 0.003, 0.002)
    metrics.answered(ApiKey.METADATA, 0.3)
    clients = metrics.listener("CLIENTS")
    assert metrics.listener("CLIENTS") is clients
    clients.created, clients.open = 2, 1
    clients.incoming_bytes, clients.outgoing_bytes = 100, 50
    metrics.authenticated("PLAIN", True)
    metrics.authenticated("PLAIN", False)
    for succeeded in (True, True, False, False, False):
        metrics.authenticated("PLAIN", succeeded, True)
    metrics.session_expired("CLIENTS")
    metrics.upstream_failed()
    found = samples(metrics.text().decode())
    decisions = "kustos_authorization_decisions_total"
    assert value(found, decisions, api="Metadata", result="ALLOWED") == 2
    assert value(found, decisions, api="Metadata", result="DENIED") == 1
    assert value(found, "kustos_request_seconds_count", api="Metadata") == 2
    assert value(found, "kustos_request_seconds_bucket", api="Metadata", le="0.005") == 1
    assert value(found, "kustos_request_upstream_seconds_count", api="Metadata") == 1
    sockets = "kafka_server_socket_server_metrics_"
    assert value(found, sockets + "connection_count", listener="CLIENTS") == 1
    assert value(found, sockets + "connection_creation_total", listener="CLIENTS") == 2
    assert value(found, sockets + "incoming_byte_total", listener="CLIENTS") == 100
    assert value(found, sockets + "outgoing_byte_total", listener="CLIENTS") == 50
    assert value(found, sockets + "successful_authentication_total", mechanism="PLAIN") == 1
    assert value(found, sockets + "failed_authentication_total", mechanism="PLAIN") == 1
    assert value(found, sockets + "successful_reauthentication_total", mechanism="PLAIN") == 2
    assert value(found, sockets + "failed_reauthentication_total", mechanism="PLAIN") == 3
    assert value(found, sockets + "expired_connections_killed_total", listener="CLIENTS") == 1
    assert value(found, "kustos_upstream_connection_errors_total") == 1


def test_a_probe_counts_as_a_denial_only_in_kafkas_rates() -> None:
    metrics, now_ms = GatewayMetrics(), 0
    rates = AuthorizerMetrics(lambda: now_ms)
    metrics.watch_authorizer(lambda: 0, lambda: 0, rates)
    probe = decided("kafka-cluster", DENIED, log_if_denied=False)
    of_any = probe._replace(name=None)
    listed = decided("b", DENIED, log_if_denied=False)._replace(listing=True)
    items = [probe, probe, of_any, listed, decided("a", log_if_denied=False)]
    metrics.decided(ApiKey.INIT_PRODUCER_ID, items)
    found = samples(metrics.text().decode())
    decisions = "kustos_authorization_decisions_total"
    counted = {
        result: value(found, decisions, api="InitProducerId", result=result)
        for result in ("ALLOWED", "DENIED", "PROBE", "FILTERED")
    }
    expected = {"ALLOWED": 1, "DENIED": 1, "PROBE": 2, "FILTERED": 1}
    assert counted == expected, "nothing is asked after any of the type"
    assert rates.denied.measure(now_ms) == 4 * rates.allowed.measure(now_ms) > 0


def test_clients_cannot_create_time_series() -> None:
    metrics = GatewayMetrics()
    for number in range(1000):
        metrics.decided(10_000 + number, [decided("a")])
        metrics.authenticated(f"MECHANISM-{number}", False)
        metrics.listener(f"LISTENER-{number}").open += 1
    found = samples(metrics.text().decode())
    assert value(found, "kustos_authorization_decisions_total", api="other", result="ALLOWED") == 1000
    failed = "kafka_server_socket_server_metrics_failed_authentication_total"
    assert value(found, failed, mechanism="other") == 1000
    listeners = {labels for name, labels in found if name.endswith("connection_count")}
    assert len(listeners) == LISTENERS_MAX + 1


def test_gateways_of_one_process_have_separate_counters() -> None:
    first, second = GatewayMetrics(), GatewayMetrics()
    first.upstream_failed()
    assert value(samples(second.text().decode()), "kustos_upstream_connection_errors_total") == 0


def test_request_time_is_split_into_local_and_remote() -> None:
    metrics = GatewayMetrics()
    metrics.answered(ApiKey.CREATE_ACLS, 0.5, None, 0.25)
    metrics.answered(ApiKey.CREATE_ACLS, 0.5)
    metrics.answered(ApiKey.METADATA, 0.75, 0.5, 0.125)
    found = samples(metrics.text().decode())
    times = "kafka_network_request_metrics_"
    assert value(found, times + "local_time_ms_sum", request="CreateAcls") == 750
    assert value(found, times + "remote_time_ms_sum", request="CreateAcls") == 250
    assert value(found, times + "local_time_ms_count", request="CreateAcls") == 2
    assert value(found, times + "remote_time_ms_count", request="CreateAcls") == 2
    assert value(found, times + "local_time_ms_sum", request="Metadata") == 125
    assert value(found, times + "remote_time_ms_sum", request="Metadata") == 625


@pytest.mark.behaviour("B028")
def test_the_standard_authorizer_metrics_have_kafkas_names() -> None:
    now_ms = 0
    metrics = GatewayMetrics()
    metrics.watch_authorizer(lambda: 12, lambda: 0, AuthorizerMetrics(lambda: now_ms))
    metrics.decided(ApiKey.METADATA, [decided("a"), decided("b"), decided("c", DENIED)])
    now_ms = 30_000
    found = samples(metrics.text().decode())
    tags = {"config": "authorizer.class.name", "class": "StandardAuthorizer", "role": "broker"}
    plugins = "kafka_server_plugins_"
    assert value(found, plugins + "acls_total_count", **tags) == 12
    assert value(found, plugins + "authorization_allowed_rate_per_minute", **tags) == 4
    assert value(found, plugins + "authorization_denied_rate_per_minute", **tags) == 2
    assert value(found, plugins + "authorization_request_rate_per_minute", **tags) == 6


async def test_operations_in_the_purgatory_are_exported() -> None:
    metrics = GatewayMetrics()
    purgatory = DelayedFuturePurgatory(ALTER_ACLS, 60_000)
    metrics.watch_purgatory(purgatory)
    change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asked = asyncio.ensure_future(purgatory.outcomes([change]))
    await asyncio.sleep(0)
    names = ("num_delayed_operations", "purgatory_size")
    for figure in (1, 0):
        found = samples(metrics.text().decode())
        for name in names:
            full = f"kafka_server_delayed_operation_purgatory_{name}"
            assert value(found, full, delayedOperation="AlterAcls") == figure
            assert value(found, full, delayedOperation="acl-update") == figure
        change.cancel()
        await asked
        await asyncio.sleep(0)


async def test_the_observer_reports_to_the_log_and_the_metrics() -> None:
    sink = refusing("json")
    audit = AuditLog(EVENTS, [sink], on_full=OnFull.DROP)
    metrics = GatewayMetrics()
    metrics.watch(acl_count=lambda: 12, metadata_offset=lambda: 345, audit=audit)
    observer = GatewayObserver(audit, metrics, FixedPosition(345))
    observer.decided(CONTEXT, [decided("a"), decided("b")], 5)
    observer.answered(ApiKey.METADATA, 0.1)
    assert not observer.is_full
    found = samples(metrics.text().decode())
    assert value(found, "kafka_server_authorizer_metrics_acls_total_count") == 12
    assert value(found, "kafka_server_authorizer_acl_count") == 12
    assert value(found, "kafka_server_broker_metadata_metrics_last_applied_record_offset") == 345
    assert value(found, "kustos_audit_queue_events", sink="json") == 2
    await audit.close()
    found = samples(metrics.text().decode())
    assert value(found, "kustos_audit_dropped_events_total", sink="json") == 2
    assert value(found, "kustos_audit_sink_failures_total", sink="json") == 1
    assert value(found, "kustos_audit_sink_failing", sink="json") == 1
    assert value(found, "kustos_audit_full") == 0
    assert value(found, "kustos_authorization_decisions_total", api="Metadata", result="ALLOWED") == 2


@pytest.fixture
def taken_port() -> Iterator[int]:
    with closing(socket(AF_INET, SOCK_STREAM)) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_bytes_held_for_answers_are_exported() -> None:
    metrics, answers = GatewayMetrics(), AnswerBudget(8 * 2**20)
    metrics.watch_answers(answers)
    share = answers.share()
    share.reserve(2**30)
    found = samples(metrics.text().decode())
    assert value(found, "kustos_answers_held_bytes") == 2 * 2**20
    assert value(found, "kustos_answers_max_bytes") == 8 * 2**20
    share.hold(0)
    assert value(samples(metrics.text().decode()), "kustos_answers_held_bytes") == 0


async def test_metrics_health_and_readiness_are_served_over_http() -> None:
    metrics = GatewayMetrics()
    metrics.upstream_failed()
    parts = {"acls": True, "audit": False}
    endpoint = HttpEndpoint(NodeAddress("127.0.0.1", 0), metrics, lambda: parts)
    await endpoint.start()
    try:
        status, kind, text = await asyncio.to_thread(get, endpoint.port, "/metrics")
        assert status == 200
        assert kind.startswith("text/plain; version=")
        assert value(samples(text), "kustos_upstream_connection_errors_total") == 1
        assert (await asyncio.to_thread(get, endpoint.port, "/health"))[0] == 200
        status, _, text = await asyncio.to_thread(get, endpoint.port, "/ready")
        assert status == 503
        assert json.loads(text) == {"ready": False, "parts": {"acls": True, "audit": False}}
        parts["audit"] = True
        assert (await asyncio.to_thread(get, endpoint.port, "/ready"))[0] == 200
        assert (await asyncio.to_thread(get, endpoint.port, "/other"))[0] == 404
    finally:
        port = endpoint.port
        await endpoint.stop()
    await endpoint.stop()
    with pytest.raises(urllib.error.URLError):
        await asyncio.to_thread(get, port, "/health")


async def test_a_port_in_use_raises_a_startup_error(taken_port: int) -> None:
    endpoint = HttpEndpoint(NodeAddress("127.0.0.1", taken_port), GatewayMetrics(), dict)
    with pytest.raises(OSError, match="in use"):
        await endpoint.start()
    await endpoint.stop()
