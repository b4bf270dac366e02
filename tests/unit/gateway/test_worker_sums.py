"""The counters of the processes of a node are merged for the node."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kustos.gateway.listener.admission import ConnectionCount
from kustos.gateway.workers.figures import NodeFigures, Page


def page(logins: int, connections: int, offset: int, *, full: bool = False, acls: int = 3) -> bytes:
    registry = CollectorRegistry()
    Counter("kustos_logins", "Logins.", ("mechanism",), registry=registry).labels("PLAIN").inc(logins)
    seconds = Histogram("kustos_seconds", "Time.", buckets=(1.0, 2.0), registry=registry)
    for _ in range(logins):
        seconds.observe(1.5)
    Gauge("kustos_open", "Connections.", registry=registry).set(connections)
    Gauge(
        "kafka_server_broker_metadata_metrics_last_applied_record_offset", "Offset.", registry=registry
    ).set(offset)
    Gauge("kustos_audit_full", "Full.", registry=registry).set(int(full))
    Gauge("kafka_server_authorizer_acl_count", "ACLs.", registry=registry).set(acls)
    return generate_latest(registry)


def shown(text: bytes) -> dict[str, float]:
    lines = [
        line for line in text.decode().splitlines() if not line.startswith("#") and "_created" not in line
    ]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_counters_are_added_and_equal_lowest_or_highest_gauges_are_not() -> None:
    figures = NodeFigures()
    figures.keep("one", page(2, 5, 40, full=True))
    figures.keep("two", page(3, 7, 39))
    found = shown(figures.text(page(1, 0, 41)))
    assert found['kustos_logins_total{mechanism="PLAIN"}'] == 6
    assert found['kustos_seconds_bucket{le="1.0"}'] == 0
    assert found['kustos_seconds_bucket{le="2.0"}'] == found["kustos_seconds_count"] == 6
    assert found["kustos_seconds_sum"] == 9
    assert found["kustos_open"] == 12
    assert found["kafka_server_broker_metadata_metrics_last_applied_record_offset"] == 39
    assert found["kustos_audit_full"] == 1
    assert found["kafka_server_authorizer_acl_count"] == 3


def test_counters_of_a_lost_worker_stay_and_its_gauges_do_not() -> None:
    figures = NodeFigures()
    figures.keep("one", page(2, 5, 40))
    figures.forget("one")
    figures.forget("never seen")
    figures.keep("another", page(1, 1, 44))
    found = shown(figures.text(page(0, 0, 44)))
    assert found['kustos_logins_total{mechanism="PLAIN"}'] == 3
    assert found["kustos_seconds_count"] == 3
    assert found["kustos_open"] == 1
    assert found["kafka_server_broker_metadata_metrics_last_applied_record_offset"] == 44


def test_a_page_is_written_as_it_was_read() -> None:
    text = page(2, 5, 40)
    assert shown(Page.of(text).text()) == shown(text)
    assert {line for line in text.decode().splitlines() if line.startswith("# TYPE")} == {
        line for line in Page.of(text).text().decode().splitlines() if line.startswith("# TYPE")
    }


def test_connections_of_all_workers_are_limited_together() -> None:
    count = ConnectionCount(3, 2)
    assert count.arrived("one", 0, "10.0.0.1") is None
    assert count.arrived("two", 0, "10.0.0.1") is None
    assert "max.connections.per.ip" in (count.arrived("one", 1, "10.0.0.1") or "")
    assert "`max.connections`" in (count.arrived("two", 1, "10.0.0.2") or "")
    # rejected connections count until they are closed
    count.left("one", 1)
    count.left("two", 1)
    count.left("two", 1)
    count.left("three", 7)
    assert count.total == 2
    assert count.arrived("two", 2, "10.0.0.2") is None
    count.gone("two")
    assert count.total == 1
    assert count.arrived("one", 2, "10.0.0.1") is None
    count.change_limits(2, 9)
    assert count.total == 2, "existing clients stay"
    assert "`max.connections`" in (count.arrived("one", 3, "10.0.0.2") or "")
    count.left("one", 3)
    count.change_limits(9, 2)
    assert "max.connections.per.ip" in (count.arrived("one", 4, "10.0.0.1") or "")
    count.left("one", 4)
    count.change_limits(9, 9)
    assert count.arrived("one", 5, "10.0.0.1") is None
