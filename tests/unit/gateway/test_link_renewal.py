"""A link whose session is due logs in between two requests; no request is sent before or during the login."""

import asyncio

import pytest

from kustos.auth import SendFrame
from kustos.client import AuthenticationFailedError
from kustos.client.session import Exchange
from testkit.gateway.renewing_broker import RenewingBroker, numbers


async def test_a_request_on_a_link_due_for_renewal_follows_the_login() -> None:
    broker = RenewingBroker()
    await broker.fall_due()
    # an idle link does not log in
    assert broker.logins == []
    broker.send(1)
    assert broker.requests == []
    was_writable = [broker.link.is_writable]
    await broker.settle()
    assert broker.machine.principal is not None
    assert numbers(broker.requests) == [1]
    assert [*was_writable, broker.link.is_writable] == [False, True]
    assert broker.writable == 1
    broker.answer()
    assert broker.taken == [b"\0\0\0\1"]
    # the new session is not due
    assert broker.session.due_at_s is not None
    assert broker.session.due_at_s > asyncio.get_running_loop().time()
    broker.send(2)
    assert numbers(broker.requests) == [2]


async def test_a_login_waits_for_requests_in_flight() -> None:
    broker = RenewingBroker()
    broker.send(1, at_once=True)
    broker.link.throttle(0)
    broker.send(2, at_once=True)
    await broker.fall_due()
    broker.send(3)
    await broker.settle()
    assert (numbers(broker.requests), broker.machine.principal) == ([1, 2], None)
    broker.answer()
    await broker.settle()
    assert (numbers(broker.requests), broker.machine.principal) == ([2], None)
    broker.answer()
    await broker.settle()
    assert broker.machine.principal is not None
    assert numbers(broker.requests) == [3]


async def test_a_partially_sent_request_is_completed_before_the_login() -> None:
    broker = RenewingBroker()
    broker.send(1)
    broker.send(2)
    assert broker.bytes_in
    await broker.fall_due()
    broker.answer()
    await broker.settle()
    assert (numbers(broker.requests), broker.machine.principal) == ([2], None)
    broker.send(3)
    broker.answer()
    await broker.settle()
    assert broker.machine.principal is not None
    assert numbers(broker.requests) == [3]


async def test_a_request_denied_during_the_login_is_not_sent() -> None:
    broker = RenewingBroker()
    await broker.fall_due()
    broker.send(1)
    # it is not at the broker, so that a change need not wait for it
    broker.is_allowed = False
    assert broker.link.until_answered() is None
    await broker.settle()
    assert broker.requests == []
    assert broker.lost == ["a request in flight is no longer allowed"]
    assert broker.pipe.aborted


async def test_a_failed_login_ends_the_link_without_sending_the_request() -> None:
    broker = RenewingBroker(password="another")

    async def log_in(exchange: Exchange) -> int:
        raise AuthenticationFailedError("cannot log in")

    broker.session._log_in = log_in  # type: ignore[misc]
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    assert broker.lost == ["the session with upstream could not be prolonged: cannot log in"]
    assert (broker.requests, broker.pipe.aborted) == ([], True)


@pytest.mark.parametrize("end", ["close", "lost"])
async def test_a_link_that_ends_during_a_login_ends_the_login(end: str) -> None:
    broker = RenewingBroker(answers_logins=False)
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    assert len(broker.logins) == 1
    if end == "close":
        broker.link.close()
        assert broker.pipe.closing
    else:
        broker.link.connection_lost(None)
        assert broker.lost == ["upstream closed the connection"]
    await broker.settle()
    assert broker.requests == []
    assert broker.session.due_at_s is not None


async def test_the_login_answer_is_read_while_the_client_does_not_read() -> None:
    broker = RenewingBroker()
    await broker.fall_due()
    broker.send(1)
    broker.link.pause_reading()
    reads = [broker.pipe.reads]
    await broker.settle()
    assert numbers(broker.requests) == [1]
    reads.append(broker.pipe.reads)
    broker.link.resume_reading()
    assert [*reads, broker.pipe.reads] == [True, False, True]


@pytest.mark.parametrize("wrong", [b"\0\0\0\4\0\0\0\1", b"\0\0\0\0", b"\x7f\xff\xff\xff"])
async def test_any_other_answer_during_a_login_ends_the_link(wrong: bytes) -> None:
    broker = RenewingBroker(answers_logins=False)
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    broker.link.data_received(wrong)
    await broker.settle()
    assert len(broker.lost) == 1
    assert "upstream broke the protocol" in broker.lost[0]
    assert (broker.requests, broker.taken, broker.pipe.aborted) == ([], [], True)


async def test_a_duplicate_login_answer_ends_the_link() -> None:
    broker = RenewingBroker(answers_logins=False)
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    [effect] = broker.machine.receive(broker.logins.pop())
    assert isinstance(effect, SendFrame)
    broker.link.data_received(effect.data + effect.data)
    await broker.settle()
    assert broker.lost == ["upstream broke the protocol: an answer came that no request awaits"]
    assert broker.requests == []


async def test_the_end_of_throttling_starts_no_second_login() -> None:
    broker = RenewingBroker(answers_logins=False)
    broker.send(1, at_once=True)
    broker.link.throttle(0)
    broker.send(2, at_once=True)
    await broker.fall_due()
    broker.send(3)
    for _ in range(2):
        # each answer tells of throttling
        broker.link.throttle(1)
        broker.answer()
    async with asyncio.timeout(60):
        while not broker.logins:
            await broker.settle()
    first = broker.link._renewal
    assert first is not None
    task = first._task
    broker.link._unthrottle()
    assert first._task is task
    await broker.settle()
    assert len(broker.logins) == 1
