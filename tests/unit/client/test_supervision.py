"""A background task survives its failures, is counted, and ends only when it is cancelled or done."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from kustos.client import supervision
from kustos.client.supervision import CALLBACK, FAILURES, callback_failed, one_shot, supervised


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_RESTART_S", 0.0)
    monkeypatch.setattr(supervision, "LAST_RESTART_S", 0.01)


class UnshowableError(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no")

    __repr__ = __str__


async def cancelled() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def raising(error: BaseException) -> None:
    raise error


FAULTS: list[Callable[[], object]] = [
    lambda: raising(ValueError("a bug")),
    lambda: raising(UnshowableError()),
    lambda: raising(ExceptionGroup("two", [ValueError(), OSError()])),
    lambda: raising(MemoryError()),
    lambda: raising(TimeoutError()),
    # a future that it waited for was cancelled, not the task
    cancelled,
]


async def test_it_runs_again_after_any_exception_and_ends_when_it_is_done() -> None:
    faults, before = iter(FAULTS), FAILURES["test"]

    async def body() -> None:
        for fault in faults:
            await fault()  # type: ignore[misc]

    with capture_logs() as logs:
        await supervised("test", body)
    assert FAILURES["test"] - before == len(FAULTS)
    assert [each["task"] for each in logs] == ["test"] * len(FAULTS)


async def test_a_log_that_fails_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "LOG", None)
    runs = iter([OSError(), None])

    async def body() -> None:
        if (error := next(runs)) is not None:
            raise error

    await supervised("test", body)
    callback_failed(asyncio.get_running_loop(), {"message": "it broke"})


async def test_cancelling_ends_it_also_between_two_runs() -> None:
    entered = asyncio.Event()

    async def body() -> None:
        entered.set()
        await asyncio.get_running_loop().create_future()

    async def broken() -> None:
        entered.set()
        raise ValueError

    for each in (body, broken):
        entered.clear()
        task = supervised("test", each)
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_one_that_must_not_run_twice_reports_its_failure() -> None:
    before, error = FAILURES["test"], ValueError("a bug")
    reported: list[BaseException] = []
    task = one_shot("test", raising(error), reported.append)
    await asyncio.wait((task,))
    await asyncio.sleep(0)
    assert reported == [error]
    assert FAILURES["test"] == before + 1


async def test_one_whose_work_was_cancelled_elsewhere_has_failed() -> None:
    """Otherwise a worker, or a client, would wait for it for ever."""
    before, reported = FAILURES["test"], list[BaseException]()
    task = one_shot("test", cancelled(), reported.append)
    await asyncio.wait((task,))
    await asyncio.sleep(0)
    assert [type(error) for error in reported] == [asyncio.CancelledError]
    assert FAILURES["test"] == before + 1


async def test_one_that_is_cancelled_has_not_failed() -> None:
    before, reported = FAILURES["test"], list[BaseException]()
    task = one_shot("test", raising(ValueError()), reported.append)
    task.cancel()
    await asyncio.wait((task,))
    await asyncio.sleep(0)
    assert (reported, FAILURES["test"]) == ([], before)


async def test_failures_of_callbacks_are_counted_and_logged() -> None:
    loop, before, done = asyncio.get_running_loop(), FAILURES[CALLBACK], asyncio.Event()
    loop.set_exception_handler(callback_failed)
    with capture_logs() as logs:
        loop.call_soon(lambda: 1 // 0)
        loop.call_soon(done.set)
        await done.wait()
    loop.set_exception_handler(None)
    assert FAILURES[CALLBACK] == before + 1
    (line,) = logs
    assert isinstance(line["exc_info"], ZeroDivisionError)
