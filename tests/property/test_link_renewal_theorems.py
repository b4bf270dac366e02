"""Requests leave a link once and in order, and logins at the required places, for any events."""

import asyncio
from enum import Enum, auto

from hypothesis import given
from hypothesis import strategies as st

from testkit.gateway.renewing_broker import RenewingBroker, numbers


class Step(Enum):
    """What happens next."""

    SEND = auto()
    SEND_PIPELINED = auto()
    ANSWER = auto()
    FALL_DUE = auto()
    TURN = auto()
    PAUSE = auto()
    RESUME = auto()


@given(st.lists(st.sampled_from(Step), max_size=40))
def test_a_request_on_a_due_session_arrives_after_a_login_and_none_is_lost(
    steps: list[Step],
) -> None:
    asyncio.run(played(steps))


async def played(steps: list[Step]) -> None:
    """Play; the broker itself asserts that no request comes amid a login, and no login amid requests."""
    broker = RenewingBroker()
    logins_needed: list[int] = []
    times_due = 0

    def answer() -> None:
        broker.answer()
        broker.link.throttle(0)

    for step in steps:
        match step:
            case Step.SEND | Step.SEND_PIPELINED if broker.link.is_writable:
                logins_needed.append(times_due if broker.is_due else 0)
                broker.send(len(logins_needed) - 1, at_once=step is Step.SEND_PIPELINED)
            case Step.ANSWER if broker.requests:
                answer()
            case Step.FALL_DUE if not broker.is_due:
                await broker.fall_due()
                times_due += 1
            case Step.TURN:
                await broker.settle()
            case Step.PAUSE:
                broker.link.pause_reading()
            case Step.RESUME:
                broker.link.resume_reading()
            case _:
                pass
    await broker.settle()
    while broker.requests:
        answer()
        await broker.settle()
    sent = list(range(len(logins_needed)))
    assert [number for number, _ in broker.arrived] == sent
    assert numbers(broker.taken) == sent
    assert all(done >= logins_needed[number] for number, done in broker.arrived)
    assert broker.logins_done <= times_due
    assert broker.lost == []
    assert broker.link.is_writable
