"""What a user may send after his login: a request, read by kustos and by Kafka's own parser.

An attacker wants the guard to read another request than the broker behind it. Half of the inputs are drawn
anew from every API and version, since the searching engine sees nothing of the readers, which are generated.
"""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

from fuzz.targets import FoundError, require
from kustos.protocol import Opened, RefusedFrameError
from kustos.protocol.plans import ProduceShape
from kustos.wire import ApiKey, Message
from testkit.parsing import mutations
from testkit.parsing.judge import difference, opened, ours, transactional
from testkit.parsing.probe import RequestProbe
from testkit.protocol.driver import Driver
from testkit.protocol.random_requests import ALL_ALLOWED, model

INPUT_MAX_BYTES: Final = mutations.FRAME_MAX_BYTES
DRAWN_ANEW: Final = 0.5
SEED: Final = 1
PRODUCE_SEEDS: Final = 16
"""Of each version: half of them are in a transaction, or have records that nobody can read."""

_probe: Final = cache(RequestProbe)


def check(data: bytes) -> None:
    """Raise if kustos reads what Kafka refuses, or anything else than Kafka reads."""
    found = difference(ours(data), _probe().read_one(data))
    require(found is None, found or "")
    if data[:2] == int(ApiKey.PRODUCE).to_bytes(2, "big"):
        repeats_what_it_says(data)


def repeats_what_it_says(frame: bytes) -> None:
    """Require that a Produce taken for an earlier one is that one, but for records in no transaction."""
    for shape, first in SHAPES:
        if not shape.matches(frame):
            continue
        try:
            request = opened(frame)
        except RefusedFrameError:
            raise FoundError("a repeated Produce cannot be read") from None
        require(request.is_exact, "a repeated Produce has more than its request")
        require(without_records(request) == first, "a repeated Produce is another one")
        require(transactional(request) is False, "a repeated Produce is in a transaction")


def without_records(request: Opened) -> Message:
    """Return a Produce as its shape has it."""
    message = request.exchange.request
    return message.replace(
        topic_data=[
            topic.replace(partition_data=[part.replace(records=None) for part in topic.partition_data])
            for topic in message.topic_data
        ]
    )


def produce_seeds() -> Iterator[bytes]:
    """Yield Produce requests of every version."""
    random = Random(SEED)
    for version in (version for key, version in mutations.EVERY_VERSION if key == ApiKey.PRODUCE):
        for _ in range(PRODUCE_SEEDS):
            yield mutations.drawn(random, (ApiKey.PRODUCE, version))


def produce_shapes() -> Iterator[tuple[ProduceShape, Message]]:
    """Yield the shapes of those seeds that kustos keeps where all is allowed, and what it read of each."""
    for frame in produce_seeds():
        driver = Driver(model(), ALL_ALLOWED)
        request = driver.run(frame).opened
        for shape in driver.guard.plans.produce:
            assert request is not None
            yield shape, without_records(request)


def seeds() -> Iterator[bytes]:
    """Yield requests of every API and version, and more of those that carry records."""
    random = Random(SEED)
    for api in mutations.EVERY_VERSION:
        yield mutations.drawn(random, api)
    yield from produce_seeds()


def mutate(data: bytes, _size_max: int, seed: int) -> bytes:
    """Return an input changed as an attacker would, or another one."""
    random = Random(seed)
    base = mutations.drawn(random) if random.random() < DRAWN_ANEW else data
    return mutations.mutated(random, base)


SHAPES: Final = tuple(produce_shapes())
"""What a Produce may repeat. Made with the module, so that no input is charged for it."""
