"""Writes the reference pages that come from tables in the code: `python scripts/generate_docs.py`."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from prometheus_client.core import Metric
from prometheus_client.metrics import MetricWrapperBase

from kustos.acl import AclOperation, ResourceType
from kustos.analysis.lint import LINT_CODES
from kustos.auth.diagram import sasl_server_diagram
from kustos.auth.sasl_table import SASL_SERVER_TRANSITIONS
from kustos.authorizer import AuthorizerMetrics
from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION, AuditField
from kustos.gateway.metrics import GatewayMetrics
from kustos.gateway.metrics_quorum import QuorumFigures, WatchedQuorum
from kustos.gateway.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.workers.figures import WatchedCrew
from kustos.metadata.quorum.phases import NEXT, Phase
from kustos.protocol.admin_table import ADMIN_ROWS
from kustos.protocol.api_versions import LOCAL_APIS, common_versions
from kustos.protocol.exchange import Check
from kustos.protocol.steps import ClusterOperations, Gate, Hide, Operations, Row, Step, Strip
from kustos.protocol.table import ROWS
from kustos.wire.api_keys import ApiKey, api_name

REFERENCE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
WIDE: Final = "---\nhide:\n  - toc\n---"
"""The place of the table of contents is the table's, on a page that has one table and no sections."""

GUARD: Final = ("kustos.protocol.table", "kustos.protocol.admin_table", "kustos.protocol.escapes.")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table."""
    cells = [head, tuple("---" for _ in head), *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def page(*parts: str | list[str]) -> str:
    """Return parts with blank lines between them."""
    return "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts) + "\n"


def audit_fields() -> str:
    """Return the page of audit fields."""
    rows = [
        (f"`{field.name}`", str(field.kind), _may_be_null(field), field.meaning) for field in AUDIT_FIELDS
    ]
    intro = f"One JSON object a line, schema version {AUDIT_SCHEMA_VERSION}. A dot in a name nests."
    return page("# Audit fields", intro, table(("field", "type", "may be null", "meaning"), rows))


def _may_be_null(field: AuditField) -> str:
    if field.came_later:
        return "yes; not in lines of earlier versions"
    return "yes" if field.nullable else "no"


def words_of(value: object, seen: set[object]) -> Iterator[str]:
    """Yield what a value of the table, or the handler that it names, asks the authorizer about."""
    match value:
        case Check(operation, resource_type):
            yield f"{operation.name} {resource_type.name}"
        case Hide() | Gate() | Strip():
            yield from words_of(value.check, seen)
        case ClusterOperations():
            yield f"{AclOperation.DESCRIBE.name} {ResourceType.CLUSTER.name}"
        case Mapping():
            for each in value.values():
                yield from words_of(each, seen)
        case _ if inspect.isfunction(value) and value.__module__.startswith(GUARD) and value not in seen:
            seen.add(value)
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(value)))):
                yield from words_of_node(node, value.__globals__, seen)


def words_of_node(node: ast.AST, names: Mapping[str, object], seen: set[object]) -> Iterator[str]:
    """Yield what a piece of a handler's source asks about, and the handlers that it names."""
    match node:
        case ast.Name(id=name):
            yield from words_of(names.get(name), seen)
        case ast.Call(func=ast.Attribute(attr="allows_cluster"), args=[ast.Attribute(attr=operation)]):
            yield f"{operation} CLUSTER"
        case ast.Call(
            func=ast.Attribute(attr="allows_on_some"),
            args=[ast.Attribute(attr=operation), ast.Attribute(attr=resource_type)],
        ):
            yield f"{operation} some {resource_type}"


def needs(row: Row) -> str:
    """Return the operations that a row asks about."""
    found: dict[str, None] = {}
    for step in row.steps:
        found |= dict.fromkeys(words_of(step, set()))
        if isinstance(step, Strip | Hide) and step.unless_cluster is not None:
            found[f"{step.unless_cluster.name} CLUSTER"] = None
    found |= dict.fromkeys(words_of(row.escape, set()))
    return "<br>".join(f"`{words}`" for words in found) or "nothing"


def consequence(step: Step) -> str:
    """Return what happens to what a step does not allow."""
    match step:
        case Gate():
            return "the request is refused"
        case Strip():
            return "the items are refused, the others go on"
        case Hide():
            return "the items are left out"
        case Operations() | ClusterOperations():
            return "the bits of authorized operations are those of the client"
        case _:
            return ""


ESCAPES: Final = {
    "produce": "the topics are refused, the others go on; records of a transaction refuse the whole request; "
    "without acknowledgement (`acks=0`) the connection is closed once the others went on",
    "fetch": "the partitions are refused, the others go on; asked again at every fetch of a session",
    "metadata": "topics are refused where named, left out where all were asked for; "
    "a missing one is made for those who may only",
    "offset_fetch": "groups and named topics are refused; topics are left out where all were asked for",
    "refuse_sasl": "refused: a login is no request any more",
    "create_topics": "the topics are refused; the configuration of a new one is kept from who may not see it",
    "delete_topics": "the topics are refused; who may not describe one does not learn whether it exists",
    "init_producer_id": "the request is refused",
    "alter_scram": "every user of the request is refused",
    "create_token": "the request is refused; for oneself no ACL is asked, but a connection that knows who "
    "asks (not `PLAINTEXT`, not a login by token)",
    "change_token": "owner and renewers may, whatever the ACLs say, over a connection that knows who asks",
    "describe_tokens": "another's tokens are left out unless one of the two is allowed; one's own are shown, "
    "over a connection that knows who asks",
    "consumer_group_describe": "the groups are refused, also where a member has a hidden topic",
    "alter_configs": "the resources are refused, the others go on",
    "describe_configs": "the resources are refused, the others go on",
    "describe_controllers": "the request is refused; the bits of authorized operations are those of "
    "the client",
    "envelope": "the Envelope is refused, and nothing in it is read",
    "describe_topic_partitions": "topics are refused where named, left out where all were asked for",
}
"""What the handlers that are no table come to, in words; each must be here."""


def denied(row: Row) -> str:
    """Return what becomes of that which is not allowed."""
    if row.escape is not None:
        return ESCAPES[row.escape.__name__]
    told = dict.fromkeys(consequence(step) for step in row.steps)
    return "; ".join(each for each in told if each) or "answered to everybody"


def rows_of(rows: Sequence[Row], answered_by: Callable[[Row], str]) -> list[tuple[str, ...]]:
    """Return what the page says of each row of an authorization table."""
    shown: list[tuple[str, ...]] = []
    for row in sorted(rows, key=lambda each: each.api_key):
        lowest, highest = common_versions(row, None) or (0, -1)
        shown.append(
            (
                f"{api_name(row.api_key)} ({row.api_key})",
                f"{lowest}-{highest}",
                answered_by(row),
                needs(row),
                denied(row),
            )
        )
    return shown


def authorization() -> str:
    """Return the page of the authorization tables."""
    head = ("API (key)", "Versions", "Answered by", "Asks about", "What is not allowed")
    return page(
        WIDE,
        "# Authorization of each API",
        "<!-- made from `kustos.protocol.table` and `kustos.protocol.admin_table`; do not edit -->",
        "What the guard does with each API of Kafka's protocol. An API that is not here is not offered to "
        "clients, and a request for it closes the connection.",
        "- **Versions**: what kustos understands. Offered is what upstream has of it; the APIs that kustos "
        "answers itself are offered whatever upstream has.\n"
        "- **Asks about**: every operation that may be asked about, depending on the request.\n"
        "- **Refused** means Kafka's code for the type of the resource: `TOPIC_AUTHORIZATION_FAILED`, "
        "`GROUP_AUTHORIZATION_FAILED`, `CLUSTER_AUTHORIZATION_FAILED`, "
        "`TRANSACTIONAL_ID_AUTHORIZATION_FAILED`; or `UNKNOWN_TOPIC_ID`, where the code would tell that an "
        "id exists.",
        "## Listeners for clients",
        table(head, rows_of(ROWS, lambda row: "kustos" if row.api_key in LOCAL_APIS else "upstream")),
        "## Admin listeners",
        "Those of `controller.listener.names`. A request in an Envelope is refused by the same rows, for "
        "whom the Envelope names; the Envelope itself takes only what Kafka lets be forwarded.",
        table(head, rows_of(ADMIN_ROWS, lambda _: "kustos")),
    )


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
        "Each connection to a SASL listener is in one of these states. The server decides by this table and "
        "nothing else: what has no row closes the connection.",
        table(("State", "What comes", "What is done", "Next state"), rows),
        "## The same as a diagram",
        f"```mermaid\n{sasl_server_diagram()}```",
    )


DONE: Final = {
    "_take": "keep the batches, apply what is committed",
    "_cut_back": "cut the log to where both agree; if that was applied, end",
    "_begin_copy": "ask for the snapshot",
    "_take_chunk": "keep the chunk",
    "_install": "put the snapshot in the place of everything",
    "_turn_to_leader": "ask that one",
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
        "<!-- made from the table in `kustos.metadata.quorum.phases`; do not edit -->",
        "In [cluster mode](../how-to/cluster-mode.md) a node asks one question at a time and is in one of "
        "these states. An answer that has no row is no answer to what was asked: the connection is closed.",
        table(("State", "What comes", "What is done", "Next state"), rows),
        "## The same as a diagram",
        "Without the arrows that lead back to where they begin.",
        "```mermaid\nstateDiagram-v2\n"
        f"    [*] --> {Phase.SEEKING.name}\n{arrows}\n    {Phase.ENDED.name} --> [*]\n```",
    )


class NoAudit:
    """Stands for the audit log of a node without sinks but one, so that its series have a name."""

    is_full = False

    class Lane:
        """A lane in which nothing is."""

        depth = written = dropped = failures = 0
        is_failing = False

        class Sink:
            """A sink."""

            name = "json"

        sink: Final = Sink()

    lanes: Final = (Lane(),)


def metrics() -> str:
    """Return the page of metrics."""
    gateway = GatewayMetrics()
    gateway.watch(acl_count=lambda: 0, metadata_offset=lambda: 0, audit=NoAudit())  # type: ignore[arg-type]
    gateway.watch_authorizer(lambda: 0, AuthorizerMetrics())
    gateway.watch_purgatory(DelayedFuturePurgatory(ALTER_ACLS, 0))
    gateway.registry.register(WatchedQuorum(lambda: QuorumFigures(None, True, 0, -1)))
    gateway.registry.register(WatchedCrew(lambda: (0, 0, 0)))
    gateway.answered(ApiKey.METADATA, 0.0)
    families: list[Metric] = list(gateway.registry.collect())
    labels_of: dict[str, tuple[str, ...]] = {
        metric._name: metric._labelnames
        for metric in vars(gateway).values()
        if isinstance(metric, MetricWrapperBase)
    }
    rows = []
    for family in families:
        labels = labels_of.get(family.name) or tuple(family.samples[0].labels if family.samples else ())
        name = family.name + ("_total" if family.type == "counter" else "")
        shown = ", ".join(f"`{label}`" for label in labels)
        rows.append((f"`{name}`", family.type, shown, family.documentation))
    return page(
        WIDE,
        "# Metrics",
        "<!-- made from what `kustos.gateway.metrics` collects; do not edit -->",
        "Served at `/metrics` of `kustos.http.listener`, in Prometheus' text format. Names are those of "
        "Kafka's JMX metrics, written as exporters commonly do, where Kafka has the figure.",
        table(("Metric", "Type", "Labels", "Meaning"), rows),
        "No label holds a principal, a client id or a topic: clients choose those, and could make any number "
        "of them. Who did what is for the [audit trail](../how-to/audit.md).",
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
        "`kustos lint` and `kustos.analysis.lint` tell of each ACL by a code that never changes its meaning. "
        "How to use it: [lint ACLs](../how-to/lint-acls.md).",
        table(("Code", "Name", "Severity", "What it is"), overview),
        "## The codes one by one",
        *sections,
    )


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "audit-fields.md": audit_fields,
    "authorization.md": authorization,
    "sasl-states.md": sasl,
    "quorum-states.md": quorum,
    "metrics.md": metrics,
    "lint.md": lint,
}


def main() -> None:
    """Write every generated page."""
    for name, made in PAGES.items():
        (REFERENCE / name).write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    main()
