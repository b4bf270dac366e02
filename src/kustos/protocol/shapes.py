"""Shapes of refusals: the place of the error code in a response, and the fields next to it.

A shape is data; `answerer` builds the response items for request items, `refuse` builds the whole response.
Fields that a version lacks are omitted, unnamed fields take the schema's default, and null becomes the empty
text if a version does not allow null.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kustos.protocol.codes import MESSAGES
from kustos.wire import ZERO_UUID, Message, MessageCodec

TEXT_CHARACTERS_MAX: Final = 2_048
"""Most characters of a text for a client: at four bytes each a quarter of the longest string, and enough to
quote an expression twice. An answer may repeat the text for each of thousands of partitions."""


def shortened(text: str) -> str:
    """Return a text for a client, without its middle if the text is too long."""
    if len(text) <= TEXT_CHARACTERS_MAX:
        return text
    half = TEXT_CHARACTERS_MAX // 2
    return f"{text[:half]}...{text[-half:]}"


def fitting(message_type: type[Message], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the fields that this version has, with null only where allowed."""
    return {
        name: "" if value is None and name not in message_type.NULLABLE else value
        for name, value in values.items()
        if name in message_type.FIELDS
    }


def fitted(message_type: type[Message], values: Mapping[str, Any]) -> Message:
    """Return a message with the values of the fields that this version has, with null only where allowed."""
    return message_type(**fitting(message_type, values))


@dataclass(frozen=True, slots=True)
class Items:
    """A list of the request answered by a list of the response, item by item.

    `keys`: pairs of (request field, response field) that identify an item; the request field "" is the item
    itself if the list holds plain values. Without `code_field`, `inner` holds the code. `messages`: the texts
    of the codes. `inside`: the list of the request whose items each have a `request_list`. `keeps_null`:
    whether the answer keeps a null key as null.
    """

    request_list: str
    response_list: str
    keys: tuple[tuple[str, str], ...]
    code_field: str | None = "error_code"
    message_field: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    inner: "Items | None" = None
    messages: Mapping[int, str] = field(default_factory=lambda: MESSAGES)
    inside: str | None = None
    keeps_null: bool = False

    def of(self, request: Message) -> list[Any]:
        """Return the items of a request."""
        holders = [request] if self.inside is None else request.get(self.inside) or ()
        return [item for holder in holders for item in holder.get(self.request_list) or ()]

    def key_of_request(self, item: Any) -> tuple[Any, ...]:
        """Return the key of an item of the request; absent fields count as zero values."""
        return tuple(_key(item if name == "" else item.get(name)) for name, _ in self.keys)

    def key_of_response(self, item: Message) -> tuple[Any, ...]:
        """Return the key of an item of the response, comparable with `key_of_request`."""
        return tuple(_key(item.get(name)) for _, name in self.keys)

    def answerer(
        self, message_type: type[Message], code: int, message: str | None = None
    ) -> Callable[..., Message]:
        """Return a function that builds the response item with this code for a request item.

        `message` None: Kafka's text for the code, "": no text; a text that quotes a client's value is
        shortened.

        The function takes the item, and the answers to its inner items if they exist already. All items share
        the parts that this method prepares once.
        """
        values = dict(self.extra)
        if self.code_field is not None:
            values[self.code_field] = code
        if self.message_field is not None:
            text = self.messages.get(code) if message is None else shortened(message)
            values[self.message_field] = text or None
        shared = fitting(message_type, values)
        keys = tuple((theirs, ours) for theirs, ours in self.keys if ours in message_type.FIELDS)
        inner = self.inner
        below = None
        if inner is not None:
            below = inner.answerer(message_type.ELEMENTS[inner.response_list], code, message)

        def answered(item: Any, inner_answers: list[Message] | None = None) -> Message:
            own = dict(shared)
            for theirs, ours in keys:
                value = item if theirs == "" else item.get(theirs)
                if value is not None or self.keeps_null:
                    own[ours] = value
            if inner is not None and below is not None:
                if inner_answers is None:
                    inner_answers = list(map(below, item.get(inner.request_list) or ()))
                own[inner.response_list] = inner_answers
            return message_type(**own)

        return answered


def _key(value: Any) -> Any:
    return None if value in {"", ZERO_UUID} else value


@dataclass(frozen=True, slots=True)
class Refusal:
    """A whole refusing response: a code at the top, on every item, or both.

    `top_field` is used if the version has it. `items` is used if not, and also in versions below
    `both_below`. `other_items` replaces `items` if the request lacks their list.
    """

    top_field: str | None = "error_code"
    message_field: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    items: Items | None = None
    other_items: Items | None = None
    both_below: int = 0

    def refuse(
        self, codec: MessageCodec, request: Message, code: int, answers: list[Message] | None = None
    ) -> Message:
        """Return the response of this version that refuses the whole request.

        `answers`: the answers to its items, if they exist already.
        """
        root = codec.root
        values = self._at_the_top(codec, code)
        items = self.named_items(codec, request)
        if items is not None:
            if answers is None:
                answered = items.answerer(root.ELEMENTS[items.response_list], code)
                answers = list(map(answered, items.of(request)))
            values[items.response_list] = answers
        return fitted(root, values)

    def named_items(self, codec: MessageCodec, request: Message) -> Items | None:
        """Return the items of the request that the response names, if any."""
        if not self._names_items(codec):
            return None
        items = self.items
        if items is not None and (items.inside or items.request_list) not in request.FIELDS:
            items = self.other_items
        return items

    def refuse_unread(self, codec: MessageCodec, code: int, text: str) -> Message | None:
        """Return the response that refuses an unread request, None if it must name the items.

        `text` is included if the response has a field for it.
        """
        names_items = self._names_items(codec) and self.items is not None
        if names_items or self.top_field not in codec.root.FIELDS:
            return None
        said = {} if self.message_field is None else {self.message_field: text}
        return fitted(codec.root, self._at_the_top(codec, code) | said)

    def _names_items(self, codec: MessageCodec) -> bool:
        return self.top_field not in codec.root.FIELDS or codec.version < self.both_below

    def _at_the_top(self, codec: MessageCodec, code: int) -> dict[str, Any]:
        values: dict[str, Any] = dict(self.extra)
        if self.top_field is not None and self.top_field in codec.root.FIELDS:
            values[self.top_field] = code
            if self.message_field is not None:
                values[self.message_field] = MESSAGES.get(code)
        return values
