"""Theorems about sessions, for any order of events."""

import asyncio
import math
from dataclasses import dataclass
from random import Random
from typing import Any, cast
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.gateway.session import large_turns
from kustos.gateway.session.client_session import PIPELINED_MAX
from kustos.gateway.session.large_turns import PRODUCE
from kustos.protocol import Decider, GiveWay, Guard, Opened, Outcome, RefusedFrameError, turns
from kustos.protocol.effects import Handler
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import World, produce
from testkit.protocol.driver import EVERY_VERSION, HOST, PRINCIPAL
from testkit.protocol.random_requests import ALL_ALLOWED, frame_of, numbered, random_acls, random_request
from testkit.tap.checker import Violation, check_request
from testkit.tap.frames import read_request

FEW_ITEMS_PER_TURN = 16
"""Just enough for one topic with all its operations, which are decided in one turn."""

WITHOUT_RESTS = patch.object(large_turns, "COSTLY_S", math.inf)
"""Histories have turns of the event loop and no clock; on a busy machine any work may take long."""

RUN_OF_PRODUCE = 0.3
"""The probability that a client pipelines several plain Produce requests in a row."""
SAME_AGAIN = 0.3
"""The probability that a client sends one of its requests once more."""

EVENTS = (
    "frames",
    "frames",
    "answer",
    "answer",
    "answers",
    "learn",
    "upstream",
    "client",
    "audit",
    "acls",
    "turn",
)
TALKATIVE = [
    which for which in EVERY_VERSION if which[0] in {0, 1, 2, 3, 8, 9, 10, 12, 15, 16, 18, 19, 20, 30, 75}
]


class HurriedGuard(Guard):
    """A guard whose requests give way as soon as they can."""

    def __init__(self, guard: Guard, world: "Watched") -> None:
        super().__init__(
            guard.decider, guard.context_of, guard.addresses, guard.offered, guard.auto_creates_topics
        )
        self.world = world

    def open(self, frame: bytes) -> Opened | bytes:
        opened = super().open(frame)
        if isinstance(opened, Opened):
            opened.exchange.turn_room = 0
            opened.handler = self.world.counted(opened.handler)
        return opened


@dataclass
class Watched(World):
    """A world that checks everything sent upstream against the ACLs.

    `hurries`: a turn has room for so few items that even small requests give way.
    """

    hurries: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.found: list[Violation] = []
        self.blocked_writes = self.pipelined = self.most_under_way = 0
        self.waited_behind: list[bytes] = []
        self.upstream_is_full = False
        self.answering = False
        self.gave_way = 0

    def make_guard(self, decider: Decider) -> Guard:
        guard = super().make_guard(decider)
        return HurriedGuard(guard, self) if self.hurries else guard

    def counted(self, handler: Handler) -> Handler:
        """Count how often a request gives way."""
        result: Any = None
        while True:
            try:
                effect = handler.send(result)
            except StopIteration as stop:
                return cast("Outcome", stop.value)
            self.gave_way += isinstance(effect, GiveWay)
            result = yield effect

    def take_upstream(self, frame: bytes) -> None:
        super().take_upstream(frame)
        self.pipelined += bool(self.part)
        if not self.answering:
            self.blocked_writes += self.is_blocked

    def take_request(self, frame: bytes) -> None:
        super().take_request(frame)
        before = list(self.forwarded)[:-1]
        self.waited_behind += [other[:2] for other in before if other[:2] != PRODUCE]
        self.most_under_way = max(self.most_under_way, len(self.forwarded))
        if not self.is_second_question(frame):
            self.found += check_request(frame, PRINCIPAL, HOST, self.acls, self.world.names)

    @property
    def is_blocked(self) -> bool:
        return self.is_full or not self.session.client_reads or self.upstream_is_full

    @staticmethod
    def is_second_question(frame: bytes) -> bool:
        """Return whether a Metadata may create missing topics; an earlier Metadata decided DESCRIBE."""
        if frame[:2] != ApiKey.METADATA.to_bytes(2, "big"):
            return False
        return bool(getattr(read_request(frame).body, "allow_auto_topic_creation", True))

    def answer_one(self) -> bool:
        self.answering = True
        try:
            return super().answer_one()
        finally:
            self.answering = False

    def answer_all(self) -> bool:
        self.answering = True
        try:
            return super().answer_all()
        finally:
            self.answering = False

    def do(self, event: str, random: Random, frames: list[bytes]) -> None:
        match event:
            case "frames" if not self.closed:
                count = random.randrange(1, 4)
                self.session.take([frames.pop(0) for _ in range(min(count, len(frames)))])
            case "answer" if not self.closed:
                self.answer_one()
            case "answers" if not self.closed:
                self.answer_all()
            case "upstream" if not self.closed:
                self.upstream_is_full = not self.upstream_is_full
                if self.upstream_is_full:
                    self.link.pause_writing()
                else:
                    self.link.resume_writing()
            case "client" if not self.closed:
                if self.session.client_reads:
                    self.session.pause_writing()
                else:
                    self.session.resume_writing()
            case "audit" if not self.closed:
                self.is_full = not self.is_full
                self.session.go_on()
            case "acls":
                self.replace_acls(random.choice(([], ALL_ALLOWED, random_acls(random))))

    def open_all(self) -> None:
        """Remove everything that may block the session."""
        self.is_full = self.upstream_is_full = False
        if not self.closed:
            self.session.resume_writing()
            self.link.resume_writing()
            self.session.go_on()


def is_silent(frame: bytes) -> bool:
    return frame[:2] == b"\0\0" and read_request(frame).body.acks == 0


def drawn_frames(random: Random, world: World, count: int) -> list[bytes]:
    frames: list[bytes] = []
    while len(frames) < count:
        if random.random() < RUN_OF_PRODUCE:
            frames += [produce(len(frames) + more, random.choice((1, -1))) for more in range(3)]
            continue
        if frames and random.random() < SAME_AGAIN:
            frames.append(numbered(random.choice(frames), len(frames)))
            continue
        api_key, version = random.choice(TALKATIVE)
        message = random_request(api_key, version, random, world.world)
        frame = frame_of(api_key, version, message, correlation_id=len(frames))
        try:
            world.guard.open(frame)
        except RefusedFrameError:
            continue
        frames.append(frame)
    return frames


async def history(seed: int, events: list[str], *, hurries: bool = False) -> Watched:
    random = Random(seed)
    world = Watched(random.choice((ALL_ALLOWED, random_acls(random))), hurries=hurries)
    frames = drawn_frames(random, world, 12)
    asked = list(frames)
    for event in events:
        if event == "learn":
            await world.learn(random.randrange(3))
        elif event == "turn":
            await world.settle()
        else:
            world.do(event, random, frames)
    await world.settle()
    world.session.take(frames)
    world.open_all()
    await world.finish()
    check(world, asked)
    world.session.close()
    await world.settle()
    return world


def check(world: Watched, asked: list[bytes]) -> None:
    assert world.found == [], "a sent request is allowed at that moment"
    assert world.blocked_writes == 0, "no new request is sent while none can be sent"
    assert world.waited_behind == [], "no complete request follows one that waits for more than replicas"
    assert world.most_under_way <= PIPELINED_MAX
    begun = list(dict.fromkeys(int.from_bytes(frame[4:8], "big") for frame in world.all_forwarded))
    assert begun == sorted(begun), "no request overtakes one that waits for a query"
    given_answers = world.correlation_ids()
    awaited = [number for number, frame in enumerate(asked) if not is_silent(frame)]
    if world.closed:
        assert len(world.closed) == 1
        assert given_answers == awaited[: len(given_answers)], "in the order of the requests"
    else:
        assert given_answers == awaited, "one answer each, in the order of the requests"


@given(seed=st.integers(0, 2**32), events=st.lists(st.sampled_from(EVENTS), max_size=40))
@settings(max_examples=300, deadline=None)
def test_histories_are_in_order_decided_late_and_sent_immediately(seed: int, events: list[str]) -> None:
    asyncio.run(history(seed, events))


@given(seed=st.integers(0, 2**32), events=st.lists(st.sampled_from(EVENTS), max_size=40))
@settings(max_examples=300, deadline=None)
def test_yielding_requests_stay_in_order_and_are_sent_only_if_still_allowed(
    seed: int, events: list[str]
) -> None:
    with patch.object(turns, "ITEMS_PER_TURN", FEW_ITEMS_PER_TURN), WITHOUT_RESTS:
        asyncio.run(history(seed, events, hurries=True))


def test_yielding_histories_reach_the_relevant_states() -> None:
    with patch.object(turns, "ITEMS_PER_TURN", FEW_ITEMS_PER_TURN), WITHOUT_RESTS:
        worlds = [
            asyncio.run(history(seed, Random(seed).choices(EVENTS, k=30), hurries=True)) for seed in range(90)
        ]
    assert sum(world.gave_way for world in worlds) > 300
    assert sum(len(world.all_forwarded) for world in worlds) > 100
    assert sum(world.pipelined for world in worlds) > 20
    changed = "the ACLs changed while a large request was decided"
    assert any(changed in world.closed for world in worlds)


def test_histories_reach_the_relevant_states() -> None:
    """The histories of the theorem above reach held requests, fetches, full windows and ends."""
    worlds = [asyncio.run(history(seed, Random(seed).choices(EVENTS, k=30))) for seed in range(90)]
    assert sum(len(world.cluster.questions) for world in worlds) > 30
    assert sum(len(world.all_forwarded) for world in worlds) > 100
    assert sum(world.pipelined for world in worlds) > 20
    assert sum(world.most_under_way > 1 for world in worlds) > 20
    assert sum(world.repeated for world in worlds) > 20
    assert 0 < sum(bool(world.closed) for world in worlds) < 55
