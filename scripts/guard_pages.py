"""The page of the authorization table, and the list of what is refused, as `generate_docs.py` writes them."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kustos.acl import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from kustos.protocol import (
    ADMIN_ROWS,
    LOCAL_APIS,
    ROWS,
    Check,
    ClusterOperations,
    Conceal,
    Gate,
    Hide,
    Operations,
    Row,
    Step,
    Strip,
    common_versions,
    items_max,
)
from kustos.wire import api_name
from kustos.wire.schemas import APIS
from scripts.pages import README, WIDE, page, table
from testkit import versions
from testkit.equality.compared import ADMINS, CLIENTS, versions_of

GUARD: Final = ("kustos.protocol.rows.", "kustos.protocol.admin_table", "kustos.protocol.handlers.")
ASKS: Final = "refused_by_topic"
"""The function outside of these modules that asks by itself, for handlers that share it."""


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
        case _ if inspect.isfunction(value) and is_of_guard(value) and value not in seen:
            seen.add(value)
            for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(value)))):
                yield from words_of_node(node, value.__globals__, seen)


def is_of_guard(function: Callable[..., object]) -> bool:
    """Return whether a function may ask about anything by itself."""
    return function.__module__.startswith(GUARD) or function.__name__ == ASKS


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
    """Return the operations that a row asks about, for the page."""
    return "<br>".join(f"`{words}`" for words in operations_of(row)) or "nothing"


def operations_of(row: Row) -> list[str]:
    """Return the operations that a row asks about, each with its type of resource."""
    found: dict[str, None] = {}
    for step in row.steps:
        found |= dict.fromkeys(words_of(step, set()))
        if isinstance(step, Gate | Strip | Hide) and step.unless_cluster is not None:
            found[f"{step.unless_cluster.name} CLUSTER"] = None
    found |= dict.fromkeys(words_of(row.custom_handler, set()))
    return [*found]


def operations_module() -> str:
    """Return the module that `kustos acls --help` takes its table from."""
    requests: dict[tuple[str, str], list[str]] = {}
    for row in sorted(ROWS, key=lambda row: row.api_key):
        for words in operations_of(row):
            operation, _, resource_type = words.partition(" ")
            pair = resource_type.removeprefix("some "), operation
            requests.setdefault(pair, []).append(api_name(row.api_key))
    lines = [
        '"""The requests that need each operation: made from `kustos.protocol.rows`, do not edit."""',
        "",
        "from typing import Final",
        "",
        "REQUESTS: Final[dict[tuple[str, str], tuple[str, ...]]] = {",
    ]
    for supported, operations in SUPPORTED_OPERATIONS.items():
        for each in operations:
            names = requests[supported.name, each.name]
            key = f'    ("{supported.name}", "{each.name}"): ('
            if len(names) == 1:
                lines.append(f'{key}"{names[0]}",),')
            else:
                lines += [key, *(f'        "{name}",' for name in names), "    ),"]
    lines += ["}", '"""(resource type, operation) → the requests that may be checked for it."""', ""]
    return "\n".join(lines)


def consequence(step: Step) -> str:
    """Return what happens to the items that a step does not allow."""
    match step:
        case Gate():
            return "the request is refused"
        case Strip():
            return "these items are refused, the others continue"
        case Hide():
            return "these items are left out"
        case Conceal():
            return "upstream's addresses are left out"
        case Operations() | ClusterOperations():
            return "the answer has the client's authorized operations"
        case _:
            return ""


CUSTOM_HANDLERS: Final = {
    "produce": "these topics are refused, the others continue; all topics are refused if the transaction of "
    "their records is; without acknowledgment (`acks=0`) the connection closes after the others are sent",
    "fetch": "these partitions are refused, the others continue; every fetch of a session is checked again",
    "metadata": "named topics are refused; topics are left out if all were requested; "
    "a missing topic is created only for clients that may create it",
    "offset_fetch": "groups and named topics are refused; topics are left out if all were requested",
    "refuse_sasl": "refused: after a login it is not a valid request",
    "create_topics": "these topics are refused; the configuration of a new topic is hidden from clients that "
    "may not describe it",
    "delete_topics": "these topics are refused; a client that may not describe a topic does not learn "
    "whether it exists",
    "init_producer_id": "the request is refused; without a transactional id it needs IDEMPOTENT_WRITE on the "
    "cluster or WRITE on any topic",
    "list_transactions": "the transactions are left out",
    "add_partitions": "these topics are refused, and so are all others; from version 4 on, "
    "which only brokers use, the request is refused",
    "alter_scram": "every user of the request is refused",
    "create_token": "the request is refused; a token for oneself needs no ACL, but an authenticated "
    "connection (not `PLAINTEXT`, not a login by token)",
    "change_token": "only the owner and renewers of a token, over an authenticated connection; ACLs do not "
    "matter",
    "describe_tokens": "tokens of other users are left out unless one of the two is allowed; own tokens are "
    "shown over an authenticated connection",
    "consumer_group_heartbeat": "the request is refused; a subscription by regular expression contains only "
    "topics that may be described, and is checked again at each heartbeat after ACLs or topics changed",
    "consumer_group_describe": "these groups are refused, and so is a group if a member has a hidden topic",
    "streams_group_heartbeat": "the request is refused, also if upstream would create a missing topic "
    "of the group that the client may not create",
    "streams_group_describe": "these groups are refused, and so is a group whose topology has a hidden topic",
    "share_group_describe": "these groups are refused, and so is a group if a member has a hidden topic",
    "share_group_heartbeat": "the request is refused",
    "share_fetch": "without READ on the group the request is refused; partitions and acknowledgments are "
    "refused by topic, the others continue; every fetch of a session is checked again",
    "share_acknowledge": "without READ on the group the request is refused; these partitions are refused, "
    "the others continue",
    "alter_configs": "these resources are refused, the others continue",
    "replace_configs_upstream": "these resources are refused, the others continue; a broker is also refused "
    "if the request would unset a setting that clients may not change",
    "describe_configs_upstream": "these resources are refused, the others continue; kustos answers for the "
    "authorizer's settings of a broker",
    "describe_configs": "these resources are refused, the others continue",
    "describe_controllers": "the request is refused; the authorized operations in the answer are those of "
    "the client",
    "envelope": "the Envelope is refused, and its content is not read",
    "describe_topic_partitions": "named topics are refused; topics are left out if all were requested",
}
"""How each handler refuses, in words; every handler must be listed."""


def denied(row: Row) -> str:
    """Return what happens to a request, or its items, that is not allowed."""
    if row.custom_handler is not None:
        return CUSTOM_HANDLERS[row.custom_handler.__name__]
    consequences = dict.fromkeys(consequence(step) for step in row.steps)
    return "; ".join(each for each in consequences if each) or "every client gets an answer"


def answered_by(row: Row) -> str:
    """Return who answers the API to a client."""
    return "kustos" if row.api_key in LOCAL_APIS else "upstream"


def rows_of(
    rows: Sequence[Row], answerer: Callable[[Row], str], compared: Mapping[int, str]
) -> list[tuple[str, ...]]:
    """Return the cells of each row of an authorization table."""
    shown: list[tuple[str, ...]] = []
    for row in sorted(rows, key=lambda each: each.api_key):
        lowest, highest = common_versions(row, None) or (0, -1)
        shown.append(
            (
                f"{api_name(row.api_key)} ({row.api_key})",
                f"{lowest}-{highest}",
                compared.get(row.api_key, "none"),
                f"{items_max(row.api_key):,}",
                answerer(row),
                needs(row),
                denied(row),
            )
        )
    return shown


CONTROLLER_APIS: Final = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
"""APIs that only controllers answer (`listeners` in the schemas of Kafka)."""

NOT_OFFERED: Final[Mapping[str, tuple[int, ...]]] = {
    "State of share groups, which brokers store": (83, 84, 85, 86, 87),
}
"""The APIs of a broker without a row, by subject."""

REFUSED_MARK: Final = "<!-- what is refused: made by scripts/generate_docs.py; do not edit -->"


def refused() -> str:
    """Return the APIs that are not offered, by name; raise ValueError if `NOT_OFFERED` is incomplete."""
    every = set(APIS) - CONTROLLER_APIS
    offered = every & {int(row.api_key) for row in ROWS}
    if sorted(key for keys in NOT_OFFERED.values() for key in keys) != sorted(every - offered):
        raise ValueError(f"`NOT_OFFERED` must have just these: {sorted(every - offered)}")
    counts = f"{len(offered)} of the {len(every)} APIs"
    opening = f"kustos offers clients {counts} of a broker of Kafka {versions.KAFKA}."
    lines = [textwrap.fill(f"{opening} A request for any other API closes its connection:", 120), ""]
    for subject, keys in NOT_OFFERED.items():
        names = ", ".join(f"`{api_name(key)}`" for key in keys)
        lines.append(textwrap.fill(f"- **{subject}**: {names}", 120, subsequent_indent="  "))
    return "\n".join(lines)


def readme() -> str:
    """Return README.md with its list of APIs that are not offered."""
    before, _, after = README.read_text(encoding="utf-8").split(REFUSED_MARK)
    return f"{before}{REFUSED_MARK}\n\n{refused()}\n\n{REFUSED_MARK}{after}"


def _handlers(rows: Sequence[Row]) -> str:
    return f"{sum(row.custom_handler is not None for row in rows)} of {len(rows)}"


def authorization() -> str:
    """Return the page of the authorization tables."""
    head = (
        "API (key)",
        "Versions",
        "Compared in",
        "Items",
        "Answered by",
        "Checks",
        "If not allowed",
    )
    return page(
        WIDE,
        "# Authorization of each API",
        "<!-- made from `kustos.protocol.rows` and `kustos.protocol.admin_table`; do not edit -->",
        "This page lists how the guard authorizes each API of Kafka's protocol. An API that is missing here "
        "is not offered to clients, and a request for it closes the connection.",
        "- **Versions**: the versions that kustos understands. It offers those that upstream offers too; the "
        "APIs that kustos answers itself do not depend on upstream.\n"
        "- **Compared in**: the versions in which [tests](../explanation/testing.md) send kustos and Kafka "
        f"{versions.KAFKA} the same requests, for users with all kinds of rights, and find the same answers "
        "and lines of the audit log, except for the "
        "[differences](../explanation/differences-from-kafka.md).\n"
        "- **Items**: the number of list elements at all depths, and tagged fields, that one request may "
        "have; a larger request closes the connection.\n"
        "- **Checks**: every operation that may be checked, depending on the request.\n"
        "- **Refused** means that the answer has Kafka's code for the type of the resource: "
        "`TOPIC_AUTHORIZATION_FAILED`, `GROUP_AUTHORIZATION_FAILED`, `CLUSTER_AUTHORIZATION_FAILED`, "
        "`TRANSACTIONAL_ID_AUTHORIZATION_FAILED`; or `UNKNOWN_TOPIC_ID` if that code would reveal that an id "
        "exists.",
        "Most rows consist of steps that one interpreter executes. "
        f"{_handlers(ROWS)} rows for clients and {_handlers(ADMIN_ROWS)} rows for admin listeners have a "
        "handler, because steps cannot express them.",
        "## Listeners for clients",
        table(head, rows_of(ROWS, answered_by, versions_of(CLIENTS))),
        "## Admin listeners",
        "`controller.listener.names` lists the admin listeners. The same rows authorize a request in an "
        "Envelope, for the principal that the Envelope names; an Envelope may contain only requests that "
        "Kafka forwards.",
        table(head, rows_of(ADMIN_ROWS, lambda _: "kustos", versions_of(ADMINS))),
        "## Not offered",
        refused(),
    )
