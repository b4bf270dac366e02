"""Work off the event loop runs one at a time, even if its callers disconnect."""

import asyncio
import threading

import pytest

from kustos.gateway.store.large_work import LARGE_ITEMS_MIN, Interruption, LargeWork, WorkInterruptedError
from testkit.waiting import NEVER_AWAITED

WAIT_S = 60.0


async def test_few_items_are_worked_on_at_once_and_many_on_another_thread() -> None:
    large, here = LargeWork(), threading.get_ident()
    assert await large.run(lambda _: threading.get_ident(), LARGE_ITEMS_MIN - 1) == here
    assert await large.run(lambda _: threading.get_ident(), LARGE_ITEMS_MIN) != here


async def test_exceptions_of_the_work_reach_its_caller() -> None:
    def fail(_: Interruption) -> None:
        raise KeyError("no")

    large = LargeWork()
    for items in (1, LARGE_ITEMS_MIN):
        with pytest.raises(KeyError):
            await large.run(fail, items)
    assert await large.run(lambda _: 7, LARGE_ITEMS_MIN) == 7


@pytest.mark.filterwarnings(*NEVER_AWAITED)
async def test_the_next_turn_waits_for_the_work_of_a_canceled_caller() -> None:
    begun, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    def first(interruption: Interruption) -> None:
        try:
            begun.set()
            assert go_on.wait(WAIT_S)
            list(interruption.until_it_comes("abc"))
        except WorkInterruptedError:
            ended.append("first")
            raise

    large = LargeWork()
    one = asyncio.ensure_future(large.run(first, LARGE_ITEMS_MIN))
    assert await asyncio.to_thread(begun.wait, WAIT_S)
    one.cancel()
    other = asyncio.ensure_future(large.run(lambda _: ended.append("second"), LARGE_ITEMS_MIN))
    await asyncio.sleep(0)
    assert ended == []
    go_on.set()
    await asyncio.wait([one, other])
    assert one.cancelled()
    assert ended == ["first", "second"]
