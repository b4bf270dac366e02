"""`/ready` and the metadata: a failed write stops changes, not decisions."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kustos.acl import AclBindingFilter
from kustos.metadata.errors import LogFailedError
from kustos.metadata.store.store import CreateAcls, DeleteAcls
from kustos.server.node import Node
from kustos.server.settings.plugins import STANDARD_AUTHORIZER
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.metadata_logs import acl
from testkit.ports import LOOPBACK, free_port
from tests.unit.gateway.test_metrics import get
from tests.unit.server.test_early_start import answers, settings


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedBroker]:
    made = ScriptedBroker(1)
    await made.start()
    yield made
    made.stop()


async def test_a_log_that_cannot_be_written_is_told_and_does_not_end_the_service(
    tmp_path: Path, upstream: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    made = settings(
        tmp_path,
        upstream,
        authorizer_class_name=STANDARD_AUTHORIZER,
        kustos_http_listener=f"{LOOPBACK}:{port}",
    )
    node = await Node.open(made)
    await node.start()
    writer = node.writer
    assert writer is not None

    async def report_of() -> tuple[int, object]:
        status, _, text = await asyncio.to_thread(get, port, "/ready")
        return status, json.loads(text)

    parts = {"metadata": True, "upstream": True, "listeners": True, "audit": True}
    assert await report_of() == (200, {"ready": True, "parts": parts, "metadata_takes_changes": True})
    await writer.submit(CreateAcls((acl("before"),)))

    def fail(_: int) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("kustos.runtime.storage.os.fsync", fail)
        with pytest.raises(LogFailedError):
            await writer.submit(CreateAcls((acl("after"),)))
    assert await report_of() == (200, {"ready": True, "parts": parts, "metadata_takes_changes": False})
    with pytest.raises(LogFailedError):
        await writer.submit(DeleteAcls((AclBindingFilter(),)))
    assert node.acl_count() == 1
    assert await answers(made.listeners[0].bind.port)
    await node.stop()
