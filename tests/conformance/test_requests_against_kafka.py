"""Kafka's own parser and ours read the same requests in the same bytes, or ours refuses for a known reason.

`tests/fuzz` searches for more with the same judge (`fuzz/targets/requests.py`).
"""

from collections.abc import Iterator
from random import Random

import pytest

from testkit.parsing.judge import CLOSED_FOR, difference, excuse, ours
from testkit.parsing.mutations import EVERY_VERSION, drawn, mutated
from testkit.parsing.probe import RequestProbe
from testkit.paths import ROOT

MUTANTS_PER_REQUEST = 20
CANONICAL = "Frames that are not in canonical form"
TAGS = "Unknown tagged fields"
MANY = "Limits of list elements"


def request(key: int, version: int, body: str, tags: str = "", client_id: str = "000161") -> bytes:
    """Return a frame; `tags` are those of a flexible header."""
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4)
    return head + bytes.fromhex(client_id + tags + body)


def fetch(tags: str) -> bytes:
    """Return a Fetch of nothing with these tagged fields."""
    return request(1, 12, "ffffffff" + "00000000" * 3 + "00 00000000 ffffffff 01 01 01" + tags, "00")


BOTH_READ = {
    "nothing odd": request(3, 4, "00000001 0001 61 00"),
    "no client id": request(3, 4, "00000001 0001 61 00", client_id="ffff"),
    "bytes behind a request": request(3, 4, "00000001 0001 61 00 6d6f7265"),
    "null for all topics": request(3, 4, "ffffffff 00"),
    "no topics": request(3, 4, "00000000 00"),
    "null for all topics, flexible": request(3, 9, "00 000000 00", "00"),
    "no topics, flexible": request(3, 9, "01 000000 00", "00"),
    "an unknown tag in the header": request(3, 9, "01 000000 00", "01 63 02 6869"),
    "an unknown tag in the body": request(3, 9, "01 000000 01 63 02 6869", "00"),
    "an unknown tag in an item": request(3, 9, "02 02 61 01 00 01 ff 000000 00", "00"),
    "a NUL and a sign of byte order": request(3, 4, "00000001 0005 00 efbbbf 61 00"),
    "a character beyond U+FFFF": request(3, 4, "00000001 0004 f09f9880 00"),
    "a topic named twice": request(3, 4, "00000002 0001 61 0001 61 00"),
    "a tag at its default": fetch("01 00 01 00"),
}
BOTH_REFUSE = {
    "a body that ends too early": request(3, 4, "00000001 0001 61"),
    "a list longer than the frame": request(3, 4, "7fffffff 00"),
    "a null that may not be": request(3, 4, "00000001 ffff 00"),
    "a null that may not be, flexible": request(3, 9, "02 00 00 000000 00", "00"),
    "half a tag": request(3, 9, "01 000000 01 63 20 6869", "00"),
    "a varint without an end": request(3, 9, "ffffffffffffff", "00"),
    "a text of more than 32,767 bytes": request(3, 9, "02 818002" + "61" * 0x8000 + "00 000000 00", "00"),
    "a tag of a later version": fetch("01 01 00"),
    "an ACL of an unknown type": request(29, 2, "00 00 03 00 00 01 01 00", "00"),
}
SIXTY_FIVE = "".join(f"{tag:02x}00" for tag in range(65))
ONLY_KAFKA_READS = {
    CANONICAL: {
        "a name that is not UTF-8": request(3, 4, "00000001 0002 c328 00"),
        "a name of half a pair": request(3, 4, "00000001 0003 eda080 00"),
        "an over-long NUL": request(3, 4, "00000001 0002 c080 00"),
        "a client id that is not UTF-8": request(3, 4, "ffffffff 00", client_id="0002c328"),
        "a list of a negative length": request(3, 4, "fffffff0 00"),
        "a client id of a negative length": request(3, 4, "ffffffff 00", client_id="fff0"),
        "a padded length": request(3, 9, "8100 000000 00", "00"),
        "a length of 32 bits": request(3, 9, "ffffffff0f 000000 00", "00"),
        "a boolean of 2": request(3, 4, "00000000 02"),
        "a mark of a struct": request(75, 0, "01 00000001 02 02 61 00000000 00 00", "00"),
        "a tag twice": request(3, 9, "01 000000 02 63 00 63 00", "00"),
        "a tag twice in the header": request(3, 9, "01 000000 00", "02 63 00 63 00"),
        "a known tag twice": fetch("02 00 02 02 61 00 02 02 62"),
        "a known tag of a wrong size": fetch("01 00 01 02 61"),
        "a known tag beyond the frame": fetch("01 00 7f 02 61"),
    },
    TAGS: {"65 tags in a header": request(3, 9, "01 000000 00", "41" + SIXTY_FIVE)},
    MANY: {"101 states of groups": request(16, 4, "66" + "01" * 101 + "00", "00")},
}  # fmt: skip


@pytest.fixture(scope="module")
def probe() -> Iterator[RequestProbe]:
    """Kafka's parser."""
    with RequestProbe() as made:
        yield made


@pytest.mark.parametrize("title", BOTH_READ)
def test_both_read_the_same(probe: RequestProbe, title: str) -> None:
    mine, theirs = ours(BOTH_READ[title]), probe.read_one(BOTH_READ[title])
    assert mine.canonical is not None, mine.refusal
    assert mine.canonical == theirs.canonical, theirs.refusal


@pytest.mark.parametrize("title", BOTH_REFUSE)
def test_both_refuse(probe: RequestProbe, title: str) -> None:
    assert ours(BOTH_REFUSE[title]).canonical is None
    assert probe.read_one(BOTH_REFUSE[title]).canonical is None


@pytest.mark.parametrize(
    ("name", "title"), [(name, title) for name, frames in ONLY_KAFKA_READS.items() for title in frames]
)
def test_only_kafka_reads(probe: RequestProbe, name: str, title: str) -> None:
    frame = ONLY_KAFKA_READS[name][title]
    mine, theirs = ours(frame), probe.read_one(frame)
    assert theirs.canonical is not None, theirs.refusal
    assert mine.canonical is None
    assert CLOSED_FOR[excuse(mine) or ""] == name, mine.refusal
    assert difference(mine, theirs) is None


def test_every_reason_has_its_example_and_its_explanation() -> None:
    shown = {excuse(ours(frame)) for frames in ONLY_KAFKA_READS.values() for frame in frames.values()}
    assert shown == CLOSED_FOR.keys()
    page = (ROOT / "docs" / "explanation" / "differences-from-kafka.md").read_text()
    assert not [name for name in CLOSED_FOR.values() if f"### {name}\n" not in page]


def test_mutated_requests_of_every_version_are_read_alike(probe: RequestProbe, seed: int) -> None:
    random = Random(seed)
    frames = [
        frame
        for version in EVERY_VERSION
        for request in [drawn(random, version)]
        for frame in (request, *(mutated(random, request) for _ in range(MUTANTS_PER_REQUEST)))
    ]
    both = 0
    for frame, theirs in zip(frames, probe.read(frames), strict=True):
        mine = ours(frame)
        assert difference(mine, theirs) is None, frame.hex(" ")
        both += mine.canonical is not None
    # a mutant that both read is worth more than one that neither does
    assert both > len(frames) / 5
