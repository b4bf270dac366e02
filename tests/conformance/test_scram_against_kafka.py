"""Our reading of SCRAM messages against Kafka's own classes, over damaged and well-formed ones."""

import base64
import random
import subprocess
from pathlib import Path

import pytest

from kustos.auth.mechanisms.scram_messages import (
    ClientFinal,
    ClientFirst,
    ScramSyntaxError,
    ServerFinal,
    ServerFirst,
)
from testkit.kafka.compiled import java_program

SEED = 5802
COUNT = 8000
SEEDS: dict[str, list[bytes]] = {
    "client-first": [
        b"n,,n=alice,r=fyko+d2l",
        b"n,a=bob,n=a=2Cb=3Dc,r=x,tokenauth=true",
        b"n,,m=x,n=u,r=y,e=1",
    ],
    "server-first": [b"r=abc%,s=QSXCR+Q6sek8bf92,i=4096", b"m=1,r=a,s=QQ==,i=1,x=y", b"r=a,s=,i=2147483648"],
    "client-final": [b"c=biws,r=fyko,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", b"c=,r=a,x=y,p=QUI="],
    "server-final": [b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", b"e=other-error", b"v=QUI=,x=y", b"e=x,y=z"],
}
ALPHABET = b"nrapcsivemxy=,,=2C=3D0149AQ+/%\x00\x01\x7f\x80\xc3\xa9 \n"


def damaged(chance: random.Random, kind: str) -> bytes:
    message = bytearray(chance.choice(SEEDS[kind]))
    for _ in range(chance.randint(0, 3)):
        place = chance.randint(0, len(message))
        if chance.random() < 0.5:
            message[place:place] = bytes([chance.choice(ALPHABET)])
        else:
            message[place : place + 1] = b""
    return bytes(message)


def shown(data: bytes | str) -> str:
    return f"[{base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()}]"


def ours(kind: str, message: bytes) -> str:
    try:
        match kind:
            case "client-first":
                first = ClientFirst.parse(message)
                parts = (first.authorization_id, first.username, first.nonce)
                return "".join(shown(part) for part in (*parts, first.bare)) + str(first.is_token).lower()
            case "server-first":
                server = ServerFirst.parse(message)
                return shown(server.nonce) + shown(server.salt) + str(server.iterations)
            case "client-final":
                final = ClientFinal.parse(message)
                return shown(final.without_proof) + shown(final.nonce) + shown(final.proof)
            case _:
                end = ServerFinal.parse(message)
                return "v" + shown(end.signature) if end.error is None else "e" + shown(end.error)
    except ScramSyntaxError:
        return "error"


def unordered(answer: str) -> tuple[str, ...]:
    """Return the parts of an answer, those of a bare client-first message in a fixed order."""
    parts = answer.split("]")
    if len(parts) == 5:
        bare = base64.b64decode(parts[3].removeprefix("[")).split(b",")
        parts[3] = repr(sorted(bare))
    return tuple(parts)


@pytest.mark.behaviour("B298", "B299", "B300")
def test_eight_thousand_messages_are_read_alike() -> None:
    """The order of extensions does not count: Kafka's differs from run to run, ours is the client's."""
    chance = random.Random(SEED)
    asked = [(kind, damaged(chance, kind)) for kind in chance.choices(list(SEEDS), k=COUNT)]
    run = subprocess.run(
        java_program(Path(__file__).with_name("ScramProbe.java")),
        input="".join(f"{kind} {base64.b64encode(message).decode()}\n" for kind, message in asked),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    theirs = run.stdout.splitlines()
    pairs = (
        (message, ours(kind, message), answer) for (kind, message), answer in zip(asked, theirs, strict=True)
    )
    assert [pair for pair in pairs if unordered(pair[1]) != unordered(pair[2])][:5] == []
    assert COUNT // 10 < sum(answer != "error" for answer in theirs) < COUNT
