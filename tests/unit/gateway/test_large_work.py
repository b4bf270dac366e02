"""Work off the event loop: one at a time, whatever becomes of those who asked for it."""

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


async def test_what_the_work_raises_reaches_who_waits_for_it() -> None:
    def fail(_: Interruption) -> None:
        raise KeyError("no")

    large = LargeWork()
    for items in (1, LARGE_ITEMS_MIN):
        with pytest.raises(KeyError):
            await large.run(fail, items)
    assert await large.run(lambda _: 7, LARGE_ITEMS_MIN) == 7


@pytest.mark.filterwarnings(*NEVER_AWAITED)
async def test_nobody_has_a_turn_before_the_work_of_one_who_went_away_has_ended() -> None:
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
