"""The words in which the cases are written, and how they become messages of any version.

A story is one or more requests of one client; it is told for each of its users in each version. Fields
are those of Kafka's schemas in snake case. Fields that a version lacks are left out, so one story can
name a topic both ways: `{"name": "orders", "topic_id": TopicId("orders")}`.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kustos.protocol import ADMIN_TABLE, TABLE
from kustos.wire import Message, codec_versions, request_codec, request_frame
from kustos.wire.api_keys import ApiKey, api_name


@dataclass(frozen=True, slots=True)
class TopicId:
    """The id of a topic on the side that is asked; of no topic where there is none of this name."""

    topic: str

    def on(self, topic_ids: Mapping[str, bytes]) -> bytes:
        """Return the id on a side; one that no topic has is the same on both."""
        invented = hashlib.sha256(self.topic.encode()).digest()[:16]
        return topic_ids.get(self.topic, invented)


@dataclass(frozen=True, slots=True)
class Said:
    """What an earlier answer of the story said: a path of fields and indexes, counted from `step`."""

    step: int
    path: tuple[str | int, ...]

    def among(self, answers: list[Message | None]) -> Any:
        """Return the value; the first request of a story is step 0."""
        value: Any = answers[self.step]
        for part in self.path:
            if value is None:
                return None
            if isinstance(part, int):
                value = value[part] if part < len(value) else None
            else:
                value = getattr(value, part)
        return value


@dataclass(frozen=True, slots=True)
class Made:
    """What a function makes of parts, each of which may be a placeholder."""

    make: Callable[..., Any]
    parts: tuple[Any, ...]

    def filled(self, fill: Callable[[Any], Any]) -> Any:
        """Return what the function makes of the values of the parts."""
        return self.make(*map(fill, self.parts))


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A request inside an Envelope, as bytes without their length."""

    api: ApiKey
    version: int
    fields: Mapping[str, Any]
    correlation_id: int = 4711

    def frame(self, client_id: str, fill: Callable[[Any], Any]) -> bytes:
        """Return header and body."""
        codec = request_codec(self.api, self.version)
        body = codec.encode(message_of(codec.root, self.fields, fill))
        return request_frame(codec, self.api, self.correlation_id, client_id, body)[4:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request. `settles`: it is asked until both sides agree, for what comes into force later;
    with `good` also until no answer has an error, with `count` until there are so many ACLs, with `until`
    until that holds of the reference's answer. `parted`: an answer of the reference with which
    the sides never agree, so that nobody waits for it.

    `user` and `version` stand in for the story's own. `body`: bytes in the place of the fields.
    `silent`: no answer is due; the connection stays open or is closed, which is the answer.
    """

    api: ApiKey
    fields: Mapping[str, Any]
    user: str | None = None
    version: int | None = None
    settles: bool = False
    good: bool = False
    count: int | None = None
    until: Callable[[Any], bool] | None = None
    parted: Callable[[Any], bool] | None = None
    body: bytes | None = None
    silent: bool = False
    hang_up_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A case: its title says what is asked and what of it is allowed."""

    title: str
    steps: tuple[Step, ...]
    users: tuple[str, ...]
    versions: tuple[int, int] | None = None
    """Of the first request's API; all where it is None. Other APIs go along as far as they can."""

    @property
    def api(self) -> ApiKey:
        """The API that the story is about."""
        return self.steps[0].api

    def runs(self) -> "Iterator[Run]":
        """Yield the story for each user in each version."""
        lowest, highest = self.versions or offered(self.api)
        for version in range(lowest, highest + 1):
            for user in self.users:
                yield Run(self, user, version)


@dataclass(frozen=True, slots=True)
class Run:
    """A story as one user tells it in one version."""

    story: Story
    user: str
    version: int

    @property
    def name(self) -> str:
        """What the test is called."""
        return f"{api_name(self.story.api)}-v{self.version}-{self.story.title}-as-{self.user}".replace(
            " ", "_"
        )

    @property
    def tag(self) -> str:
        """Letters that only this run's names have."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:10]

    def version_of(self, step: Step) -> int:
        """Return the version of a request of this run."""
        if step.version is not None:
            return step.version
        lowest, highest = offered(step.api)
        return max(lowest, min(highest, self.version))


def offered(api: ApiKey) -> tuple[int, int]:
    """Return the versions that kustos has of an API."""
    known = codec_versions(api)
    if known is None:
        raise ValueError(f"no codec for API {api}")
    row = TABLE.get(api) or ADMIN_TABLE[api]
    limit = row.versions or known
    return max(known[0], limit[0]), min(known[1], limit[1])


def step(api: ApiKey, *, settles: bool = False, user: str | None = None, **fields: Any) -> Step:
    """Return a request of these fields."""
    return Step(api=api, fields=fields, settles=settles, user=user)


def one(title: str, api: ApiKey, users: tuple[str, ...], /, **fields: Any) -> Story:
    """Return a story of one request, told in every version."""
    return Story(title=title, steps=(Step(api=api, fields=fields),), users=users)


def message_of(made: type[Message], fields: Mapping[str, Any], fill: Callable[[Any], Any]) -> Message:
    """Return a message of the fields that this version has; `fill` gives placeholders their values."""
    values: dict[str, Any] = {}
    for name, given in fields.items():
        if name not in made.FIELDS:
            continue
        value = fill(given)
        element = made.ELEMENTS.get(name)
        if element is not None and isinstance(value, list):
            value = [message_of(element, item, fill) for item in value]
        elif element is not None and isinstance(value, Mapping):
            value = message_of(element, value, fill)
        elif isinstance(value, list):
            value = [fill(item) for item in value]
        values[name] = value
    return made(**values)


def unknown_fields(story: Story) -> set[str]:
    """Return the fields that no version of the request has: slips of the pen in a table."""
    slips: set[str] = set()
    for each in story.steps:
        lowest, highest = offered(each.api)
        roots = [request_codec(each.api, version).root for version in range(lowest, highest + 1)]
        slips |= _slips(roots, each.fields)
    return slips


def _slips(roots: list[type[Message]], fields: Mapping[str, Any]) -> set[str]:
    slips = {name for name in fields if not any(name in root.FIELDS for root in roots)}
    for name, value in fields.items():
        inner = [root.ELEMENTS[name] for root in roots if name in root.ELEMENTS]
        for item in value if isinstance(value, list) else [value]:
            if inner and isinstance(item, Mapping):
                slips |= _slips(inner, item)
    return slips
