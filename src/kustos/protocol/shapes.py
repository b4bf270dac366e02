"""How a refusal looks: where in a response its code stands and what stands beside it.

A shape is data; `answer` builds the response item for a request item, `refuse` the whole response.
Fields that a version does not have are left out, fields that nobody names take the schema's default,
and a null goes in as the empty text where a version knows no null.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kustos.protocol.codes import MESSAGES
from kustos.wire import Message, MessageCodec
from kustos.wire.primitives import ZERO_UUID


def fitted(made: type[Message], values: Mapping[str, Any]) -> Message:
    """Return a message of those values that this version has, null only where it may be."""
    known = {name: value for name, value in values.items() if name in made.FIELDS}
    for name, value in known.items():
        if value is None and name not in made.NULLABLE:
            known[name] = ""
    return made(**known)


@dataclass(frozen=True, slots=True)
class Items:
    """A list of the request answered by a list of the response, item by item.

    `keys`: pairs of (request field, response field) that name an item; the request field "" is the
    item itself where the list holds plain values. Without `code_field` the code stands in `inner`.
    """

    request_list: str
    response_list: str
    keys: tuple[tuple[str, str], ...]
    code_field: str | None = "error_code"
    message_field: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    inner: "Items | None" = None

    def of(self, request: Message) -> list[Any]:
        """Return the items of a request."""
        return list(request.get(self.request_list) or ())

    def key_of_request(self, item: Any) -> tuple[Any, ...]:
        """Return what names this item of the request; absent fields count as their zero."""
        return tuple(_key(item if name == "" else item.get(name)) for name, _ in self.keys)

    def key_of_response(self, item: Message) -> tuple[Any, ...]:
        """Return what names this item of the response, comparable with `key_of_request`."""
        return tuple(_key(item.get(name)) for _, name in self.keys)

    def answer(self, made: type[Message], item: Any, code: int) -> Message:
        """Return the response item that carries this code for a request item."""
        values = dict(self.extra)
        for theirs, ours in self.keys:
            value = item if theirs == "" else item.get(theirs)
            if value is not None:
                values[ours] = value
        if self.code_field is not None:
            values[self.code_field] = code
        if self.message_field is not None:
            values[self.message_field] = MESSAGES.get(code)
        if self.inner is not None:
            element = made.ELEMENTS[self.inner.response_list]
            values[self.inner.response_list] = [
                self.inner.answer(element, below, code) for below in item.get(self.inner.request_list) or ()
            ]
        return fitted(made, values)


def _key(value: Any) -> Any:
    return None if value in {"", ZERO_UUID} else value


@dataclass(frozen=True, slots=True)
class Refusal:
    """A whole response that says no: a code at the top, on every item, or both.

    `top_field` is used where the version has it; `items` where it has not, and beside it in versions
    below `both_below`. `other_items` stand for `items` where the request has not their list.
    """

    top_field: str | None = "error_code"
    message_field: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    items: Items | None = None
    other_items: Items | None = None
    both_below: int = 0

    def refuse(self, codec: MessageCodec, request: Message, code: int) -> Message:
        """Return the response of this version that refuses the whole request."""
        root = codec.root
        values: dict[str, Any] = dict(self.extra)
        has_top = self.top_field is not None and self.top_field in root.FIELDS
        if has_top and self.top_field is not None:
            values[self.top_field] = code
            if self.message_field is not None:
                values[self.message_field] = MESSAGES.get(code)
        items = self.items
        if items is not None and items.request_list not in request.FIELDS:
            items = self.other_items
        if items is not None and (not has_top or codec.version < self.both_below):
            element = root.ELEMENTS[items.response_list]
            values[items.response_list] = [
                items.answer(element, item, code) for item in request.get(items.request_list) or ()
            ]
        return fitted(root, values)
