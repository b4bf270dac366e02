"""The runs with faults notice what must not be: each promise is broken here once."""

import re
import socket
import struct
import zlib
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import AclBinding
from testkit.faults.clients.notes import Notes, payload
from testkit.faults.ledger import Ledger, Place, held_against, payload_id, payload_topic, unread
from testkit.faults.observers import LATE_S, Decided, DecisionKey, Paired, Timeline
from testkit.faults.relay import Relays
from testkit.faults.run import unaudited
from testkit.faults.schedule import LANES, Side, faults
from testkit.guarded.cluster import Op, Type, acl
from testkit.guarded.raw_client import body_of, framed, request_bytes
from testkit.late_passage import fields
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

METADATA, JOIN_GROUP, CREATE_ACLS = 3, 11, 30
DESCRIBES = acl("alice", Op.DESCRIBE, Type.TOPIC, "orders")


@pytest.mark.parametrize("lane", LANES, ids=lambda lane: lane.name)
def test_a_seed_repeats_its_faults(lane: Any) -> None:
    assert list(islice(faults(5, 0, lane), 50)) == list(islice(faults(5, 0, lane), 50))
    assert list(islice(faults(5, 0, lane), 50)) != list(islice(faults(5, 1, lane), 50))
    assert {each.kind for each in islice(faults(5, 0, lane), 200)} == set(lane.weights)


def metadata_of(topic: str, client_id: str, correlation_id: int = 1) -> bytes:
    return request_bytes(
        METADATA, 12, correlation_id, client_id, body_of(METADATA, 12, **fields.metadata(topic))
    )


class Watched:
    """A connection to a broker under watch."""

    def __init__(self, *acls: AclBinding) -> None:
        self.reported: list[str] = []
        self.timeline = Timeline(acls, LOOPBACK, frozenset({"User:admin"}))
        self.decisions: Counter[DecisionKey] = Counter()
        self.seen = Decided(self.reported.append, self.timeline, self.decisions)


def test_a_request_that_an_acl_allows_is_proper_and_counted() -> None:
    watched = Watched(DESCRIBES)
    watched.seen.went_up(metadata_of("orders", "alice:x"), 0.0)
    assert watched.reported == []
    assert watched.decisions == {("alice", METADATA, "DESCRIBE", "TOPIC", "orders"): 1}


@pytest.mark.parametrize("client_id", ["mallory:x", "alicex"])
def test_a_request_that_nothing_allows_is_reported(client_id: str) -> None:
    watched = Watched(DESCRIBES)
    watched.seen.went_up(metadata_of("orders", client_id), 0.0)
    assert len(watched.reported) == 1


def test_what_kustos_does_not_ask_for_itself_is_reported() -> None:
    watched = Watched(DESCRIBES)
    creation = request_bytes(
        CREATE_ACLS, 3, 1, "kustos", body_of(CREATE_ACLS, 3, **fields.create_acls(DESCRIBES))
    )
    watched.seen.went_up(creation, 0.0)
    assert watched.reported == ["kustos asks API 30 for itself"]


def test_a_set_of_acls_counts_until_the_next_one_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("testkit.faults.observers.time.monotonic", lambda: now[0])
    watched = Watched(DESCRIBES)
    watched.timeline.begin([])
    now[0] = 110.0
    watched.seen.went_up(metadata_of("orders", "alice:x"), 110.0)
    watched.timeline.acknowledge()
    watched.seen.went_up(metadata_of("orders", "alice:x", 2), 110.0 + LATE_S)
    assert watched.reported == []
    watched.seen.went_up(metadata_of("orders", "alice:x", 3), 110.1 + LATE_S)
    assert len(watched.reported) == 1


def test_an_answer_to_another_request_is_reported() -> None:
    reported: list[str] = []
    seen = Paired(reported.append)
    for number in (7, 8, 9):
        seen.went_up(struct.pack(">hhi", METADATA, 12, number), 0.0)
    seen.came_down(struct.pack(">i", 7))
    assert reported == []
    seen.came_down(struct.pack(">i", 9))
    assert len(reported) == 1


def test_an_answer_without_a_request_is_reported() -> None:
    reported: list[str] = []
    Paired(reported.append).came_down(struct.pack(">i", 7))
    assert len(reported) == 1


@pytest.mark.parametrize("resets", [False, True])
def test_a_line_is_held_until_who_connected_ends_it_whatever_the_target_does(resets: bool) -> None:
    with socket.create_server((LOOPBACK, 0)) as target, Relays() as relays:
        port = relays.relay(Side.UPSTREAM, target.getsockname(), lambda: Paired(relays.report))

        def held() -> int:
            return len(relays.held(Side.UPSTREAM))

        with (
            socket.create_connection((LOOPBACK, port)) as leaked,
            target.accept()[0],
            socket.create_connection((LOOPBACK, port)) as closed,
            target.accept()[0],
        ):
            wait_until(lambda: held() == 2, what="both are held")
            if resets:
                closed.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            closed.close()
            wait_until(lambda: held() == 1, what="the one that was not closed is held")
            leaked.close()
            wait_until(lambda: held() == 0, what="none is held")


def test_a_line_says_which_half_ended_and_what_has_no_answer() -> None:
    with socket.create_server((LOOPBACK, 0)) as target, Relays() as relays:
        port = relays.relay(Side.UPSTREAM, target.getsockname(), lambda: Paired(relays.report))

        def told() -> list[str]:
            return [re.sub(r"\d+", "n", str(line)) for line in relays.open_lines(Side.UPSTREAM)]

        with socket.create_connection((LOOPBACK, port)) as client, target.accept()[0]:
            client.sendall(framed(struct.pack(">hhi", JOIN_GROUP, 3, 1)))
            client.close()
            line = "upstream line of n s, upward half ended n s ago, no answer to JoinGroup"
            wait_until(told, holds=lambda lines: lines == [line], what="the line says so")
        wait_until(told, holds=lambda lines: not lines, what="the line is gone")


def test_a_request_without_a_decision_in_the_audit_log_is_reported() -> None:
    key = ("alice", METADATA, "DESCRIBE", "TOPIC", "orders")
    assert unaudited({key: 2}, {key: 2}) == []
    assert len(unaudited({key: 2}, {key: 1})) == 1
    assert len(unaudited({key: 1}, {})) == 1


def noted(tmp_path: Path, *lines: tuple[object, ...]) -> Ledger:
    note = Notes(str(tmp_path / "program.notes"))
    for line in lines:
        note(*map(str, line))
    ledger = Ledger()
    ledger.add(tmp_path / "program.notes")
    return ledger


ONE = payload("p-1", "t", 3)
TWO = payload("p-2", "t", 3)
SENT = [("S", "p-1", "t", "-"), ("S", "p-2", "t", "-"), ("A", "p-1", "t", 0, 5)]
IN_ONE = [("S", "p-1", "t", "tx"), ("S", "p-2", "t", "tx")]


def test_a_payload_says_what_it_is() -> None:
    assert (payload_id(ONE), payload_topic(ONE)) == ("p-1", "t")
    assert payload_id(ONE[:-1] + b"g") is None
    assert payload_id(b"") is None


@pytest.mark.parametrize(
    ("lines", "logs"),
    [
        (SENT, {("t", 0, 5): ONE}),
        (SENT, {("t", 0, 5): ONE, ("t", 0, 6): TWO}),
        ([*IN_ONE, ("C", "tx")], {("t", 0, 5): ONE, ("t", 1, 6): TWO}),
        ([*IN_ONE, ("X", "tx")], {}),
        (IN_ONE, {}),
        (IN_ONE, {("t", 0, 5): ONE, ("t", 1, 6): TWO}),
        ([*SENT, ("R", "t", 0, 5, zlib.crc32(ONE))], {("t", 0, 5): ONE}),
    ],
)
def test_what_was_promised_holds(
    tmp_path: Path, lines: list[tuple[object, ...]], logs: dict[Place, bytes]
) -> None:
    assert held_against(noted(tmp_path, *lines), logs) == []


@pytest.mark.parametrize(
    ("lines", "logs", "what"),
    [
        (SENT, {}, "lost"),
        (SENT, {("t", 0, 5): ONE, ("t", 0, 6): ONE}, "doubled"),
        (SENT, {("t", 0, 5): ONE, ("t", 0, 6): TWO, ("t", 1, 6): TWO}, "doubled"),
        (SENT, {("t", 0, 6): ONE}, "another place"),
        (SENT, {("t", 0, 5): ONE, ("t", 0, 6): payload("q", "t", 1)}, "nobody sent"),
        (SENT, {("t", 0, 5): ONE, ("u", 0, 6): TWO}, "nobody sent"),
        (SENT, {("t", 0, 5): ONE, ("t", 0, 6): TWO[:-1]}, "nobody sent"),
        ([*IN_ONE, ("C", "tx")], {("t", 0, 5): ONE}, "committed"),
        ([*IN_ONE, ("X", "tx")], {("t", 0, 5): ONE}, "aborted"),
        (IN_ONE, {("t", 0, 5): ONE}, "no known end"),
        ([*SENT, ("R", "t", 0, 5, 1)], {("t", 0, 5): ONE}, "something else"),
    ],
)
def test_a_broken_promise_is_told(
    tmp_path: Path, lines: list[tuple[object, ...]], logs: dict[Place, bytes], what: str
) -> None:
    found = held_against(noted(tmp_path, *lines), logs)
    assert len(found) == 1
    assert what in found[0]


def test_what_a_group_has_not_read_is_told(tmp_path: Path) -> None:
    ledger = noted(tmp_path, ("R", "t", 0, 5, 1))
    logs = {("t", 0, 5): ONE, ("t", 0, 6): TWO, ("u", 0, 0): TWO}
    assert unread("t", ledger, logs, [("t", 0, 6)]) == []
    assert unread("t", ledger, logs, []) == ["not read by its group: `('t', 0, 6)`"]


def test_a_note_that_was_not_written_to_its_end_was_never_said(tmp_path: Path) -> None:
    (tmp_path / "p.notes").write_text("S\tp-1\tt\t-\nA\tp-1\tt\t0\t1")
    ledger = Ledger()
    ledger.add(tmp_path / "p.notes")
    assert ledger.acknowledged == {}
