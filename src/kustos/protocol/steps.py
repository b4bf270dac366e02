"""The words in which the authorization table is written.

Each step is a value; the one interpreter gives it meaning. What a step cannot say is an escape hatch:
a handler with a name in `escapes/`, and there are few.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kustos.acl import AclOperation, ResourceType
from kustos.protocol.effects import Handler
from kustos.protocol.exchange import Check, Exchange
from kustos.protocol.shapes import Items, Refusal
from kustos.wire import Message

CheckOf: TypeAlias = Check | Callable[[Exchange, Any], tuple[Check, str] | None]
"""A check, or what chooses one and the resource name for an item; None needs no check.

It may raise `RefuseRequestError`.
"""


class RefuseRequestError(Exception):
    """The whole request is answered with this error code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with error code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Gate:
    """The whole request passes or is refused with the code of the check's resource type.

    `names`: the resource names, all of which must pass.
    """

    check: CheckOf
    names: Callable[[Message], list[str]]
    when: Callable[[Message], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Strip:
    """Items that are not allowed do not go upstream; they are answered here with their code.

    `name`: the field of an item that holds the resource name ("" when the item is the name). An item
    with a `topic_id` instead is named by resolving the id, and UNKNOWN_TOPIC_ID where it cannot be.
    `unless_cluster`: an operation on the cluster that allows every item. `counts_inner`: the audit
    reference count is the number of inner items, not of items. `one_by_one`: every item is a question
    of its own, also where two name the same (so Kafka's handler does, and its audit log shows).
    """

    items: Items
    check: CheckOf
    name: str
    unless_cluster: AclOperation | None = None
    counts_inner: bool = False
    one_by_one: bool = False


@dataclass(frozen=True, slots=True)
class Hide:
    """Items of the response that are not allowed are left out, without a word."""

    response_list: str
    name: str
    check: Check
    unless_cluster: AclOperation | None = None
    when: Callable[[Message], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Operations:
    """Items of the response get the bit field of what the client may do with them.

    `flag`: the request field that asks for it; where it is false or absent the field keeps its
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
    """Addresses of brokers in this list of the response ("" for the response itself) become ours."""

    response_list: str
    node_id: str


@dataclass(frozen=True, slots=True)
class ServeLocally:
    """kustos answers it itself, from its own metadata."""


Step: TypeAlias = Gate | Strip | Hide | Operations | ClusterOperations | Rewrite | ServeLocally


@dataclass(frozen=True, slots=True)
class Row:
    """The rules of one API. `versions` narrows what is offered to less than the codec has."""

    api_key: int
    refusal: Refusal
    steps: tuple[Step, ...] = ()
    escape: Callable[[Exchange, "Row"], Handler] | None = None
    versions: tuple[int, int] | None = None
    unparsable: Callable[[Message], bool] = lambda _: False
    """Whether Kafka's request parser throws on it: the connection is closed without an answer."""
    exclusive: bool = False
    """Whether it waits until no other request of this API is under way on the connection."""
