"""Blocking login steps run off the event loop and block only their own group."""

import asyncio
import threading
from functools import partial

import pytest

from kustos.auth import CallbackError, LoginStep, RunInThread, SaslMechanismError
from kustos.auth.mechanisms import HASHING, MechanismStep, Proven
from kustos.gateway.listener.login_threads import CALLBACK_THREADS, LOGIN_THREADS, LoginThreads

PATIENCE_S = 60.0


async def outcomes_of(threads: LoginThreads, *steps: LoginStep) -> list[LoginStep]:
    ended: list[LoginStep] = []
    all_ended = asyncio.get_running_loop().create_future()

    def resume(outcome: LoginStep) -> None:
        assert threading.current_thread() is threading.main_thread()
        ended.append(outcome)
        if len(ended) == len(steps):
            all_ended.set_result(None)

    for step in steps:
        threads.run(RunInThread(step), resume)
    await asyncio.wait_for(all_ended, PATIENCE_S)
    return ended


async def test_results_and_exceptions_of_a_step_arrive_on_the_loop() -> None:
    def refuse() -> MechanismStep:
        raise SaslMechanismError("no")

    threads = LoginThreads()
    [proven] = await outcomes_of(threads, lambda: Proven(b"", threading.current_thread().name))
    step = proven()
    assert isinstance(step, Proven)
    assert step.authorization_id.startswith("login")
    [refused] = await outcomes_of(threads, refuse)
    with pytest.raises(SaslMechanismError, match="no"):
        refused()
    threads.close()


async def test_the_loop_runs_while_all_threads_are_busy_and_all_steps_end() -> None:
    release = threading.Event()
    held = threading.Barrier(LOGIN_THREADS + 1)

    def hold() -> MechanismStep:
        if not release.is_set():
            held.wait(PATIENCE_S)
            release.wait(PATIENCE_S)
        return Proven(b"", "x")

    threads = LoginThreads()
    waiting = asyncio.ensure_future(outcomes_of(threads, *[hold] * (2 * LOGIN_THREADS)))
    # the loop runs this while all threads of logins are held
    await asyncio.to_thread(held.wait, PATIENCE_S)
    assert not waiting.done()
    release.set()
    assert len(await waiting) == 2 * LOGIN_THREADS
    threads.close()


async def test_hashing_uses_one_thread_of_its_own() -> None:
    release, at_once, most = threading.Event(), 0, 0

    def hash_for_long() -> MechanismStep:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        release.wait(PATIENCE_S)
        at_once -= 1
        return Proven(b"", "x")

    threads, ended = LoginThreads(), asyncio.Event()
    left = 2 * LOGIN_THREADS

    def resume(_: LoginStep) -> None:
        nonlocal left
        left -= 1
        if not left:
            ended.set()

    for _ in range(left):
        threads.run(RunInThread(hash_for_long, HASHING), resume)
    # steps of all other kinds run meanwhile
    assert len(await outcomes_of(threads, *[lambda: Proven(b"", "y")] * LOGIN_THREADS)) == LOGIN_THREADS
    assert left == 2 * LOGIN_THREADS
    release.set()
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    assert most == 1
    threads.close()


async def test_queued_steps_are_not_started_after_close() -> None:
    release, begun = threading.Event(), threading.Barrier(LOGIN_THREADS + 1)
    resumed: list[LoginStep] = []

    def hold() -> MechanismStep:
        begun.wait(PATIENCE_S)
        release.wait(PATIENCE_S)
        return Proven(b"", "x")

    started: list[int] = []

    def begin() -> MechanismStep:
        started.append(1)
        return Proven(b"", "x")

    threads = LoginThreads()
    for _ in range(LOGIN_THREADS):
        threads.run(RunInThread(hold), lambda _: None)
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    threads.run(RunInThread(begin), resumed.append)
    threads.close()
    release.set()
    await asyncio.sleep(0)
    assert (started, resumed) == ([], [])


@pytest.mark.parametrize(
    ("group", "timeout_ms", "busy"),
    [("", None, LOGIN_THREADS), (HASHING, None, 1), ("own", 1_000_000, CALLBACK_THREADS)],
)
async def test_a_queued_step_is_canceled_and_a_running_one_is_not(
    group: str, timeout_ms: int | None, busy: int
) -> None:
    release, begun = threading.Event(), threading.Barrier(busy + 1)
    resumed: list[str] = []
    ran: list[str] = []

    def hold() -> MechanismStep:
        begun.wait(PATIENCE_S)
        release.wait(PATIENCE_S)
        return Proven(b"", "x")

    def begin(name: str) -> MechanismStep:
        ran.append(name)
        return Proven(b"", "x")

    threads, over = LoginThreads(), asyncio.Event()
    cancels = [
        threads.run(RunInThread(hold, group, timeout_ms), lambda _: resumed.append("held"))
        for _ in range(busy)
    ]
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    cancel_waiting = threads.run(
        RunInThread(partial(begin, "left"), group, timeout_ms), lambda _: resumed.append("left")
    )
    threads.run(RunInThread(partial(begin, "stayed"), group, timeout_ms), lambda _: over.set())
    cancels[0]()
    cancel_waiting()
    release.set()
    await asyncio.wait_for(over.wait(), PATIENCE_S)
    await asyncio.sleep(0)
    cancel_waiting()
    assert ran == ["stayed"]
    assert set(resumed) == {"held"}
    threads.close()


async def ended(threads: LoginThreads, step: LoginStep, group: str, timeout_ms: int) -> LoginStep:
    outcome: asyncio.Future[LoginStep] = asyncio.get_running_loop().create_future()
    threads.run(RunInThread(step, group, timeout_ms), outcome.set_result)
    return await asyncio.wait_for(outcome, PATIENCE_S)


async def test_a_hanging_callback_times_out_and_its_late_result_is_ignored() -> None:
    release, late = threading.Event(), threading.Event()

    def hang() -> MechanismStep:
        release.wait(PATIENCE_S)
        late.set()
        return Proven(b"", "x")

    threads = LoginThreads()
    outcome = await ended(threads, hang, "a", 100)
    with pytest.raises(CallbackError, match="no answer within 100 ms"):
        outcome()
    release.set()
    await asyncio.to_thread(late.wait, PATIENCE_S)
    # the result of the step reaches the loop and is ignored
    proven = (await ended(threads, lambda: Proven(b"", "y"), "a", 60_000))()
    assert isinstance(proven, Proven)
    threads.close()


async def test_hanging_steps_block_only_their_own_group() -> None:
    release = threading.Event()

    def hang() -> MechanismStep:
        release.wait(PATIENCE_S)
        return Proven(b"", "x")

    threads = LoginThreads()
    hanging = [asyncio.ensure_future(ended(threads, hang, "a", 60_000)) for _ in range(CALLBACK_THREADS)]
    await asyncio.sleep(0)
    with pytest.raises(CallbackError, match="no answer"):
        (await ended(threads, lambda: Proven(b"", "x"), "a", 100))()
    assert isinstance((await ended(threads, lambda: Proven(b"", "x"), "b", 60_000))(), Proven)
    [own] = await outcomes_of(threads, lambda: Proven(b"", "x"))
    assert isinstance(own(), Proven)
    release.set()
    for each in hanging:
        assert isinstance((await each)(), Proven)
    assert isinstance((await ended(threads, lambda: Proven(b"", "x"), "a", 60_000))(), Proven)
    threads.close()


async def test_a_system_exit_in_a_step_ends_the_login() -> None:
    def leave() -> MechanismStep:
        raise SystemExit("secret")

    threads = LoginThreads()
    with pytest.raises(CallbackError, match=r"raised SystemExit$"):
        (await ended(threads, leave, "a", 60_000))()
    threads.close()
