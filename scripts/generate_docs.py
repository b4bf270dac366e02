"""Writes the pages and lists that come from tables in the code: `python -m scripts.generate_docs`."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase

from kustos.analysis.lint import LINT_CODES
from kustos.auth import SASL_SERVER_TRANSITIONS, sasl_server_diagram
from kustos.authorizer import AuthorizerMetrics
from kustos.authorizer.audit import (
    AUDIT_FIELDS,
    AUDIT_SCHEMA_VERSION,
    SECURITY_FIELDS,
    SECURITY_SCHEMA_VERSION,
    SECURITY_TEXT_MAX_CHARACTERS,
    AuditField,
)
from kustos.gateway.apis import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.life_cycle import LifeCycle
from kustos.gateway.listener import CONNECTION_LIFE
from kustos.gateway.metrics import (
    GatewayMetrics,
    LoopLag,
    QuorumFigures,
    WatchedLog,
    WatchedProcess,
    WatchedQuorum,
)
from kustos.gateway.session import SLOT_LIFE, AnswerBudget, RequestBudget
from kustos.gateway.shadow import CandidateTrial, WatchedTrial
from kustos.gateway.upstream import LINK_LIFE, REQUEST_LIFE, TopicIds
from kustos.gateway.workers import WatchedWorkerPool
from kustos.metadata.quorum import NEXT, FollowerPhase
from kustos.server.settings.page import configuration_page
from kustos.wire import ApiKey
from scripts.dashboard import dashboard
from scripts.guard_pages import authorization, operations_module, readme
from scripts.pages import REFERENCE, WIDE, page, table
from scripts.table_pages import pipeline_tables


def audit_fields() -> str:
    """Return the page of audit fields."""
    head = ("field", "type", "may be null", "meaning")
    decisions, security = (
        [(f"`{field.name}`", str(field.kind), _may_be_null(field), field.meaning) for field in fields]
        for fields in (AUDIT_FIELDS, SECURITY_FIELDS)
    )
    intro = (
        "The audit log has one JSON object per line. Its `schema_version` says which of the two tables "
        "describes it."
    )
    return page(
        "# Audit fields",
        intro,
        f"## Decisions\n\nSchema version {AUDIT_SCHEMA_VERSION}. A dot in a name marks a nested object.",
        table(head, decisions),
        f"## Security events\n\nSchema version {SECURITY_SCHEMA_VERSION}: logins, expired sessions, and "
        "changes of users, tokens and settings.\n"
        f"Texts are truncated to {SECURITY_TEXT_MAX_CHARACTERS} characters.",
        table(head, security),
    )


def _may_be_null(field: AuditField) -> str:
    if field.scope == "shadow":
        return "yes; only in lines with a shadow decision"
    if field.came_later:
        return "yes; missing in lines of earlier versions"
    return "yes" if field.nullable else "no"


def sasl() -> str:
    """Return the page of the SASL state machine."""
    rows = [
        (f"`{row.state.name}`", row.event.value, row.action.value, f"`{row.target.name}`")
        for row in SASL_SERVER_TRANSITIONS
    ]
    return page(
        WIDE,
        "# The states of a login",
        "<!-- made from the table in `kustos.auth.sasl_table`; do not edit -->",
        "Each connection to a SASL listener is in one of these states. Only this table decides: a request "
        "without a row closes the connection.",
        table(("State", "Input", "Action", "Next state"), rows),
        "## Diagram",
        f"```mermaid\n{sasl_server_diagram()}```",
    )


DONE: Final = {
    "_take": "append the batches, apply the committed ones",
    "_cut_back": "truncate the log to the common part; end if the removed part was applied",
    "_begin_copy": "request the snapshot",
    "_take_chunk": "append the chunk",
    "_install": "replace all metadata with the snapshot",
    "_turn_to_leader": "ask that controller",
    "_let_go": "ask another controller",
    "_refuse_cluster": "end",
}


def quorum() -> str:
    """Return the page of the follower's states."""
    rows = [
        (f"`{phase.name}`", event.value, DONE[action], f"`{following.name}`")
        for (phase, event), (following, action) in NEXT.items()
    ]
    arrows = "\n".join(
        f"    {phase.name} --> {following.name}: {event.value}"
        for (phase, event), (following, _) in NEXT.items()
        if phase is not following
    )
    return page(
        WIDE,
        "# The states of a follower",
        "<!-- made from the table in `kustos.metadata.quorum.follower`; do not edit -->",
        "In [cluster mode](../how-to/cluster-mode.md) a node sends one request at a time and is in one of "
        "these states. An answer without a row does not fit the request, and closes the connection.",
        table(("State", "Input", "Action", "Next state"), rows),
        "## Diagram",
        "The diagram omits transitions from a state to itself.",
        "```mermaid\nstateDiagram-v2\n"
        f"    [*] --> {FollowerPhase.SEEKING.name}\n{arrows}\n    {FollowerPhase.ENDED.name} --> [*]\n```",
    )


LIFE_CYCLES: Final[Mapping[str, LifeCycle[Any, Any]]] = {
    "A client connection": CONNECTION_LIFE,
    "A client's request": SLOT_LIFE,
    "An upstream link": LINK_LIFE,
    "A request on a link": REQUEST_LIFE,
}


def life_cycles() -> str:
    """Return the page of the life cycles in the gateway."""
    return page(
        "# The states of a connection",
        "<!-- made from the tables of `kustos.gateway.life_cycle.LifeCycle`; do not edit -->",
        "Each client connection has its own connection to a broker, its *link*, which carries its requests. "
        "The tables list every transition; an event without a row is an error.",
        *(part for title, life in LIFE_CYCLES.items() for part in life_cycle(title, life)),
    )


def life_cycle(title: str, life: LifeCycle[Any, Any]) -> tuple[str | list[str], ...]:
    """Return the section of a life cycle."""
    states = [(f"`{state.name}`", state.value) for state in life.states]
    rows = [(f"`{state.name}`", event.value, f"`{target.name}`") for (state, event), target in life.items()]
    return (
        f"## {title}",
        table(("State", "Meaning"), states),
        table(("State", "Event", "Next state"), rows),
        f"```mermaid\n{life.diagram()}```",
    )


class NoAudit:
    """Stands for the audit log of a node without sinks but one, so that its series have a name."""

    is_full = False

    class budgets:  # noqa: N801 - an attribute of an audit log
        """Budgets that no principal exceeded."""

        class summaries:  # noqa: N801 - an attribute of them
            """Summaries of no decisions."""

            denied = allowed = 0

    refused_requests = 0

    class security:  # noqa: N801 - an attribute of an audit log
        """Security events of which none were counted."""

        class logins:  # noqa: N801 - an attribute of them
            """Logins within their budget."""

            counted = 0

    class Writer:
        """A writer in which nothing is."""

        depth = written = dropped = failures = 0
        is_failing = False

        class Sink:
            """A sink."""

            name = "json"
            shortened_events = 0

        sink: Final = Sink()

    writers: Final = (Writer(),)


async def _no_names(_topic_ids: Collection[bytes]) -> Mapping[bytes, str]:
    """Return what a cluster without topics knows of them."""
    return {}


BUCKET: Final = "le"
"""The label of a histogram's buckets, which none of ours counts."""


def metrics() -> str:
    """Return the page of metrics."""
    gateway = GatewayMetrics()
    gateway.watch(acl_count=lambda: 0, metadata_offset=lambda: 0, audit=NoAudit())  # type: ignore[arg-type]
    gateway.watch_authorizer(lambda: 0, lambda: 0, AuthorizerMetrics())
    gateway.watch_topic_ids(TopicIds(_no_names))
    gateway.watch_loop(LoopLag(lambda: 0.0))
    gateway.watch_purgatory(DelayedFuturePurgatory(ALTER_ACLS, 0))
    gateway.watch_answers(AnswerBudget())
    gateway.watch_requests(RequestBudget())
    gateway.watch_listeners({"CLIENTS": True})
    trial = CandidateTrial()
    trial.lack("acls.yaml")
    gateway.registry.register(WatchedTrial(lambda: trial))
    gateway.registry.register(WatchedProcess(lambda: 0))
    gateway.registry.register(WatchedQuorum(lambda: QuorumFigures(None, True, 0, -1)))
    gateway.registry.register(WatchedLog(lambda: True))
    gateway.registry.register(WatchedWorkerPool(lambda: (0, 0, 0)))
    gateway.answered(ApiKey.METADATA, 0.0)
    gateway.listener("A")
    gateway.authenticated("PLAIN", True)
    families: list[Metric] = list(gateway.registry.collect())
    labels_of: dict[str, tuple[str, ...]] = {
        metric._name: metric._labelnames
        for metric in vars(gateway).values()
        if isinstance(metric, MetricWrapperBase)
    }
    rows = []
    for family in families:
        of_samples = tuple(family.samples[0].labels if family.samples else ())
        labels = labels_of.get(family.name) or tuple(label for label in of_samples if label != BUCKET)
        name = family.name + ("_total" if family.type == "counter" else "")
        shown = ", ".join(f"`{label}`" for label in labels)
        rows.append((f"`{name}`", family.type, shown, family.documentation))
    return page(
        WIDE,
        "# Metrics",
        "<!-- made from what `kustos.gateway.metrics.counters` collects; do not edit -->",
        "A node serves its metrics at `/metrics` of `kustos.http.listener`, in Prometheus's text format. A "
        "metric that Kafka has too bears the name of Kafka's JMX metric, as exporters commonly write it.",
        table(("Metric", "Type", "Labels", "Meaning"), rows),
        "No label contains a principal, a client id or a topic: clients choose these names, and could create "
        "any number of them. The [audit log](../how-to/audit.md) records who did what.",
    )


def lint() -> str:
    """Return the page of lint's codes."""
    overview = [
        (f"[{kind.code}](#{kind.code.lower()})", kind.name, kind.severity.value, kind.summary)
        for kind in LINT_CODES.values()
    ]
    sections = [
        part
        for kind in LINT_CODES.values()
        for part in (
            f"### {kind.code}",
            f"**{kind.name}** ({kind.severity.value}): {kind.summary}",
            kind.why,
            f"*What to do:* {kind.fix}",
        )
    ]
    return page(
        "# What lint finds",
        "<!-- made from the table in `kustos.analysis.lint.codes`; do not edit -->",
        "`kustos lint` and `kustos.analysis.lint` report each finding with a code whose meaning never "
        "changes. [Lint ACLs](../how-to/lint-acls.md) shows how to use it.",
        table(("Code", "Name", "Severity", "Finding"), overview),
        "## Codes in detail",
        *sections,
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "audit-fields.md": audit_fields,
    "authorization.md": authorization,
    "configuration.md": configuration_page,
    "sasl-states.md": sasl,
    "quorum-states.md": quorum,
    "connection-states.md": life_cycles,
    "metrics.md": metrics,
    "lint.md": lint,
    "pipeline-tables.md": pipeline_tables,
    "../../README.md": readme,
    "../../src/kustos/cli/acls/required_operations.py": operations_module,
    "../../deploy/grafana/kustos.json": dashboard,
}


def main() -> None:
    """Write every generated page."""
    for name, made in PAGES.items():
        (REFERENCE / name).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
