"""Which changes of workers wait for brokers before they are answered, and which workers start too late."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext
from kustos.client.quorum import Forwarded
from kustos.gateway.listener.plans import GatewayLimits
from kustos.gateway.store.source import Submitted
from kustos.gateway.workers import pool as pool_module
from kustos.gateway.workers.handle import READ_UP_S, WorkerHandle, WorkerPhase
from kustos.gateway.workers.messages import ChangeAnswer
from kustos.gateway.workers.pool import WorkerPool, WorkerPoolSettings
from kustos.gateway.workers.requests import submit_of
from kustos.wire import ApiKey, codec_versions, request_codec, response_codec


class Node:
    """The writer, its workers and their channel in one; it keeps awaited offsets and sent messages."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.sent: list[object] = []
        self.workers: dict[int, Any] = {}
        self.looked: asyncio.Event = asyncio.Event()

    async def submit(self, request: Forwarded) -> Submitted:
        self.events.append("submit")
        return Submitted(response_codec(request.api_key, request.api_version).new(), 7, None)

    async def drain(self, but: object = None) -> None:
        self.events.append("drain" if but is None else "drain others")

    def send(self, message: object) -> None:
        self.sent.append(message)

    async def looks(self, *, wants_metrics: bool) -> list[Any]:
        assert not wants_metrics
        self.looked.set()
        return []


def pool_of(node: Any, directory: Path) -> WorkerPool:
    settings = WorkerPoolSettings(
        size=1, directory=directory, limits=GatewayLimits(), properties={}, command=lambda _: []
    )
    return WorkerPool(settings, node, node, node)


class Started(WorkerHandle):
    """A worker whose fence is only recorded."""

    def __init__(self, index: int) -> None:
        process: Any = SimpleNamespace(exited=asyncio.get_running_loop().create_future(), pid=index)
        super().__init__(index, process)
        self.reason = ""

    def fence(self, reason: str) -> None:
        self.reason = reason


async def test_a_worker_that_reports_nothing_while_it_starts_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "LOOK_EVERY_S", 0.0)
    node: Any = Node()
    pool = pool_of(node, tmp_path)
    silent, silent_load, loading, serving = workers = [Started(index) for index in range(4)]
    node.workers.update(enumerate(workers))
    silent_load.phase = loading.phase = WorkerPhase.LOADING
    serving.phase = WorkerPhase.SERVING
    for worker in workers:
        worker.progressed_s -= pool_module.START_TIMEOUT_S + 1
    # a report that arrived while the writer was delayed counts; a loading worker may take long for a step
    asyncio.get_running_loop().call_later(READ_UP_S / 2, loading.stepped, 0)
    watch = asyncio.ensure_future(pool._watch())
    await node.looked.wait()
    watch.cancel()
    assert [bool(worker.reason) for worker in workers] == [True, True, False, False]
    assert silent.reason == "it does not start"


@pytest.mark.parametrize(
    ("api_key", "waited"),
    [
        (ApiKey.CREATE_ACLS, ["drain others", "drain"]),
        (ApiKey.DELETE_ACLS, ["drain others", "drain"]),
        (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, []),
        (ApiKey.CREATE_DELEGATION_TOKEN, []),
    ],
)
async def test_only_a_change_that_may_revoke_rights_waits_for_brokers(
    tmp_path: Path, api_key: ApiKey, waited: list[str]
) -> None:
    node: Any = Node()
    pool = pool_of(node, tmp_path)
    _, version = codec_versions(api_key) or (0, 0)
    message = request_codec(api_key, version).new()
    context = AuthorizableRequestContext(KafkaPrincipal("User", "admin"), "10.0.0.1", request_type=api_key)
    worker: Any = SimpleNamespace(index=1)
    await pool._change(worker, node, submit_of(3, Forwarded(api_key, version, message, context)))
    assert node.events == ["submit", *waited]
    [answer] = node.sent
    assert isinstance(answer, ChangeAnswer)
    assert answer.offset == 7
