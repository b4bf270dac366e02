"""The admin client in rare situations: controllers that resign, lost connections."""

import asyncio

import pytest

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntryFilter,
    AclBindingFilter,
    AclOperation,
    AclValueError,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.client import CannotConnectError, ClientSettings, KafkaError
from kustos.client.admin.client import AdminClient
from kustos.wire import Message, peek_api, response_codec, response_frame
from kustos.wire.api_keys import ApiKey
from tests.unit.client.test_connection import peer, read_frame

NOT_CONTROLLER = 41
CLUSTER_AUTHORIZATION_FAILED = 31


def framed(frame: bytes, answer: Message) -> bytes:
    api_key, version, correlation_id = peek_api(frame)
    codec = response_codec(api_key, version)
    return response_frame(api_key, codec, correlation_id, codec.encode(answer))


def deletion_answer(*error_codes: int) -> Message:
    codec = response_codec(ApiKey.DELETE_ACLS, 3)
    result = codec.struct("DeleteAclsFilterResult")
    return codec.new(filter_results=[result(error_code=code) for code in error_codes])


def metadata_answer(controller_port: int) -> Message:
    codec = response_codec(ApiKey.METADATA, 12)
    node = codec.struct("MetadataResponseBroker")(node_id=9, host="127.0.0.1", port=controller_port)
    return codec.new(brokers=[node], cluster_id="c", controller_id=9)


def client(*ports: int) -> AdminClient:
    return AdminClient(ClientSettings.from_properties(",".join(f"127.0.0.1:{port}" for port in ports), {}))


async def test_a_node_that_is_no_controller_names_the_one_that_is_asked_instead() -> None:
    asked: list[str] = []

    async def controller(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        asked.append("controller")
        writer.write(framed(frame, deletion_answer(0)))
        await reader.read()

    async with peer(controller) as controller_port:

        async def follower(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(framed(await read_frame(reader), deletion_answer(NOT_CONTROLLER)))
            asked.append("follower")
            writer.write(framed(await read_frame(reader), metadata_answer(controller_port)))
            await reader.read()

        async with peer(follower) as port, client(port) as admin:
            (outcome,) = await admin.delete_acls([EVERY_BINDING])
            assert outcome.error is None
    assert asked == ["follower", "controller"]


async def test_what_took_effect_in_part_is_not_asked_again() -> None:
    async def follower(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(await read_frame(reader), deletion_answer(0, NOT_CONTROLLER)))
        assert await reader.read() == b""

    async with peer(follower) as port, client(port) as admin:
        first, second = await admin.delete_acls([EVERY_BINDING, EVERY_BINDING])
        assert first.error is None
        assert second.error is not None
        assert second.error.name == "NOT_CONTROLLER"


async def test_a_lost_connection_is_made_anew_for_the_next_question() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(framed(await read_frame(reader), metadata_answer(1)))

    async with peer(once) as port, client(port) as admin:
        for _ in range(3):
            assert (await admin.describe_cluster()).controller_id == 9
            link = admin._connection
            assert link is not None
            await link.wait_closed()


async def test_every_address_is_tried_and_told_of() -> None:
    with pytest.raises(CannotConnectError, match=r"`127\.0\.0\.1:1`.*; .*`127\.0\.0\.1:2`"):
        await client(1, 2).describe_cluster()


@pytest.mark.behaviour("B346")
async def test_a_filter_with_an_unknown_field_is_never_sent() -> None:
    unknown = ResourcePatternFilter(ResourceType.UNKNOWN)
    for binding_filter in (
        AclBindingFilter(unknown),
        AclBindingFilter(entry_filter=AccessControlEntryFilter(operation=AclOperation.UNKNOWN)),
    ):
        with pytest.raises(AclValueError):
            await client(1).describe_acls(binding_filter)
        with pytest.raises(AclValueError):
            await client(1).delete_acls([binding_filter])


def test_errors_carry_kafkas_names() -> None:
    error = KafkaError(CLUSTER_AUTHORIZATION_FAILED, "no")
    assert (error.name, error.is_authorization_failure) == ("CLUSTER_AUTHORIZATION_FAILED", True)
    assert KafkaError(9999).name == "UNKNOWN_ERROR_CODE(9999)"
    assert not KafkaError(NOT_CONTROLLER).is_authorization_failure
