"""The page of the authorization table, and the list of what is refused, as `generate_docs.py` writes them."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kio.schema.index import api_key_map

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
from scripts.pages import README, WIDE, page, table
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
    """Return what happens to what a step does not allow."""
    match step:
        case Gate():
            return "the request is refused"
        case Strip():
            return "the items are refused, the others go on"
        case Hide():
            return "the items are left out"
        case Conceal():
            return "upstream's addresses are left out"
        case Operations() | ClusterOperations():
            return "the bits of authorized operations are those of the client"
        case _:
            return ""


CUSTOM_HANDLERS: Final = {
    "produce": "the topics are refused, the others go on; all are if the transaction of their records is; "
    "without acknowledgement (`acks=0`) the connection is closed once the others went on",
    "fetch": "the partitions are refused, the others go on; checked again at every fetch of a session",
    "metadata": "topics are refused where named, left out where all were requested; "
    "a missing one is created only for clients that may",
    "offset_fetch": "groups and named topics are refused; topics are left out where all were requested",
    "refuse_sasl": "refused: after a login it is not a valid request",
    "create_topics": "the topics are refused; the configuration of a new one is hidden from clients that may "
    "not see it",
    "delete_topics": "the topics are refused; a client that may not describe one does not learn whether it "
    "exists",
    "init_producer_id": "the request is refused; checked is its transactional id, without one any topic",
    "list_transactions": "the transactions are left out",
    "add_partitions": "the topics are refused, and with them all others; from version 4 on, "
    "which only brokers use, the request is",
    "alter_scram": "every user of the request is refused",
    "create_token": "the request is refused; for oneself no ACL is needed, but an authenticated connection "
    "(not `PLAINTEXT`, not a login by token)",
    "change_token": "owner and renewers may, whatever the ACLs say, over an authenticated connection",
    "describe_tokens": "another's tokens are left out unless one of the two is allowed; one's own are shown, "
    "over an authenticated connection",
    "consumer_group_heartbeat": "the request is refused; of what a regular expression matches, only topics "
    "that may be described are subscribed to, and again at each heartbeat after ACLs or topics changed",
    "consumer_group_describe": "the groups are refused, also where a member has a hidden topic",
    "streams_group_heartbeat": "the request is refused, also where upstream would create a missing topic "
    "of the group that its sender may not create",
    "streams_group_describe": "the groups are refused, also where the topology has a hidden topic",
    "share_group_describe": "the groups are refused, also where a member has a hidden topic",
    "share_group_heartbeat": "the request is refused",
    "share_fetch": "without the group the request is refused; partitions and acknowledgements are refused by "
    "topic, the others go on; checked again at every fetch of a session",
    "share_acknowledge": "without the group the request is refused; the partitions are refused, "
    "the others go on",
    "alter_configs": "the resources are refused, the others go on",
    "replace_configs_upstream": "the resources are refused, the others go on; so is a broker "
    "of which a setting would be unset that clients may not change",
    "describe_configs_upstream": "the resources are refused, the others go on; the authorizer's "
    "settings of a broker are answered here",
    "describe_configs": "the resources are refused, the others go on",
    "describe_controllers": "the request is refused; the bits of authorized operations are those of "
    "the client",
    "envelope": "the Envelope is refused, and nothing in it is read",
    "describe_topic_partitions": "topics are refused where named, left out where all were requested",
}
"""What each handler does with what it refuses, in words; each must be here."""


def denied(row: Row) -> str:
    """Return what becomes of that which is not allowed."""
    if row.custom_handler is not None:
        return CUSTOM_HANDLERS[row.custom_handler.__name__]
    told = dict.fromkeys(consequence(step) for step in row.steps)
    return "; ".join(each for each in told if each) or "answered to everybody"


def answered_by(row: Row) -> str:
    """Return who answers the API to a client."""
    return "kustos" if row.api_key in LOCAL_APIS else "upstream"


def rows_of(
    rows: Sequence[Row], answerer: Callable[[Row], str], compared: Mapping[int, str]
) -> list[tuple[str, ...]]:
    """Return what the page says of each row of an authorization table."""
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
"""What only controllers answer (`listeners` in the schemas of Kafka 4.3.1): no client speaks to them here."""

NOT_OFFERED: Final[Mapping[str, tuple[int, ...]]] = {
    "States of share groups, which brokers keep": (83, 84, 85, 86, 87),
}
"""The APIs of a broker without a row, by what they are about."""

REFUSED_MARK: Final = "<!-- what is refused: made by scripts/generate_docs.py; do not edit -->"


def refused() -> str:
    """Return what a client is refused, by name; raise ValueError where `NOT_OFFERED` is not all of it."""
    every = set(api_key_map) - CONTROLLER_APIS
    offered = every & {int(row.api_key) for row in ROWS}
    if sorted(key for keys in NOT_OFFERED.values() for key in keys) != sorted(every - offered):
        raise ValueError(f"`NOT_OFFERED` must have just these: {sorted(every - offered)}")
    told = f"Clients are offered {len(offered)} of the {len(every)} APIs of a broker of Kafka 4.3.1."
    lines = [textwrap.fill(f"{told} A request for any other closes its connection:", 120), ""]
    for subject, keys in NOT_OFFERED.items():
        names = ", ".join(f"`{api_name(key)}`" for key in keys)
        lines.append(textwrap.fill(f"- **{subject}**: {names}", 120, subsequent_indent="  "))
    return "\n".join(lines)


def readme() -> str:
    """Return README.md with its list of what is refused."""
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
        "What is not allowed",
    )
    return page(
        WIDE,
        "# Authorization of each API",
        "<!-- made from `kustos.protocol.rows` and `kustos.protocol.admin_table`; do not edit -->",
        "What the guard does with each API of Kafka's protocol. An API that is not here is not offered to "
        "clients, and a request for it closes the connection.",
        "- **Versions**: what kustos understands. Offered is what upstream has of it; the APIs that kustos "
        "answers itself are offered whatever upstream has.\n"
        "- **Compared in**: the versions in which [tests](../explanation/testing.md) send kustos and Kafka "
        "4.3.1 the same requests, for users with all kinds of rights, and find the same answers and lines of "
        "the audit log, except for the [differences](../explanation/differences-from-kafka.md).\n"
        "- **Items**: list elements at all depths, and tagged fields, that one request may have; more "
        "close the connection.\n"
        "- **Checks**: every operation that may be checked, depending on the request.\n"
        "- **Refused** means Kafka's code for the type of the resource: `TOPIC_AUTHORIZATION_FAILED`, "
        "`GROUP_AUTHORIZATION_FAILED`, `CLUSTER_AUTHORIZATION_FAILED`, "
        "`TRANSACTIONAL_ID_AUTHORIZATION_FAILED`; or `UNKNOWN_TOPIC_ID`, where the code would reveal that an "
        "id exists.",
        "Most rows are steps that one interpreter executes. "
        f"{_handlers(ROWS)} of the rows for clients and {_handlers(ADMIN_ROWS)} of those for admin "
        "listeners have a handler, for what steps cannot express.",
        "## Listeners for clients",
        table(head, rows_of(ROWS, answered_by, versions_of(CLIENTS))),
        "## Admin listeners",
        "Those of `controller.listener.names`. A request in an Envelope is refused by the same rows, for "
        "the principal that the Envelope names; an Envelope takes only requests that Kafka forwards.",
        table(head, rows_of(ADMIN_ROWS, lambda _: "kustos", versions_of(ADMINS))),
        "## Not offered",
        refused(),
    )
