"""The Grafana dashboard, made from a table of panels; `generate_docs` writes it to `deploy/grafana`."""

import json
from dataclasses import dataclass
from typing import Any, Final

SCHEMA_VERSION: Final = 39
"""Of dashboards; Grafana 10.4 and later read it and bring it up to date."""

COLUMNS: Final = 24
PANEL_WIDTH: Final = 8
PANEL_HEIGHT: Final = 8
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
NODES: Final = 'job=~"$job",instance=~"$instance"'
"""The nodes that the dashboard shows."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph, or single numbers: expressions in PromQL, each with its legend; `unit` is Grafana's."""

    title: str
    expressions: tuple[tuple[str, str], ...]
    unit: str = "short"
    description: str = ""
    is_number: bool = False
    thresholds: tuple[tuple[str, float | None], ...] = (("green", None),)
    """(Color, from which value on), for numbers."""


BAD_IF_ANY: Final = (("green", None), ("red", 1.0))
KAFKA: Final = "kafka_server_socket_server_metrics_"


def rate(metric: str, *labels: str, where: str = "") -> str:
    """Return how fast a counter grows a second, by these labels; `where`: more selectors."""
    return f"sum{_by(labels)} (rate({metric}{{{NODES}{where}}}[$__rate_interval]))"


def level(function: str, metric: str, *labels: str) -> str:
    """Return a gauge of all nodes together, by these labels."""
    return f"{function}{_by(labels)} ({metric}{{{NODES}}})"


def quantile(share: float, histogram: str) -> str:
    """Return a quantile of a histogram of all nodes together."""
    return f"histogram_quantile({share}, {rate(histogram + '_bucket', 'le')})"


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""


DENIED: Final = ',result="DENIED"'
KNOWN: Final = ',outcome="KNOWN"'
DECISIONS: Final = "kustos_authorization_decisions_total"
REQUESTS: Final = "kustos_request_seconds"
UPSTREAM: Final = "kustos_request_upstream_seconds"
LAG: Final = "kustos_event_loop_lag_seconds"
REPEATED: Final = "kustos_repeated_requests_total"
TOPIC_IDS: Final = "kustos_topic_ids_total"
APPLIED: Final = "kafka_server_broker_metadata_metrics_last_applied_record_offset"

ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "At a glance",
        (
            Panel(
                "Decisions that denied, per second",
                ((rate(DECISIONS, where=DENIED), "denied"),),
                description="Requests that were refused. Who asked for what is in the audit trail.",
                is_number=True,
            ),
            Panel(
                "ACLs in force",
                ((level("max", "kafka_server_authorizer_metrics_acls_total_count"), "ACLs"),),
                is_number=True,
            ),
            Panel(
                "Trouble",
                (
                    (level("max", "kustos_audit_full"), "audit full"),
                    (level("max", "kustos_audit_sink_failing"), "audit sink fails"),
                    (level("max", "kustos_metadata_stale"), "metadata stale"),
                    (f"1 - {level('min', 'kustos_metadata_takes_changes')}", "no changes taken"),
                ),
                description="1 means that requests, evidence or changes stop here.",
                is_number=True,
                thresholds=BAD_IF_ANY,
            ),
        ),
    ),
    (
        "Requests",
        (
            Panel("Requests by API", ((rate(f"{REQUESTS}_count", "api"), "{{api}}"),), "reqps"),
            Panel(
                "Time to the answer",
                ((quantile(0.5, REQUESTS), "median"), (quantile(0.99, REQUESTS), "99 %")),
                "s",
                "From a request to its answer. A Fetch that waits for records counts the wait.",
            ),
            Panel(
                "The cluster's share of that time",
                ((f"{rate(f'{UPSTREAM}_sum', 'api')} / {rate(f'{REQUESTS}_sum', 'api')}", "{{api}}"),),
                "percentunit",
                "The rest was spent in kustos.",
            ),
            Panel(
                "Decisions",
                ((rate(DECISIONS, "result"), "{{result}}"),),
                "ops",
                "A PROBE denies nothing: a later check decides.",
            ),
            Panel("Denied by API", ((rate(DECISIONS, "api", where=DENIED), "{{api}}"),), "ops"),
            Panel(
                "Bytes",
                (
                    (rate(f"{KAFKA}incoming_byte_total"), "from clients"),
                    (rate(f"{KAFKA}outgoing_byte_total"), "to clients"),
                ),
                "Bps",
            ),
        ),
    ),
    (
        "Clients",
        (
            Panel(
                "Connections",
                (
                    (level("sum", f"{KAFKA}connection_count", "listener"), "{{listener}}"),
                    (
                        level("sum", "kustos_unauthenticated_connections", "listener"),
                        "{{listener}}, new",
                    ),
                ),
            ),
            Panel(
                "Logins",
                (
                    (rate(f"{KAFKA}successful_authentication_total", "mechanism"), "{{mechanism}}"),
                    (rate(f"{KAFKA}failed_authentication_total", "mechanism"), "{{mechanism}}, failed"),
                    (
                        rate(f"{KAFKA}successful_reauthentication_total", "mechanism"),
                        "{{mechanism}}, again",
                    ),
                    (
                        rate(f"{KAFKA}failed_reauthentication_total", "mechanism"),
                        "{{mechanism}}, again, failed",
                    ),
                ),
                "ops",
            ),
            Panel(
                "Sessions that ended",
                ((rate(f"{KAFKA}expired_connections_killed_total", "listener"), "{{listener}}"),),
                "ops",
                "Connections closed because their clients did not log in again in time.",
            ),
            Panel(
                "Turned away",
                (
                    (rate("kustos_connections_rejected_total"), "too many"),
                    (rate("kustos_failed_handshakes_total", "kind"), "{{kind}}"),
                    (rate("kustos_upstream_connection_errors_total"), "broker not reached"),
                ),
                "ops",
            ),
        ),
    ),
    (
        "Work in the gateway",
        (
            Panel(
                "Lag of the event loop",
                (
                    (quantile(0.5, LAG), "median"),
                    (quantile(0.99, LAG), "99 %"),
                    (level("max", "kustos_event_loop_lag_max_seconds"), "highest"),
                ),
                "s",
                "How late a process comes to what is due. All its clients wait that long.",
            ),
            Panel(
                "Decisions that took a search",
                ((f"{rate('kustos_authorizer_searches_total')} / {rate(DECISIONS)}", "share"),),
                "percentunit",
                "The others were known of the connection, or need none. It rises after changes of ACLs.",
            ),
            Panel(
                "Work that was saved",
                (
                    (f"{rate(REPEATED)} / {rate(f'{REQUESTS}_count')}", "repeated requests"),
                    (f"{rate(TOPIC_IDS, where=KNOWN)} / {rate(TOPIC_IDS)}", "known topic ids"),
                ),
                "percentunit",
                "Requests that took over the decisions of an earlier one, and topic ids that were known.",
            ),
        ),
    ),
    (
        "Evidence, memory and processes",
        (
            Panel(
                "Audit events",
                (
                    (rate("kustos_audit_written_events_total", "sink"), "{{sink}}"),
                    (rate("kustos_audit_dropped_events_total", "sink"), "{{sink}}, lost"),
                ),
                "ops",
            ),
            Panel(
                "Audit events that wait", ((level("sum", "kustos_audit_queue_events", "sink"), "{{sink}}"),)
            ),
            Panel(
                "Answers held for clients",
                (
                    (level("sum", "kustos_answers_held_bytes"), "held"),
                    (level("sum", "kustos_answers_max_bytes"), "limit"),
                ),
                "bytes",
                "Near the limit many clients do not read, and the answers of all become small.",
            ),
            Panel(
                "Requests held before they begin",
                (
                    (level("sum", "kustos_requests_held_bytes"), "held"),
                    (level("sum", "kustos_requests_max_bytes"), "limit"),
                ),
                "bytes",
                "At the limit clients wait for each other, and new unauthenticated connections are rejected.",
            ),
            Panel(
                "Metadata log",
                (
                    (
                        level(
                            "max",
                            "kafka_server_broker_metadata_metrics_last_applied_record_offset",
                            "instance",
                        ),
                        "{{instance}}",
                    ),
                ),
                description="The offset up to which changes of ACLs, users and tokens are in force.",
            ),
            Panel(
                "Age of a quorum's metadata",
                ((level("max", "kustos_metadata_staleness_seconds", "instance"), "{{instance}}"),),
                "s",
                "Only in cluster mode. Beyond `kustos.metadata.max.staleness.ms` everything is denied.",
            ),
            Panel(
                "Worker processes",
                (
                    (level("sum", "kustos_workers_serving", "instance"), "{{instance}}"),
                    (rate("kustos_workers_ended_total"), "ended per second"),
                ),
                description="Only with `kustos.workers` above 1.",
            ),
        ),
    ),
)


def dashboard() -> str:
    """Return the dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        heading = {"type": "row", "title": title, "collapsed": False}
        panels.append(_placed(heading, len(panels), (0, top, COLUMNS, 1)))
        top += 1
        for at, panel in enumerate(row):
            down, column = divmod(at, COLUMNS // PANEL_WIDTH)
            place = (column * PANEL_WIDTH, top + down * PANEL_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT)
            panels.append(_placed(_panel(panel), len(panels), place))
        top += -(-len(row) * PANEL_WIDTH // COLUMNS) * PANEL_HEIGHT
    variables = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        _variable("job", "kustos_answers_max_bytes"),
        _variable("instance", 'kustos_answers_max_bytes{job=~"$job"}'),
    ]
    whole = {
        "title": "kustos",
        "uid": "kustos",
        "tags": ["kafka", "security"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": variables},
        "panels": panels,
    }
    return json.dumps(whole, indent=2) + "\n"


def expressions() -> list[str]:
    """Return every expression of the dashboard."""
    return [expression for _, row in ROWS for panel in row for expression, _ in panel.expressions]


def _placed(panel: dict[str, Any], number: int, place: tuple[int, int, int, int]) -> dict[str, Any]:
    return {"id": number + 1, **panel, "gridPos": dict(zip("xywh", place, strict=True))}


def _panel(panel: Panel) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + at), "expr": expression, "legendFormat": legend, "datasource": SOURCE}
        for at, (expression, legend) in enumerate(panel.expressions)
    ]
    steps = [{"color": color, "value": value} for color, value in panel.thresholds]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.is_number:
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    return {
        "type": "stat" if panel.is_number else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": targets,
    }


def _variable(label: str, of: str) -> dict[str, Any]:
    return {
        "name": label,
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values({of}, {label})",
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
