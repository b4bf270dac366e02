"""Theorem: no broker starts a request after the acknowledged change that forbids it.

A model of a broker works with the real session, link and bookkeeping. It works on one request of a connection
at a time, delays it as long as drawn, reads the following requests even if the connection is dead, mutes
connections that it throttles, and may freeze. Meanwhile ACLs change, sessions expire, clients leave.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.client.errors import CannotConnectError
from kustos.gateway.upstream import link as link_module
from kustos.gateway.upstream.in_flight import InFlight, RequestsInFlightError
from kustos.gateway.upstream.life_cycles import LINK_LIFE, SERVING, LinkEvent, LinkState
from kustos.gateway.upstream.link import REPLICATED_SOON_S, UpstreamLink
from kustos.wire import peek_api, read_response_header, response_codec, response_header_is_flexible
from testkit.gateway.sessions import World, deliver, fetch, heartbeat, produce
from testkit.protocol.driver import HOST, PRINCIPAL
from testkit.protocol.random_requests import allow
from testkit.tap.checker import check_request

EVENTS = (
    *("send", "send", "answer", "answer", "slow", "throttle", "unmute"),
    *("freeze", "change", "change", "turn"),
)
ENDS = (("leave",), ("near", "send", "answer", "expire"), ())
TOPICS = ("alpha-topic", "bravo-topic")
GROUPS = ("group-one", "group-two")
RIGHTS = [
    *(allow(ResourceType.TOPIC, name, AclOperation.ALL) for name in TOPICS),
    *(allow(ResourceType.GROUP, name, AclOperation.ALL) for name in GROUPS),
]
_until_answered = UpstreamLink.until_answered
RESETS_LOST = 0.5
MUTED_MS = 60_000
"""Longer than any history; a drawn step ends it earlier."""


@dataclass
class Late(World):
    """A world whose upstream is a slow broker."""

    unread: deque[bytes] = field(default_factory=deque)
    """The connection's requests in the broker's kernel buffer."""
    working_on: bytes | None = None
    is_frozen: bool = False
    is_muted: bool = False
    is_reset_lost: bool = False
    """Whether the network loses the reset: the broker only learns of it by the next one, after a response."""
    is_dead: bool = False
    """Whether the broker knows that the connection is closed."""
    all_states: list[list[AclBinding]] = field(default_factory=list)
    states: list[list[AclBinding]] = field(default_factory=list)
    """The ACLs in force since the last acknowledged change, with that change's own first."""
    ends_soon: bool = False
    ended: bool = False
    unread_then: list[bytes] = field(default_factory=list)
    """The requests that the broker had not begun when the end of the session came near."""
    found: list[str] = field(default_factory=list)
    begun: int = 0
    acknowledged: int = 0
    refused: int = 0
    most_unread: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.states = [list(self.acls)]
        self.all_states = [list(self.acls)]
        self.changes: list[asyncio.Task[None]] = []

    # the broker

    def take_request(self, frame: bytes) -> None:
        super().take_request(frame)
        self.unread.append(frame)
        self.look()
        self.most_unread = max(self.most_unread, len(self.unread))

    def look(self) -> None:
        """Let the broker begin the next request, if it can."""
        if self.working_on is None and self.unread and not (self.is_frozen or self.is_muted or self.is_dead):
            self.working_on = self.unread.popleft()
            self.begun += 1
            self.judge(self.working_on)

    def judge(self, frame: bytes) -> None:
        names = self.world.names
        if all(check_request(frame, PRINCIPAL, HOST, acls, names) for acls in self.states):
            self.found.append(f"API {peek_api(frame)[0]} was begun after the change that forbids it")
        if self.ended:
            self.found.append("a request was begun after the end of its session")

    def finish_one(self, throttle_ms: int = 0) -> None:
        """Let the broker finish its current request."""
        if self.is_frozen or self.working_on is None:
            return
        frame, self.working_on = self.working_on, None
        if self.pipe.aborted and not self.is_reset_lost:
            # the response cannot be written: only now the broker notices the reset
            self.is_dead = True
            return
        self.is_reset_lost = False
        self.is_muted = throttle_ms > 0
        answer = self.world.answer(frame)
        if answer is not None and not self.pipe.closing:
            if throttle_ms:
                answer = throttled(frame, answer, throttle_ms)
            deliver(self.link, answer)
        self.look()

    async def log_in(self, host: str, port: int) -> None:
        if self.is_frozen:
            raise CannotConnectError("the broker stands still")
        # the broker serves its connections in turn
        self.look()

    # what happens

    def has_expired(self, in_ms: int = 0) -> bool:
        return self.ended or (self.ends_soon and in_ms > 0)

    def take(self, frame: bytes) -> bool:
        self.close("the session has expired")
        return True

    @property
    def link(self) -> UpstreamLink:
        return self.kept_link

    def connect(self) -> None:
        super().connect()
        assert isinstance(self.session.link, UpstreamLink)
        self.kept_link = self.session.link

    def change(self, acls: list[AclBinding]) -> None:
        """Put ACLs in force, and acknowledge the change once that is allowed."""
        self.replace_acls(acls)
        self.states.append(list(acls))
        self.all_states.append(list(acls))
        number = len(self.all_states) - 1
        self.changes.append(asyncio.get_running_loop().create_task(self.acknowledge(number)))

    async def acknowledge(self, number: int) -> None:
        try:
            await self.in_flight.drain()
        except RequestsInFlightError:
            self.refused += 1
            return
        self.acknowledged += 1
        self.states = self.all_states[number:]

    def do(self, event: str, random: Random) -> None:
        match event:
            case "send" if not self.closed:
                self.session.take([drawn_frame(random, len(self.all_forwarded)) for _ in range(3)])
            case "answer":
                self.finish_one()
            case "slow":
                # replicas took their time
                if self.link._awaited:
                    self.link._awaited[0].sent_s -= REPLICATED_SOON_S
                self.finish_one()
            case "throttle":
                self.finish_one(MUTED_MS)
            case "unmute":
                self.is_muted = False
                self.link._unthrottle()
                self.look()
            case "freeze":
                self.is_frozen = not self.is_frozen
                self.look()
            case "change":
                self.change([right for right in RIGHTS if random.random() < 0.6])
            case "leave" if not self.closed:
                self.close("the client is gone")
            case "near" if not self.closed and not (self.is_frozen or self.is_muted):
                self.ends_soon, self.unread_then = True, list(self.unread)
            case "expire" if self.ends_soon and not (self.closed or self.is_frozen or self.is_muted):
                # there was a minute for that
                while any(frame in self.unread for frame in self.unread_then):
                    self.finish_one()
                self.ended = True
                self.wanted = lambda _: True


def throttled(frame: bytes, answer: bytes, throttle_ms: int) -> bytes:
    """Return the response with a time in which the broker reads nothing from this connection."""
    api_key, version, _ = peek_api(frame)
    codec = response_codec(api_key, version)
    _, body_at = read_response_header(answer, response_header_is_flexible(api_key, codec))
    message = codec.decode(answer, body_at).message
    message.throttle_time = throttle_ms
    return answer[:body_at] + codec.encode(message)


def drawn_frame(random: Random, number: int) -> bytes:
    kind = random.choice(("produce", "produce", "produce", "heartbeat", "fetch"))
    if kind == "produce":
        return produce(number, random.choice((0, 1, -1)), random.choice(TOPICS))
    if kind == "heartbeat":
        return heartbeat(number, random.choice(GROUPS))
    return fetch(number, random.choice(TOPICS))


async def history(seed: int, events: list[str]) -> Late:
    random = Random(seed)
    world = Late(RIGHTS, is_reset_lost=random.random() < RESETS_LOST)
    for event in events:
        if event == "turn":
            await world.settle()
        else:
            world.do(event, random)
    await asyncio.gather(*world.changes)
    # in the end the broker works on everything that it still has
    world.is_frozen = False
    for _ in range(30):
        world.is_muted = False
        world.look()
        world.finish_one()
    if not world.closed:
        world.close("the history is over")
    if world.link.is_cut:
        world.link.forget()
    await world.settle()
    return world


HISTORIES = st.builds(
    lambda events, end, more: [*events, *end, *more],
    st.lists(st.sampled_from(EVENTS), max_size=25),
    st.sampled_from(ENDS),
    st.lists(st.sampled_from(EVENTS), max_size=10),
)


@given(seed=st.integers(0, 2**32), events=HISTORIES)
@settings(max_examples=400, deadline=None)
def test_no_request_starts_after_the_acknowledged_change_that_forbids_it(
    seed: int, events: list[str]
) -> None:
    assert asyncio.run(history(seed, events)).found == []


def drawn_histories(count: int) -> Iterator[Late]:
    for seed in range(count):
        random = Random(seed)
        events = [*random.choices(EVENTS, k=20), *random.choice(ENDS), "change", "turn"]
        yield asyncio.run(history(seed, events))


def test_histories_reach_the_relevant_states() -> None:
    worlds = list(drawn_histories(150))
    assert sum(world.begun for world in worlds) > 300
    assert sum(world.acknowledged for world in worlds) > 150
    assert sum(world.refused for world in worlds) > 5
    assert sum(world.link.is_cut for world in worlds) > 5
    assert sum(world.most_unread for world in worlds) > 100


def may_be_muted(link: UpstreamLink) -> bool:
    """Return whether the broker may read nothing from a link now."""
    return link._throttle_time_ms is None or link._unthrottle_timer is not None


async def _at_once(self: InFlight) -> None:
    """Acknowledge a change at once, whatever requests brokers still have."""


def _goes_on(self: UpstreamLink, throttle_time_ms: int | None) -> None:
    """Send the following requests at once."""
    self._begin_next()


def _forgets(self: UpstreamLink) -> None:
    """Close as if the broker had finished all requests."""
    if self.state in SERVING:
        self._stop_serving()
        self._forget_requests()
        self.state = LinkState.FINISHING
        self._finish()


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "changes are acknowledged at once": lambda patch: patch.setattr(InFlight, "drain", _at_once),
    "a closed link does not drain": lambda patch: patch.setattr(UpstreamLink, "close", _forgets),
    "what is pipelined is not looked at again": lambda patch: patch.setattr(
        UpstreamLink, "_may_begin", lambda link: True
    ),
    "throttling is not seen": lambda patch: patch.setattr(UpstreamLink, "throttle", _goes_on),
    "what lies behind another request is believed dead": lambda patch: patch.setattr(
        UpstreamLink, "is_provable", property(lambda link: not may_be_muted(link))
    ),
    "what the broker throttles is believed dead": lambda patch: _believe_throttled_dead(patch),
    "only the first request is waited for": lambda patch: patch.setattr(
        UpstreamLink, "until_answered", _until_the_first_is
    ),
    "the end of a session is not looked ahead to": lambda patch: patch.setattr(
        link_module, "SESSION_REST_MS", 0
    ),
    "no login is waited for": lambda patch: patch.setattr(InFlight, "_forget_dead", _buried_alive),
}


def _believe_throttled_dead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UpstreamLink, "is_provable", property(lambda link: len(link._awaited) <= 1))
    # the table has no row for it
    patch.setitem(LINK_LIFE, (LinkState.THROTTLED, LinkEvent.REQUEST_FORBIDDEN), LinkState.CUT)


def _until_the_first_is(self: UpstreamLink) -> asyncio.Future[None] | None:
    """Look only at the first request in flight: return its future, None if it is still allowed."""
    kept, self._awaited = self._awaited, deque(list(self._awaited)[:1])
    try:
        return _until_answered(self)
    finally:
        self._awaited = kept


async def _buried_alive(
    self: InFlight, broker: tuple[str, int], links: list[UpstreamLink], timeout_s: float
) -> None:
    for link in links:
        link.forget()


@pytest.mark.parametrize("fault", PLANTED)
@pytest.mark.slow
def test_planted_faults_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[fault](monkeypatch)
    assert any(world.found for world in drawn_histories(600)), fault
