"""A key set is refreshed outside the event loop, keeps its keys after failures, and limits its requests."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kustos.client.oauth import EndpointError, JwksSettings, ProviderEndpoint, RefreshingKeys
from kustos.client.oauth.http import ANSWER_MAX_BYTES
from kustos.client.oauth.keys import MISSING_KEY_IDS_MAX
from kustos.runtime import SystemClock
from testkit.bearer_tokens import jwks, public
from testkit.clocks import ManualClock
from testkit.http_provider import Provider

NEVER_MS = 2**31 - 1


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        running.body = jwks(public("rsa-1"))
        yield running


@asynccontextmanager
async def running(url: str, **settings: Any) -> AsyncIterator[RefreshingKeys]:
    given = {"refresh_ms": NEVER_MS, "retry_backoff_ms": 1, "retry_backoff_max_ms": 5} | settings
    keys = RefreshingKeys(JwksSettings(ProviderEndpoint(url, 60_000, 60_000), **given), SystemClock())
    keys.start()
    try:
        yield keys
    finally:
        await keys.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.to_thread(threading.Event().wait, 0.005)


def ids(keys: RefreshingKeys) -> list[str | None]:
    return [each.key_id for each in keys.keys.keys]


async def test_the_first_keys_come_at_the_start_and_changed_ones_on_schedule(provider: Provider) -> None:
    async with running(provider.url, refresh_ms=100) as keys:
        assert (keys.is_loaded, keys.keys.keys) == (False, ())
        await until(lambda: keys.is_loaded)
        assert ids(keys) == ["rsa-1"]
        provider.body = jwks(public("rsa-1"), public("rsa-2"))
        await until(lambda: ids(keys) == ["rsa-1", "rsa-2"])
    assert provider.requests[0][:2] == ("GET", "/path?x=1")


@pytest.mark.parametrize("broken", ["status", "text", "length"])
async def test_a_failure_keeps_the_old_keys_until_it_is_over(provider: Provider, broken: str) -> None:
    async with running(provider.url, refresh_ms=100) as keys:
        await until(lambda: keys.is_loaded)
        good = provider.body
        if broken == "status":
            provider.status = 500
        provider.body = {"status": good, "text": b"{}", "length": b" " * (ANSWER_MAX_BYTES + 1)}[broken]
        seen = len(provider.requests)
        await until(lambda: len(provider.requests) > seen + 3)
        assert ids(keys) == ["rsa-1"]
        provider.status, provider.body = 200, jwks(public("rsa-2"))
        await until(lambda: ids(keys) == ["rsa-2"])


@pytest.mark.behaviour("B325")
async def test_an_unknown_key_id_brings_the_keys_sooner(provider: Provider) -> None:
    async with running(provider.url) as keys:
        await until(lambda: keys.is_loaded)
        provider.body = jwks(public("rsa-2"))
        assert keys.miss("rsa-2")
        await until(lambda: ids(keys) == ["rsa-2"])
        # it came, so that it may be asked for again should it go
        assert keys.miss("rsa-2")


@pytest.mark.behaviour("B325")
def test_one_unknown_key_id_brings_one_refresh_a_minute_and_few_are_remembered() -> None:
    clock = ManualClock()
    keys = RefreshingKeys(JwksSettings(ProviderEndpoint("http://127.0.0.1:1/")), clock)
    assert keys.miss("a")
    assert not keys.miss("a")
    clock.now_ms += 59_999
    assert not keys.miss("a")
    clock.now_ms += 1
    assert keys.miss("a")
    for number in range(MISSING_KEY_IDS_MAX):
        assert keys.miss(f"k{number}")
    assert keys.miss("a")
    assert len(keys._missing) == MISSING_KEY_IDS_MAX


@pytest.mark.behaviour("B325")
async def test_a_flood_of_unknown_key_ids_brings_one_refresh_for_each_interval(provider: Provider) -> None:
    async with running(provider.url, retry_backoff_max_ms=NEVER_MS) as keys:
        await until(lambda: keys.is_loaded)
        for number in range(1000):
            keys.miss(f"k{number}")
            await asyncio.sleep(0)
        assert len(provider.requests) == 1


@pytest.mark.behaviour("B327")
async def test_a_file_is_read_again_after_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "key set.json"
    async with running(file.as_uri()) as keys:
        await until(lambda: keys._failures)
        file.write_bytes(jwks(public("ec256-1")))
        await until(lambda: ids(keys) == ["ec256-1"])


def test_a_loop_ends_while_a_request_is_under_way(provider: Provider) -> None:
    held, free = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        held.set()
        free.wait(60)

    provider.behave = hold

    async def ask() -> None:
        async with running(provider.url):
            await asyncio.to_thread(held.wait, 60)

    asyncio.run(ask())
    assert not free.is_set()
    free.set()


def test_no_redirect_is_followed(provider: Provider) -> None:
    provider.status, provider.headers = 302, {"Location": provider.url + "&again"}
    with pytest.raises(EndpointError, match="HTTP status 302") as caught:
        ProviderEndpoint(provider.url).request(None)
    assert not caught.value.may_pass
    assert len(provider.requests) == 1


def test_a_provider_that_sends_slowly_is_given_up(provider: Provider) -> None:
    def trickle(handler: Any) -> None:
        handler.send_response(200)
        handler.end_headers()
        pause = threading.Event()
        with suppress(OSError):
            while True:
                handler.wfile.write(b" ")
                handler.wfile.flush()
                pause.wait(0.02)

    provider.behave = trickle
    # whether the one part that is late or the whole is noticed first depends on the machine
    with pytest.raises(EndpointError, match=r"took longer than|timed out"):
        ProviderEndpoint(provider.url, 500, 500).request(None)


@pytest.mark.parametrize(
    "begins",
    [b"", b"HTTP", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n"],
    ids=["nothing", "status", "headers", "body"],
)
def test_a_provider_that_takes_too_long_is_told_so_wherever_it_stopped(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, begins: bytes
) -> None:
    over = threading.Event()

    def stop_amid(handler: Any) -> None:
        handler.wfile.write(begins)
        over.wait(60)

    provider.behave = stop_amid
    # the whole is over long before one part is late
    monkeypatch.setattr("kustos.client.oauth.http.TOTAL_TIMEOUT_FACTOR", 0.005)
    with pytest.raises(EndpointError, match="took longer than 300"):
        ProviderEndpoint(provider.url, 30_000, 30_000).request(None)
    over.set()


def test_who_does_not_answer_is_named_without_detail() -> None:
    with pytest.raises(EndpointError, match="did not answer: connection refused"):
        ProviderEndpoint("http://127.0.0.1:1/keys").request(None)
