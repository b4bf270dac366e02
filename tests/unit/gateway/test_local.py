"""The authorizer follows the metadata log, or decides nothing."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from kustos.acl import EVERY_BINDING, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    AuthorizableRequestContext,
    AuthorizerNotReadyError,
    AuthorizerServerInfo,
    ClusterResource,
    Endpoint,
    StandardAuthorizer,
    StandardAuthorizerPlugin,
)
from kustos.gateway.apis.acls import AclApis
from kustos.gateway.apis.local import MetadataApis
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.apis.shared import SharedApis
from kustos.gateway.store.local import LocalLog, WriterMutator
from kustos.gateway.store.publisher import AuthorizerPublisher
from kustos.gateway.store.writer import MetadataWriter
from kustos.metadata.directory.format import format_directory
from kustos.metadata.image import AclAdded, AclRemoved, MetadataDelta
from kustos.metadata.store.store import CreateAcls, MetadataStore
from kustos.protocol import OfferedApis
from kustos.wire import ErrorCode
from kustos.wire.api_keys import ApiKey
from testkit.gateway.sessions import World, request
from testkit.protocol.random_requests import ALL_ALLOWED, allow

ALPHA = allow(ResourceType.TOPIC, "alpha", AclOperation.READ)
PRINCIPAL = KafkaPrincipal("User", "alice")


def published() -> tuple[StandardAuthorizer, AuthorizerPublisher]:
    loop = asyncio.get_running_loop()
    plugin = StandardAuthorizerPlugin(loop.create_future)
    plugin.configure({"super.users": "User:root"})
    plugin.complete_initial_load()
    return plugin.standard, AuthorizerPublisher(plugin, loop)


async def test_acknowledged_changes_are_in_force(tmp_path: Path) -> None:
    format_directory(tmp_path / "log")
    store = MetadataStore.open(tmp_path / "log")
    loop = asyncio.get_running_loop()
    plugin = StandardAuthorizerPlugin(loop.create_future)
    publisher = AuthorizerPublisher(plugin, loop)
    store.add_publisher(publisher)
    writer = MetadataWriter(store)
    session = plugin.standard.session(PRINCIPAL, "10.0.0.1")
    for number in range(50):
        name = f"topic-{number}"
        await writer.submit(CreateAcls((allow(ResourceType.TOPIC, name, AclOperation.READ),)))
        assert session.decide(AclOperation.READ, ResourceType.TOPIC, name).allowed
        assert publisher.offset == store.last_offset
    await writer.close()


@pytest.mark.behaviour("B024")
async def test_acls_that_cannot_be_loaded_fail_the_waiting_start(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    plugin = StandardAuthorizerPlugin(loop.create_future)
    clients = Endpoint("CLIENTS", "PLAINTEXT", "127.0.0.1", 9092)
    info = AuthorizerServerInfo(
        cluster_resource=ClusterResource(None),
        broker_id=1,
        endpoints=(clients,),
        inter_broker_endpoint=clients,
    )
    waiting = plugin.start(info)[clients]
    unfit: Any = SimpleNamespace(acls={1: "no ACL"}, offset=7)
    with pytest.raises(AttributeError):
        AuthorizerPublisher(plugin, loop).publish_snapshot(unfit)
    with pytest.raises(AttributeError):
        await waiting
    assert not plugin.standard.is_ready


async def test_a_failed_change_is_reported_with_its_error_code(tmp_path: Path) -> None:
    format_directory(tmp_path / "log")
    writer = MetadataWriter(MetadataStore.open(tmp_path / "log"))
    plugin = StandardAuthorizerPlugin(asyncio.get_running_loop().create_future, mutator=WriterMutator(writer))
    await writer.close()
    context = AuthorizableRequestContext(PRINCIPAL, "10.0.0.1")
    with capture_logs() as logs:
        created = await plugin.create_acls(
            context, [allow(ResourceType.TOPIC, "alpha", AclOperation.READ)] * 2
        )
        deleted = await plugin.delete_acls(context, [EVERY_BINDING])
    exceptions = [*(each.exception for each in created), *(each.exception for each in deleted)]
    assert [each and (each.code, each.message) for each in exceptions] == [
        (ErrorCode.unknown_server_error, None)
    ] * 3
    assert [log["reason"] for log in logs] == ["the metadata writer has ended"] * 2


async def test_a_failed_credential_change_is_reported(tmp_path: Path) -> None:
    world = World(ALL_ALLOWED)
    format_directory(tmp_path / "log")
    writer = MetadataWriter(MetadataStore.open(tmp_path / "log"))
    acls = AclApis(None, DelayedFuturePurgatory(ALTER_ACLS, 1000))
    apis = MetadataApis(
        LocalLog(writer), SharedApis(lambda: writer.store.image, OfferedApis(dict).body, acls, lambda _: [])
    )
    await writer.close()
    world.serve = apis.serve  # type: ignore[method-assign]
    alter = request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 1, deletions=[], upsertions=[])
    with capture_logs() as logs:
        world.session.take([alter])
        await world.settle()
    assert world.closed == []
    [log] = logs
    assert (log["event"], log["reason"]) == ("the metadata was not changed", "the metadata writer has ended")


@pytest.mark.parametrize("fault", ["unknown id", "a bug"])
async def test_a_fault_makes_the_authorizer_deny_everything_and_log_it(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer, publisher = published()
    session = authorizer.session(PRINCIPAL, "10.0.0.1")
    good = AclAdded(UUID(int=1), allow(ResourceType.TOPIC, "alpha", AclOperation.READ))
    publisher.publish_delta(MetadataDelta(1, 1, (good,)))
    await asyncio.sleep(0)
    assert session.decide(AclOperation.READ, ResourceType.TOPIC, "alpha").allowed
    bad: Any = AclRemoved(UUID(int=9), good.binding)
    if fault == "a bug":

        def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(authorizer, "remove_acl", broken)
    with capture_logs() as logs:
        publisher.publish_delta(MetadataDelta(2, 1, (bad,)))
        publisher.publish_delta(MetadataDelta(3, 1, ()))
        await asyncio.sleep(0)
    assert [log["log_level"] for log in logs] == ["critical"]
    for _ in range(2):
        with pytest.raises(AuthorizerNotReadyError):
            session.decide(AclOperation.READ, ResourceType.TOPIC, "alpha")
    root = authorizer.session(KafkaPrincipal("User", "root"), "10.0.0.1")
    assert root.decide(AclOperation.READ, ResourceType.TOPIC, "alpha").allowed
