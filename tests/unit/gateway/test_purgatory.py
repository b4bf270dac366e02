"""Pending changes of an authorizer: awaited with a timeout, and counted."""

import asyncio
import gc
from typing import Any

import pytest

from kustos.authorizer import KafkaApiError
from kustos.gateway.apis import purgatory as module
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.wire import ErrorCode

SOON_MS = 20
LATE_MS = 60_000


def purgatory(timeout_ms: int = LATE_MS) -> DelayedFuturePurgatory:
    return DelayedFuturePurgatory(ALTER_ACLS, timeout_ms)


def futures(count: int) -> list[asyncio.Future[Any]]:
    return [asyncio.get_running_loop().create_future() for _ in range(count)]


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.behaviour("B213")
async def test_a_completed_operation_is_answered_immediately() -> None:
    made = purgatory()
    done = futures(2)
    done[0].set_result("a")
    done[1].set_exception(OSError("b"))
    with pytest.raises(StopIteration) as ended:
        made.outcomes(done).send(None)
    first, second = ended.value.value
    assert first == "a"
    assert isinstance(second, OSError)
    assert await made.outcomes([]) == []


async def test_operations_are_counted_while_they_wait() -> None:
    made = purgatory()
    first, second, third = futures(3)
    one = asyncio.ensure_future(made.outcomes([first, second]))
    two = asyncio.ensure_future(made.outcomes([third]))
    await turn()
    assert (made.num_delayed_operations, made.purgatory_size) == (2, 2)
    second.set_result(2)
    third.set_result(3)
    assert await two == [3]
    await turn()
    assert (made.num_delayed_operations, made.purgatory_size) == (1, 1)
    first.set_result(1)
    assert await one == [1, 2]
    await turn()
    assert (made.num_delayed_operations, made.purgatory_size) == (0, 0)


async def test_late_operations_time_out_with_kafkas_message_and_others_keep_their_result() -> None:
    made = purgatory(SOON_MS)
    late, done = futures(2)
    done.set_result("done")
    first, second = await made.outcomes([late, done])
    assert second == "done"
    assert isinstance(first, KafkaApiError)
    assert first.code is ErrorCode.request_timed_out
    assert first.message == f"Request has been timed out after {SOON_MS} ms"
    assert late.cancelled()


async def test_a_client_disconnect_does_not_cancel_the_change() -> None:
    made = purgatory()
    [change] = futures(1)
    asked = asyncio.ensure_future(made.outcomes([change]))
    await turn()
    asked.cancel()
    await turn()
    assert not change.cancelled()
    assert made.num_delayed_operations == 1
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unseen.append(context))
    change.set_exception(OSError("nobody looks"))
    await turn()
    assert made.num_delayed_operations == 0
    del change, asked
    gc.collect()
    assert unseen == []


async def test_operations_beyond_the_limit_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELAYED_OPERATIONS_MAX", 1)
    made = purgatory()
    [waiting] = futures(1)
    asked = asyncio.ensure_future(made.outcomes([waiting]))
    await turn()
    refused = await made.outcomes(futures(2))
    assert [each.code for each in refused] == [ErrorCode.request_timed_out] * 2
    waiting.set_result(1)
    assert await asked == [1]


async def test_close_cancels_waiting_operations() -> None:
    made = purgatory()
    [change] = futures(1)
    asked = asyncio.ensure_future(made.outcomes([change]))
    await turn()
    await made.close()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert change.cancelled()
    assert made.num_delayed_operations == 0
