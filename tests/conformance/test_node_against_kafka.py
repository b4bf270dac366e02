"""What Envelopes and feature updates hang on, against Kafka's own classes."""

import random
import subprocess
from itertools import product
from pathlib import Path

import pytest

from kustos.acl import KafkaPrincipal
from kustos.metadata.features import LATEST_LEVEL, MINIMUM_LEVEL, changes_metadata
from kustos.protocol.envelopes import FORWARDABLE, principal_bytes, principal_of
from kustos.protocol.steps import RefuseRequestError
from testkit.kafka.compiled import java_program

SEED = 20_590
COUNT = 6000
LEVELS = range(MINIMUM_LEVEL, LATEST_LEVEL + 1)
TEXTS = ("", "User", "ops", "Zoë", "€uro", "a:b", "x" * 126, "y" * 127, "z" * 200)
REPLACEMENT = "\ufffd"


def asked(*questions: str) -> list[str]:
    """Return the answers of Kafka's classes, one a question."""
    said = subprocess.run(
        java_program(Path(__file__).with_name("NodeProbe.java")),
        input="\n".join(questions) + "\n",
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return said.stdout.splitlines()


def spoilt(chance: random.Random) -> bytes:
    """Return a principal with something wrong about it, mostly."""
    made = KafkaPrincipal(chance.choice(TEXTS), chance.choice(TEXTS), chance.random() < 0.5)
    data = bytearray(principal_bytes(made))
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        position = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[position:position] = bytes(
                    chance.choices((0, 1, 2, 127, 128, 255), k=chance.randint(1, 3))
                )
            case 1:
                del data[position : position + chance.randint(1, 4)]
            case 2:
                data[position : position + 1] = bytes((chance.randrange(256),))
            case _:
                del data[position:]
    return bytes(data)


def ours(data: bytes) -> str:
    try:
        found = principal_of(data)
    except RefuseRequestError:
        return "error"
    texts = (found.principal_type.encode().hex(), found.name.encode().hex())
    return ",".join((*texts, str(found.token_authenticated).lower()))


def is_lenient(data: bytes, theirs: str) -> bool:
    """Return whether Java read what kustos refuses on purpose: what is not UTF-8, or a length too long."""
    texts = [bytes.fromhex(text).decode() for text in theirs.split(",")[:2]]
    return (
        any(REPLACEMENT in text for text in texts)
        or b"\x80\x00" in data
        or b"\x81\x00" in data
        or any(data[index] >= 0x80 and data[index + 1] == 0 for index in range(2, len(data) - 1))
    )


def spoilt_principals() -> list[bytes]:
    chance = random.Random(SEED)
    return [spoilt(chance) for _ in range(COUNT)]


READ = spoilt_principals()
WRITTEN = [KafkaPrincipal(kind, name, token) for kind, name, token in product(TEXTS, TEXTS, (False, True))]
PAIRS = list(product(LEVELS, LEVELS))
QUESTIONS = {
    "read": [f"principal x{data.hex()}" for data in READ],
    "written": [
        f"written x{each.principal_type.encode().hex()} x{each.name.encode().hex()} "
        f"{each.token_authenticated}"
        for each in WRITTEN
    ],
    "changed": [f"changed {one} {other}" for one, other in PAIRS],
    "forwardable": ["forwardable"],
}


@pytest.fixture(scope="module")
def answers() -> dict[str, list[str]]:
    """Ask everything at once: a JVM takes longer to start than to answer."""
    said = iter(asked(*(question for part in QUESTIONS.values() for question in part)))
    return {name: [next(said) for _ in part] for name, part in QUESTIONS.items()}


def test_six_thousand_principals_are_read_alike(answers: dict[str, list[str]]) -> None:
    theirs = answers["read"]
    differing = [
        (data.hex(), ours(data), answer)
        for data, answer in zip(READ, theirs, strict=True)
        if ours(data) != answer and not (ours(data) == "error" and is_lenient(data, answer))
    ]
    assert differing[:5] == []
    assert COUNT // 10 < sum(answer != "error" for answer in theirs) < COUNT * 9 // 10


def test_principals_are_written_alike(answers: dict[str, list[str]]) -> None:
    assert answers["written"] == [principal_bytes(each).hex() for each in WRITTEN]


def test_the_same_downgrades_may_lose_records(answers: dict[str, list[str]]) -> None:
    assert answers["changed"] == [str(changes_metadata(one, other)).lower() for one, other in PAIRS]


def test_the_same_requests_may_be_forwarded(answers: dict[str, list[str]]) -> None:
    [answer] = answers["forwardable"]
    assert {int(key) for key in answer.split(",")} == FORWARDABLE
