"""What was found to make others wait: each attack by itself, as bytes, at whatever stands at an address.

A side may answer, refuse or close; an attack is over when every connection was answered or closed.
"""

import itertools
import socket
import struct
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.figures import QUICK
from benchmarks.stalling.sides import ADMIN, NOBODY, Side
from testkit.guarded.raw_client import SASL_HANDSHAKE, RawClient, framed, request_bytes

FETCH, DESCRIBE_GROUPS, FIND_COORDINATOR = 1, 15, 10
DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS, CREATE_DELEGATION_TOKEN = 29, 30, 31, 38

LIGHTER: Final = 10 if QUICK else 1
"""By how much a quick run asks for less."""

BEFORE_LOGIN_KEYS: Final = 524_000
"""Nearly `sasl.server.max.receive.size`, one byte each."""
BEFORE_LOGIN_CLIENTS: Final = 8
EMPTY: Final = b"\x01"
"""The shortest of all names."""
GROUPS: Final = 99_999
DISTINCT_GROUPS: Final = 15_000
"""As many bytes; who counts equal questions once does not count them once."""
GROUP_ROUNDS: Final = 3
FLOOD_GROUPS: Final = 9_990
"""As many as one request may name here."""
FLOOD_CLIENTS: Final = 4
FLOOD_FRAMES: Final = 40 // (4 if QUICK else 1)
"""Requests of each, none of which waits for the answer to the one before."""
UNKNOWN_TOPICS: Final = (4_000 // LIGHTER, 8_000 // LIGHTER)
MANY_ACLS: Final = 400_000 // LIGHTER
ACLS_OF_A_REQUEST: Final = 10_000
"""Kafka's own limit."""
CREATORS: Final = 4
TOKENS: Final = 24 // (4 if QUICK else 1)
TOKEN_CLIENTS: Final = 8
RENEWERS: Final = 90_000
DRAIN_BYTES: Final = 1 << 20
FETCH_BYTES: Final = 64 << 20
"""All of the data topic."""

_CREATIONS: Final = itertools.count(1_000)
"""So that no ACL is made twice, nor one of those that `fill_acls` makes."""

ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3


def varint(value: int) -> bytes:
    """Return an unsigned variable-length number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def compact(text: str) -> bytes:
    """Return a compact string."""
    data = text.encode()
    return varint(len(data) + 1) + data


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """Return a request with its length."""
    return framed(request_bytes(api_key, version, 1, "attacker", body))


def find_coordinator(names: Sequence[bytes]) -> bytes:
    """Return a FindCoordinator v4 of groups with these compact names."""
    return frame(FIND_COORDINATOR, 4, b"\0" + varint(len(names) + 1) + b"".join(names) + b"\0")


def describe_groups(names: Sequence[bytes]) -> bytes:
    """Return a DescribeGroups v5 of groups with these compact names."""
    return frame(DESCRIBE_GROUPS, 5, varint(len(names) + 1) + b"".join(names) + b"\0\0")


def fetch_unknown(topics: int) -> bytes:
    """Return a Fetch v17 of topic ids that nobody knows."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 1 << 20) + b"\0"
    items = b"".join(uuid.uuid4().bytes + b"\x02" + partition + b"\0" for _ in range(topics))
    head = struct.pack(">iiibii", 500, 1, 1 << 20, 0, 0, -1)
    return frame(FETCH, 17, head + varint(topics + 1) + items + b"\x01" + compact("") + b"\0")


def fetch_all(topic: str) -> bytes:
    """Return a Fetch v12 of the first partition of a topic, as much as there is."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, FETCH_BYTES) + b"\0"
    head = struct.pack(">iiiibii", -1, 500, 1, FETCH_BYTES, 0, 0, -1)
    item = compact(topic) + b"\x02" + partition + b"\0"
    return frame(FETCH, 12, head + b"\x02" + item + b"\x01" + compact("") + b"\0")


def create_acls(first: int, count: int) -> bytes:
    """Return a CreateAcls v3 of ACLs that differ in their topic."""
    items = b"".join(
        bytes([TOPIC]) + compact(f"topic-{number}") + bytes([LITERAL])
        + compact(f"User:u{number % 1000}") + compact("*") + bytes([READ, ALLOW]) + b"\0"
        for number in range(first, first + count)
    )  # fmt: skip
    return frame(CREATE_ACLS, 3, varint(count + 1) + items + b"\0")


def acl_filter(principal: str | None) -> bytes:
    """Return the fields of a filter by principal only."""
    named = b"\0" if principal is None else compact(principal)
    return bytes([ANY]) + b"\0" + bytes([ANY]) + named + b"\0" + bytes([ANY, ANY])


def describe_acls(principal: str | None) -> bytes:
    """Return a DescribeAcls v3 of one principal's, or of all."""
    return frame(DESCRIBE_ACLS, 3, acl_filter(principal) + b"\0")


def delete_acls(principals: Sequence[str]) -> bytes:
    """Return a DeleteAcls v3 of filters by principal."""
    filters = b"".join(acl_filter(each) + b"\0" for each in principals)
    return frame(DELETE_ACLS, 3, varint(len(principals) + 1) + filters + b"\0")


def create_token() -> bytes:
    """Return a CreateDelegationToken v3 of 0.8 MB."""
    renewer = compact("User") + compact("ab") + b"\0"
    body = b"\0\0" + varint(RENEWERS + 1) + renewer * RENEWERS + struct.pack(">q", -1) + b"\0"
    return frame(CREATE_DELEGATION_TOKEN, 3, body)


@dataclass(frozen=True)
class Tally:
    """What became of an attack's requests."""

    answered: int = 0
    unanswered: int = 0
    """Those whose connection was closed instead, or that waited too long."""

    answer_bytes: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.answered + other.answered,
            self.unanswered + other.unanswered,
            self.answer_bytes + other.answer_bytes,
        )

    def __str__(self) -> str:
        answered = f"{self.answered} answered with {self.answer_bytes / 1_000_000:.1f} MB"
        return answered + (f", {self.unanswered} not" if self.unanswered else "")


def throw_away(client: RawClient) -> int:
    """Read an answer and keep nothing of it; return its bytes; raise EOFError where there is none."""
    begun = client.socket.recv(4, socket.MSG_WAITALL)
    if len(begun) < 4:
        raise EOFError("closed")
    size = left = int.from_bytes(begun)
    while left:
        data = client.socket.recv(min(left, DRAIN_BYTES))
        if not data:
            raise EOFError("closed amid an answer")
        left -= len(data)
    return size


def send_all(side: Side, user: str | None, frames: Sequence[bytes]) -> Tally:
    """Send frames at once on one connection; return when each was answered, or the connection closed."""
    answered = answer_bytes = 0
    with suppress(EOFError, OSError), side.connect(user) as client, ThreadPoolExecutor(max_workers=1) as pool:
        # who is sent answers takes no more requests until they are read
        pool.submit(client.socket.sendall, b"".join(frames))
        try:
            while answered < len(frames):
                answer_bytes += throw_away(client)
                answered += 1
        finally:
            client.socket.shutdown(socket.SHUT_RDWR)
    return Tally(answered, len(frames) - answered, answer_bytes)


def at_once(jobs: Sequence[Callable[[], Tally]]) -> Tally:
    """Do these at once, each on a connection of its own."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        begun = [pool.submit(job) for job in jobs]
        return sum((each.result() for each in begun), Tally())


def before_login(side: Side) -> Tally:
    """Ask without credentials, between handshake and token, from eight connections."""
    handshake = framed(request_bytes(SASL_HANDSHAKE, 1, 1, "attacker", b"\0\x05PLAIN"))
    question = find_coordinator([EMPTY] * BEFORE_LOGIN_KEYS)
    return at_once([partial(send_all, side, None, [handshake, question])] * BEFORE_LOGIN_CLIENTS)


def groups(side: Side) -> Tally:
    """Ask for a hundred thousand groups in 100 KB, as a user without ACLs."""
    distinct = [compact(f"g{number}") for number in range(DISTINCT_GROUPS)]
    each = [
        ask(names) for names in ([EMPTY] * GROUPS, distinct) for ask in (describe_groups, find_coordinator)
    ]
    questions = each * GROUP_ROUNDS
    return sum((send_all(side, NOBODY, [each]) for each in questions), Tally())


def groups_flood(side: Side) -> Tally:
    """Ask for as many groups as may be asked for, again and again from four connections, without ACLs."""
    names = [compact(f"g{number}") for number in range(FLOOD_GROUPS)]
    frames = [describe_groups(names), find_coordinator(names)] * (FLOOD_FRAMES // 2)
    return at_once([partial(send_all, side, NOBODY, frames)] * FLOOD_CLIENTS)


def topic_ids(side: Side) -> Tally:
    """Fetch from thousands of topic ids that do not exist, as a user without ACLs."""
    return sum((send_all(side, NOBODY, [fetch_unknown(count)]) for count in UNKNOWN_TOPICS), Tally())


def fill_acls(side: Side) -> None:
    """Have the many ACLs made."""
    for first in range(0, MANY_ACLS, ACLS_OF_A_REQUEST):
        made = send_all(side, ADMIN, [create_acls(first, min(ACLS_OF_A_REQUEST, MANY_ACLS - first))])
        if made.unanswered:
            raise RuntimeError(f"{side.name} was not filled with {MANY_ACLS} ACLs")
        side.settle()


def acls_described(side: Side) -> Tally:
    """List all ACLs, list by what matches nothing, delete by what matches nothing."""
    questions = (
        describe_acls(None),
        *[describe_acls("User:absent")] * 3,
        delete_acls([f"User:absent-{number}" for number in range(3)]),
    )
    return sum((send_all(side, ADMIN, [each]) for each in questions), Tally())


def acls_created(side: Side) -> Tally:
    """Make ten thousand ACLs from each of four connections."""
    count = ACLS_OF_A_REQUEST // LIGHTER
    frames = [create_acls(next(_CREATIONS) * count, count) for _ in range(CREATORS)]
    return at_once([partial(send_all, side, ADMIN, [each]) for each in frames])


def tokens(side: Side) -> Tally:
    """Make tokens with ninety thousand renewers each, as a user without ACLs."""
    clients = min(TOKENS, TOKEN_CLIENTS)
    each = [create_token()] * (TOKENS // clients)
    return at_once([partial(send_all, side, NOBODY, each)] * clients)


@dataclass(frozen=True)
class Attack:
    """What is done to a side; `prepare` is not measured; `size` is what its figure says."""

    name: str
    run: Callable[[Side], Tally]
    size: int
    prepare: Callable[[Side], None] = lambda _side: None
    asks_by_id: bool = False
    """Whether the bystander asks by topic id: what the attack holds up."""


ATTACKS: Final = (
    Attack("stall-before-login", before_login, BEFORE_LOGIN_KEYS * BEFORE_LOGIN_CLIENTS),
    Attack("stall-groups", groups, GROUPS),
    Attack("stall-groups-flood", groups_flood, FLOOD_CLIENTS * FLOOD_FRAMES * FLOOD_GROUPS),
    Attack("stall-topic-ids", topic_ids, max(UNKNOWN_TOPICS), asks_by_id=True),
    Attack("stall-create-acls", acls_created, CREATORS * ACLS_OF_A_REQUEST // LIGHTER),
    Attack("stall-describe-acls", acls_described, MANY_ACLS, fill_acls),
    # the last, since a broker is busy with the tokens that it keeps ever after
    Attack("stall-tokens", tokens, TOKENS),
)
