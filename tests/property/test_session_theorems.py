"""What a session promises, whatever the order in which things happen."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.protocol import RefusedFrameError
from kustos.wire.api_keys import ApiKey
from tests.property.protocol_driver import EVERY_VERSION, HOST, PRINCIPAL
from tests.property.protocol_requests import ALL_ALLOWED, frame_of, random_acls, random_request
from tests.tap.checker import Violation, check_request
from tests.tap.frames import read_request
from tests.unit.gateway.session_worlds import World

MAX_IN_FLIGHT = 4
EVENTS = ("frames", "frames", "answer", "answer", "learn", "upstream", "client", "audit", "acls", "turn")
TALKATIVE = [
    which for which in EVERY_VERSION if which[0] in {0, 1, 2, 3, 8, 9, 10, 12, 15, 16, 18, 19, 20, 30, 75}
]


class Watched(World):
    """A world in which everything that goes upstream is held against what may."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.found: list[Violation] = []
        self.blocked_writes = self.overtaken = self.most_under_way = 0
        self.answering = self.fetch_is_out = False

    def take_upstream(self, frame: bytes) -> None:
        super().take_upstream(frame)
        if not self.answering:
            self.blocked_writes += self.is_blocked
            self.overtaken += self.fetch_is_out
        if not self.is_second_question(frame[4:]):
            names = self.world.names
            self.found += check_request(frame[4:], PRINCIPAL, HOST, self.acls, names)
        if frame[4:6] == ApiKey.FETCH.to_bytes(2, "big"):
            self.fetch_is_out = True

    @property
    def is_blocked(self) -> bool:
        return self.is_full or not self.session.client_reads or not self.link.is_writable

    @staticmethod
    def is_second_question(frame: bytes) -> bool:
        """A Metadata that creates what its first question found missing: DESCRIBE was decided there."""
        if frame[:2] != ApiKey.METADATA.to_bytes(2, "big"):
            return False
        return bool(getattr(read_request(frame).body, "allow_auto_topic_creation", True))

    def answer_one(self) -> bool:
        self.answering = True
        first = next((f for f in self.forwarded if not is_silent(f)), b"")
        if first[:2] == ApiKey.FETCH.to_bytes(2, "big"):
            self.fetch_is_out = False
        try:
            return super().answer_one()
        finally:
            self.answering = False

    def do(self, event: str, random: Random, frames: list[bytes]) -> None:
        match event:
            case "frames" if not self.closed:
                count = random.randrange(1, 4)
                self.session.take([frames.pop(0) for _ in range(min(count, len(frames)))])
            case "answer" if not self.closed:
                self.answer_one()
            case "upstream" if not self.closed:
                if self.link.is_writable:
                    self.link.pause_writing()
                else:
                    self.link.resume_writing()
            case "client" if not self.closed:
                self.session.client_reads = not self.session.client_reads
                self.session.go_on()
            case "audit" if not self.closed:
                self.is_full = not self.is_full
                self.session.go_on()
            case "acls":
                self.replace_acls(random.choice(([], ALL_ALLOWED, random_acls(random))))
        under_way = len(self.forwarded) + len(self.cluster.questions)
        under_way -= sum(question.done() for question in self.cluster.questions)
        under_way -= sum(map(is_silent, self.forwarded))
        self.most_under_way = max(self.most_under_way, under_way)

    def open_all(self) -> None:
        """Take everything away that may hold the session back."""
        self.is_full = False
        self.session.client_reads = True
        if not self.closed:
            self.link.resume_writing()
            self.session.go_on()


def is_silent(frame: bytes) -> bool:
    return frame[:2] == b"\0\0" and read_request(frame).body.acks == 0


def drawn_frames(random: Random, world: World, count: int) -> list[bytes]:
    frames: list[bytes] = []
    while len(frames) < count:
        api_key, version = random.choice(TALKATIVE)
        message = random_request(api_key, version, random, world.world)
        frame = frame_of(api_key, version, message, correlation_id=len(frames))
        try:
            world.guard.open(frame)
        except RefusedFrameError:
            continue
        frames.append(frame)
    return frames


async def history(seed: int, events: list[str]) -> Watched:
    random = Random(seed)
    world = Watched(random.choice((ALL_ALLOWED, random_acls(random))), max_in_flight=MAX_IN_FLIGHT)
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
    assert world.found == [], "what is handed over is allowed at that moment"
    assert world.blocked_writes == 0, "nothing new is handed over while it could not be"
    assert world.overtaken == 0, "nothing overtakes a Fetch"
    assert world.most_under_way <= MAX_IN_FLIGHT
    begun = list(dict.fromkeys(int.from_bytes(frame[4:8], "big") for frame in world.all_forwarded))
    assert begun == sorted(begun), "no request overtakes one that has to learn something first"
    given_answers = world.correlation_ids()
    awaited = [number for number, frame in enumerate(asked) if not is_silent(frame)]
    if world.closed:
        assert len(world.closed) == 1
        assert given_answers == awaited[: len(given_answers)], "in the order of the requests"
    else:
        assert given_answers == awaited, "one answer each, in the order of the requests"


@given(seed=st.integers(0, 2**32), events=st.lists(st.sampled_from(EVENTS), max_size=40))
@settings(max_examples=300, deadline=None)
def test_every_history_is_in_order_decided_late_and_handed_over_at_once(seed: int, events: list[str]) -> None:
    asyncio.run(history(seed, events))


def test_histories_reach_what_they_are_about() -> None:
    """The theorem above is about something: held requests, fetches, full windows, ends."""
    worlds = [asyncio.run(history(seed, Random(seed).choices(EVENTS, k=30))) for seed in range(60)]
    assert sum(len(world.cluster.questions) for world in worlds) > 30
    assert sum(len(world.all_forwarded) for world in worlds) > 100
    assert max(world.most_under_way for world in worlds) == MAX_IN_FLIGHT
    assert 0 < sum(bool(world.closed) for world in worlds) < 55
