"""The authorizer keeps in step with the metadata log, or decides nothing."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerNotReadyError, StandardAuthorizer
from kustos.gateway.local import AuthorizerPublisher, MetadataApis
from kustos.gateway.writer import MetadataWriter
from kustos.metadata.format import format_directory
from kustos.metadata.image import AclAdded, AclRemoved, MetadataDelta
from kustos.metadata.store import CreateAcls, MetadataStore
from tests.property.protocol_requests import ALL_ALLOWED, allow
from tests.unit.gateway.session_worlds import World, create_acls

PRINCIPAL = KafkaPrincipal("User", "alice")


def published() -> tuple[StandardAuthorizer, AuthorizerPublisher]:
    authorizer = StandardAuthorizer(super_users=frozenset({"User:root"}))
    authorizer.complete_initial_load()
    return authorizer, AuthorizerPublisher(authorizer, asyncio.get_running_loop())


async def test_what_was_acknowledged_is_in_force(tmp_path: Path) -> None:
    format_directory(tmp_path / "log")
    store = MetadataStore.open(tmp_path / "log")
    authorizer = StandardAuthorizer()
    publisher = AuthorizerPublisher(authorizer, asyncio.get_running_loop())
    store.add_publisher(publisher)
    writer = MetadataWriter(store)
    session = authorizer.session(PRINCIPAL, "10.0.0.1")
    for number in range(50):
        name = f"topic-{number}"
        await writer.submit(CreateAcls((allow(ResourceType.TOPIC, name, AclOperation.READ),)))
        assert session.decide(AclOperation.READ, ResourceType.TOPIC, name).allowed
        assert publisher.offset == store.last_offset
    await writer.close()


async def test_a_change_that_cannot_be_ends_the_client_with_a_reason(tmp_path: Path) -> None:
    world = World(ALL_ALLOWED)
    format_directory(tmp_path / "log")
    writer = MetadataWriter(MetadataStore.open(tmp_path / "log"))
    apis = MetadataApis(writer, world.cluster, dict)
    await writer.close()
    world.serve = apis.serve  # type: ignore[method-assign]
    with capture_logs() as logs:
        world.session.take([create_acls(1)])
        await world.settle()
    assert world.closed == ["the metadata was not changed: the metadata writer has ended"]
    assert logs == []


@pytest.mark.parametrize("fault", ["unknown id", "a bug"])
async def test_a_fault_makes_the_authorizer_deny_everything_loudly(
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
