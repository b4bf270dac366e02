"""The judge of a guarded cluster judges what has passed, also while clients go on."""

import io
import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i32, i32Timedelta

from kustos.wire import ErrorCode
from testkit.guarded.cluster import Op, Type, acl
from testkit.guarded.raw_client import body_of, framed, request_bytes
from testkit.guarded.traffic_judge import FETCH, Judge
from testkit.late_passage.fields import fetch
from testkit.tap import Tap
from testkit.tap.frames import entity
from testkit.tap.proxy import TappedConnection

VERSION = 12
"""The last that names topics."""

SESSION = 7
ACLS = (acl("alice", Op.READ, Type.TOPIC, "orders"),)


def request(correlation_id: int, **session: int) -> bytes:
    """Return alice's Fetch of one topic."""
    fields: dict[str, Any] = fetch("orders", max_wait_ms=0)
    fields |= {name: i32(value) for name, value in session.items()}
    return framed(request_bytes(FETCH, VERSION, correlation_id, "alice", body_of(FETCH, VERSION, **fields)))


def answer(correlation_id: int) -> bytes:
    """Return an answer without records that keeps the session."""
    made = entity(FETCH, VERSION, EntityType.response)
    buffer = io.BytesIO()
    body = made(
        throttle_time=i32Timedelta.parse(timedelta()),
        error_code=ErrorCode.none,
        session_id=i32(SESSION),
        responses=(),
    )
    entity_writer(made)(buffer, body)
    return framed(struct.pack(">i", correlation_id) + b"\0" + buffer.getvalue())


@pytest.fixture
def clients() -> Iterator[Tap]:
    """A tap that nothing passed."""
    with Tap() as tap:
        yield tap


@pytest.fixture
def upstream() -> Iterator[Tap]:
    """A tap on which a session's first Fetch has passed."""
    with Tap() as tap:
        connection = TappedConnection(0, "broker")
        connection.went_up(request(1, session_id=0, session_epoch=0))
        tap.connections.append(connection)
        yield tap


def test_a_session_that_goes_on_while_it_is_judged_is_the_connections_own(
    clients: Tap, upstream: Tap
) -> None:
    [connection] = upstream.connections
    judge = Judge(frozenset(), "127.0.0.1")

    def goes_on(client_id: str) -> str:
        if len(connection.exchanges) == 1:
            # the judge keeps the first as it was when it looked, without an answer
            connection.exchanges[0] = replace(connection.exchanges[0])
            connection.came_down(answer(1))
            connection.went_up(request(2, session_id=SESSION, session_epoch=1))
        return client_id

    judge.user_of = goes_on
    assert judge.judge(clients, upstream, [ACLS]).violations == []
    assert len(connection.exchanges) == 2
    assert judge.judge(clients, upstream, [ACLS]).violations == []


def test_a_session_of_nobody_is_a_violation(clients: Tap, upstream: Tap) -> None:
    [connection] = upstream.connections
    connection.came_down(answer(1))
    connection.went_up(request(2, session_id=SESSION + 1, session_epoch=1))
    judge = Judge(frozenset(), "127.0.0.1")
    [(client, violation)] = judge.judge(clients, upstream, [ACLS]).violations
    assert (client, violation.rule) == ("alice", "a session is the connection's own")
