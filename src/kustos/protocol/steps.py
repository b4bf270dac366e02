"""The vocabulary of the authorization table.

Each step is a value that the interpreter executes. If steps do not suffice, the row names a custom handler, a
function in `handlers/`. `docs/reference/authorization.md` counts those rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.effects import Handler
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.shapes import Items, Refusal
from kustos.wire import Message


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """The refusal of an item before its authorization check.

    `message` None: Kafka's text for the code, "": no text.
    """

    code: int
    message: str | None = None


CheckOf: TypeAlias = Check | Callable[[Exchange, Any], "tuple[Check, str] | RefusedItem | None"]
"""A check, or a function that returns the check and the resource name for an item, None for no check.

For a `Strip` the function may also return the refusal of an item. It may raise `RefuseRequestError`.
"""


class RefuseRequestError(Exception):
    """Raised to answer the whole request with this error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with error code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Gate:
    """The whole request passes or is refused with the code of the check's resource type.

    `names`: the resource names, which must all pass. `unless_cluster`: the operation on the cluster that also
    allows the request.
    """

    check: CheckOf
    names: Callable[[Message], list[str]]
    when: Callable[[Message], bool] = lambda _: True
    unless_cluster: AclOperation | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """Denied items do not go upstream; kustos answers them with their code.

    `name`: the field of an item that holds the resource name ("" if the item is the name). If an item has a
    `topic_id` instead, the id is resolved; the answer for an unknown id is UNKNOWN_TOPIC_ID.
    `unless_cluster`: the operation on the cluster that allows every item. `counts_inner`: the audit reference
    count is the number of inner items instead of items. `once`: repeated items are treated as one item.
    `repeated`: the refusal of each repeated item. `yields`: an error of the whole answer replaces all
    refusals, so upstream is queried even if no item is left.
    """

    items: Items
    check: CheckOf
    name: str
    unless_cluster: AclOperation | None = None
    counts_inner: bool = False
    once: bool = False
    repeated: RefusedItem | None = None
    yields: bool = False


@dataclass(frozen=True, slots=True)
class Hide:
    """Denied items of the response are omitted silently.

    `inside`: the list whose items each have a `response_list`; None if the response itself has the list.
    """

    response_list: str
    name: str
    check: Check
    unless_cluster: AclOperation | None = None
    when: Callable[[Message], bool] = lambda _: True
    inside: str | None = None


@dataclass(frozen=True, slots=True)
class Operations:
    """Items of the response get the bit field of the operations that the client may perform on them.

    `flag`: the request field that requests the bits; if it is false or absent, the bit field keeps its
    default. An item with an error has no bits, unless `with_errors`.
    """

    response_list: str
    name: str
    resource_type: ResourceType
    field: str
    flag: str | None
    with_errors: bool = False


@dataclass(frozen=True, slots=True)
class ClusterOperations:
    """The response gets the bit field of the cluster operations, 0 without DESCRIBE on the cluster."""

    field: str
    flag: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Addresses of brokers in this list of the response ("" for the response itself) become the gateway's."""

    response_list: str
    node_id: str


@dataclass(frozen=True, slots=True)
class Conceal:
    """This list of each item of the response is emptied: no client can use its upstream addresses."""

    response_list: str
    field: str


@dataclass(frozen=True, slots=True)
class ServeLocally:
    """kustos answers the request itself, from its own metadata."""


Step: TypeAlias = Gate | Strip | Hide | Operations | ClusterOperations | Rewrite | Conceal | ServeLocally


@dataclass(frozen=True, slots=True)
class Row:
    """The rules of one API. `versions` limits the offered versions to a part of the codec's versions."""

    api_key: int
    refusal: Refusal
    steps: tuple[Step, ...] = ()
    custom_handler: Callable[[Exchange, "Row"], Handler] | None = None
    versions: tuple[int, int] | None = None
    unparsable: Callable[[Message], bool] = lambda _: False
    """Whether Kafka's request parser throws on a request: the connection is closed without an answer."""
    pipelined: bool = False
    """Whether a request is forwarded while another is in flight; see
    `gateway.session.client_session`."""
    large_list: str | None = None
    """The list of upstream's answer that the handler reads in turns, since its length has no limit."""
    repeatable: bool = False
    """Whether clients repeat the same bytes (in a Produce, all bytes except the records), and the outcome
    depends only on these bytes, the ACLs and upstream's answer. The handler must keep no state, and must not
    change a message after it was yielded or returned."""
    revokes: bool = False
    """Whether the request may revoke rights: its answer waits for the requests that those rights allowed."""

    def __post_init__(self) -> None:
        """Raise ValueError for steps that the interpreter cannot run; custom handlers run their own steps."""
        steps = () if self.custom_handler is not None else self.steps
        if sum(isinstance(step, Strip) for step in steps) > 1:
            raise ValueError("a row strips one list: its denied items are merged into one answer")
        serves = any(isinstance(step, ServeLocally) for step in steps)
        if serves and not all(isinstance(step, Gate) for step in steps[:-1]):
            raise ValueError(
                "a row that serves locally has only gates before that: its answer stays as it is"
            )


def gates_of(row: Row) -> tuple[Gate, ...]:
    """Return the gates of a row, in order, for a custom handler that checks them itself."""
    return tuple(step for step in row.steps if isinstance(step, Gate))
