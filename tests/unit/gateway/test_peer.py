"""A client's address is written as Java writes it, since ACLs name hosts so."""

import random
import socket
import subprocess
from pathlib import Path
from typing import Any

from kustos.gateway.upstream.addresses import java_host_address
from testkit.kafka.compiled import java_program

CHANCE = random.Random(20261121)
COUNT = 3000


def addresses() -> list[tuple[bytes, int]]:
    """Return (address, scope id): all shapes, zeros in runs, mapped and link-local ones."""
    made: list[tuple[bytes, int]] = []
    for _ in range(COUNT):
        kind = CHANCE.randrange(5)
        groups = [CHANCE.choice((0, 0, 1, 0xFF, CHANCE.getrandbits(16))) for _ in range(8)]
        wide = b"".join(group.to_bytes(2, "big") for group in groups)
        match kind:
            case 0:
                made.append((CHANCE.randbytes(4), 0))
            case 1:
                made.append((bytes(10) + b"\xff\xff" + CHANCE.randbytes(4), CHANCE.randrange(3)))
            case 2:
                made.append((b"\xfe\x80" + wide[2:], CHANCE.randrange(200)))
            case 3:
                made.append((bytes(12) + CHANCE.randbytes(4), 0))
            case _:
                made.append((wide, 0))
    return made


def peer(address: bytes, scope_id: int) -> Any:
    """Return the peer name of a socket with this address."""
    if len(address) == 4:
        return socket.inet_ntop(socket.AF_INET, address), 1234
    return socket.inet_ntop(socket.AF_INET6, address), 1234, 0, scope_id


def test_three_thousand_addresses_are_written_as_java_writes_them() -> None:
    asked = addresses()
    output = subprocess.run(
        java_program(Path(__file__).with_name("PeerProbe.java")),
        input="".join(f"{address.hex()} {scope_id}\n" for address, scope_id in asked),
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    theirs = output.stdout.splitlines()
    pairs = [
        (address.hex(), scope_id, java_host_address(peer(address, scope_id)), answer)
        for (address, scope_id), answer in zip(asked, theirs, strict=True)
    ]
    assert [pair for pair in pairs if pair[2] != pair[3]][:5] == []
    assert sum("%" in answer for answer in theirs) > 100


def test_a_zone_name_in_the_address_is_replaced_by_its_number() -> None:
    assert java_host_address(("fe80::1%eth0", 9, 0, 2)) == "fe80:0:0:0:0:0:0:1%2"
    assert java_host_address(("::1", 9, 0, 0)) == "0:0:0:0:0:0:0:1"
    assert java_host_address(("::ffff:10.0.0.1", 9, 0, 0)) == "10.0.0.1"
