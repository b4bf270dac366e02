"""Changes submitted by workers: which of them wait for brokers before they are answered."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext
from kustos.client.quorum import Forwarded
from kustos.gateway.listener.plans import GatewayLimits
from kustos.gateway.store.source import Submitted
from kustos.gateway.workers.messages import ChangeAnswer
from kustos.gateway.workers.pool import WorkerPool, WorkerPoolSettings
from kustos.gateway.workers.requests import submit_of
from kustos.wire import ApiKey, codec_versions, request_codec, response_codec


class Node:
    """The writer, its workers and their channel in one; it keeps awaited offsets and sent messages."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.sent: list[object] = []
        self.workers: dict[int, object] = {}

    async def submit(self, request: Forwarded) -> Submitted:
        self.events.append("submit")
        return Submitted(response_codec(request.api_key, request.api_version).new(), 7, None)

    async def drain(self, but: object = None) -> None:
        self.events.append("drain" if but is None else "drain others")

    def send(self, message: object) -> None:
        self.sent.append(message)


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
    settings = WorkerPoolSettings(
        size=1, directory=tmp_path, limits=GatewayLimits(), properties={}, command=lambda _: []
    )
    pool = WorkerPool(settings, node, node, node)
    _, version = codec_versions(api_key) or (0, 0)
    message = request_codec(api_key, version).new()
    context = AuthorizableRequestContext(KafkaPrincipal("User", "admin"), "10.0.0.1", request_type=api_key)
    worker: Any = SimpleNamespace(index=1)
    await pool._change(worker, node, submit_of(3, Forwarded(api_key, version, message, context)))
    assert node.events == ["submit", *waited]
    [answer] = node.sent
    assert isinstance(answer, ChangeAnswer)
    assert answer.offset == 7
