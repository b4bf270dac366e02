"""Envelopes: who may hand in requests of others, what for, and every way found to get past it.

Each attempt below ends in a refusal, in Kafka's code for it, and changes nothing.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.protocol.envelopes import FORWARDABLE, principal_bytes
from kustos.wire import Message
from kustos.wire.api_keys import ApiKey
from kustos.wire.primitives import uvarint
from testkit.gateway.admin_node import (
    ALICE,
    HERE,
    OPS,
    AdminNode,
    NoAnswerError,
    Talker,
    admin_node,
    answer_of,
    frame_of,
)
from testkit.gateway.gateways import Caller

UNKNOWN_SERVER_ERROR, CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, INVALID_REQUEST = -1, 31, 35, 42
TOKENS_NOT_ALLOWED, PRINCIPAL_DESERIALIZATION_FAILURE = 64, 97
CREATE, DESCRIBE, ENVELOPE = ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.ENVELOPE
ACL = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[AdminNode]:
    async with admin_node(tmp_path) as made:
        yield made


@pytest.fixture
async def forwarder(node: AdminNode) -> Talker:
    return await node.talk("forwarder")


def creation(version: int = 3, correlation_id: int = 77, **changes: Any) -> bytes:
    """Return a CreateAcls without its length."""
    return frame_of(CREATE, version, correlation_id, creations=[ACL | changes])[4:]


def inner(answer: Message, api: ApiKey, version: int) -> Message:
    """Return the answer that an Envelope holds."""
    assert answer.error_code == 0
    return answer_of(api, version, answer.response_data)


def codes(answer: Message) -> list[int]:
    return [result.error_code for result in inner(answer, CREATE, 3).results]


def acl_count(node: AdminNode) -> int:
    return len(node.node.store.image.acls)


async def test_a_request_is_answered_for_whoever_made_it(node: AdminNode, forwarder: Talker) -> None:
    before = acl_count(node)
    answer = await forwarder.forward(creation(), principal_bytes(OPS))
    assert codes(answer) == [0]
    assert int.from_bytes(answer.response_data[:4], "big") == 77, "the inner correlation id"
    assert acl_count(node) == before + 1


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_every_version_of_a_request_can_be_forwarded(forwarder: Talker, version: int) -> None:
    answer = await forwarder.forward(creation(version))
    assert [each.error_code for each in inner(answer, CREATE, version).results] == [0]


async def test_the_rights_of_the_forwarder_are_not_lent(node: AdminNode, forwarder: Talker) -> None:
    before = acl_count(node)
    assert codes(await forwarder.forward(creation(), principal_bytes(ALICE))) == [
        CLUSTER_AUTHORIZATION_FAILED
    ]
    # who may forward may not do what it forwards
    own = principal_bytes(KafkaPrincipal("User", "forwarder"))
    assert codes(await forwarder.forward(creation(), own)) == [CLUSTER_AUTHORIZATION_FAILED]
    assert acl_count(node) == before


@pytest.mark.parametrize("user", ["alice", "ops", "viewer"])
async def test_only_holders_of_cluster_action_may_forward(node: AdminNode, user: str) -> None:
    before = acl_count(node)
    talker = await node.talk(user)
    answer = await talker.forward(creation(), principal_bytes(KafkaPrincipal("User", "admin")))
    assert (answer.error_code, answer.response_data) == (CLUSTER_AUTHORIZATION_FAILED, None)
    assert acl_count(node) == before


@pytest.mark.parametrize("user", ["admin", "forwarder"])
async def test_a_listener_for_clients_closes_the_connection(node: AdminNode, user: str) -> None:
    before = acl_count(node)
    talker = await node.talk(user, admin=False)
    with pytest.raises(NoAnswerError):
        await talker.forward(creation(), principal_bytes(KafkaPrincipal("User", "admin")))
    assert acl_count(node) == before


async def test_nobody_forwards_before_logging_in(node: AdminNode) -> None:
    before = acl_count(node)
    talker = Talker(await Caller.at(node.admin_port))
    with pytest.raises(NoAnswerError):
        await talker.forward(creation(), principal_bytes(KafkaPrincipal("User", "admin")))
    assert acl_count(node) == before


@pytest.mark.parametrize(
    "principal",
    [
        b"",
        b"\0",
        b"\0\1" + principal_bytes(OPS)[2:],
        b"\xff\xff" + principal_bytes(OPS)[2:],
        principal_bytes(OPS)[:-2],
        b"\0\0\0\4ops\0\0",
        b"\0\0\5User\0\0\0",
        b"\0\0\5User\xff\xff\xff\xff\x0fops\0\0",
        b"\0\0\5User\x04o\xff\xfe\0\0",
        principal_bytes(OPS)[:-1] + b"\1\0\x7f",
        principal_bytes(OPS)[:-1] + b"\xff\xff\xff\xff\x07",
        b"\0\0\5User\x84\0ops\0\0",
    ],
)
async def test_a_principal_that_cannot_be_read_is_nobody(
    node: AdminNode, forwarder: Talker, principal: bytes
) -> None:
    before = acl_count(node)
    answer = await forwarder.forward(creation(), principal)
    assert (answer.error_code, answer.response_data) == (PRINCIPAL_DESERIALIZATION_FAILURE, None)
    assert acl_count(node) == before


async def test_no_principal_is_nobody(forwarder: Talker) -> None:
    fields = {"request_data": creation(), "request_principal": None, "client_host_address": HERE}
    assert (await forwarder.ask(ENVELOPE, 0, **fields)).error_code == PRINCIPAL_DESERIALIZATION_FAILURE


@pytest.mark.parametrize(
    "principal",
    [
        principal_bytes(OPS) + b"more",
        principal_bytes(OPS)[:-1] + b"\1\x09\3abc",
        principal_bytes(OPS)[:-2] + b"\x07\0",
    ],
    ids=["bytes behind it", "an unknown tag", "a strange true"],
)
async def test_a_principal_is_read_as_kafka_reads_it(forwarder: Talker, principal: bytes) -> None:
    assert codes(await forwarder.forward(creation(), principal)) == [0]


@pytest.mark.parametrize(
    "principal",
    [
        KafkaPrincipal("Group", "ops"),
        KafkaPrincipal("user", "ops"),
        KafkaPrincipal("", "ops"),
        KafkaPrincipal("User", ""),
        KafkaPrincipal("User", "Ops"),
        KafkaPrincipal("User:ops", ""),
        KafkaPrincipal("User", "ops "),
    ],
)
async def test_another_principal_has_no_rights_of_the_like_of_it(
    node: AdminNode, forwarder: Talker, principal: KafkaPrincipal
) -> None:
    before = acl_count(node)
    answer = await forwarder.forward(creation(), principal_bytes(principal))
    assert codes(answer) == [CLUSTER_AUTHORIZATION_FAILED]
    assert acl_count(node) == before


async def test_a_super_user_is_told_by_type_and_name_together(node: AdminNode, forwarder: Talker) -> None:
    # `User` + `:` + `admin` can be cut in two ways; only one of them is the super user
    for cut in (KafkaPrincipal("User:admin", ""), KafkaPrincipal("", "User:admin")):
        assert codes(await forwarder.forward(creation(), principal_bytes(cut))) == [
            CLUSTER_AUTHORIZATION_FAILED
        ]
    admin = principal_bytes(KafkaPrincipal("User", "admin"))
    assert codes(await forwarder.forward(creation(), admin)) == [0]


async def test_nobody_is_everybody(node: AdminNode, forwarder: Talker) -> None:
    before = acl_count(node)
    answer = await forwarder.forward(creation(), principal_bytes(KafkaPrincipal("User", "*")))
    assert codes(answer) == [UNKNOWN_SERVER_ERROR]
    assert acl_count(node) == before


@pytest.mark.parametrize("address", [b"", b"\1", bytes(5), bytes(15), bytes(17), b"127.0.0.1"])
async def test_an_address_that_is_none_is_refused(forwarder: Talker, address: bytes) -> None:
    answer = await forwarder.forward(creation(), address=address)
    assert (answer.error_code, answer.response_data) == (INVALID_REQUEST, None)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        (bytes((10, 1, 2, 3)), 0),
        (bytes(10) + b"\xff\xff" + bytes((10, 1, 2, 3)), 0),
        (bytes((10, 1, 2, 4)), CLUSTER_AUTHORIZATION_FAILED),
        (bytes(12) + bytes((10, 1, 2, 3)), CLUSTER_AUTHORIZATION_FAILED),
    ],
    ids=["its own", "mapped into IPv6", "another", "in IPv6 but not mapped"],
)
async def test_acls_of_hosts_mean_the_first_address(forwarder: Talker, address: bytes, code: int) -> None:
    remote = principal_bytes(KafkaPrincipal("User", "remote"))
    assert codes(await forwarder.forward(creation(), remote, address)) == [code]


@pytest.mark.parametrize("api", [DESCRIBE, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS])
async def test_what_is_answered_here_is_not_forwarded_for_that(forwarder: Talker, api: ApiKey) -> None:
    frame = frame_of(api, 3 if api == DESCRIBE else 0 if api == 50 else 4, 1)[4:]
    assert (await forwarder.forward(frame)).error_code == INVALID_REQUEST


@pytest.mark.parametrize("api", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.CREATE_TOPICS, ApiKey.API_VERSIONS])
async def test_what_this_node_does_not_answer_is_refused(forwarder: Talker, api: ApiKey) -> None:
    version = {ApiKey.METADATA: 9, ApiKey.PRODUCE: 9, ApiKey.CREATE_TOPICS: 5}.get(api, 0)
    assert (await forwarder.forward(frame_of(api, version, 1)[4:])).error_code == INVALID_REQUEST


async def test_a_login_cannot_be_forwarded(forwarder: Talker) -> None:
    handshake = frame_of(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PLAIN")[4:]
    token = frame_of(ApiKey.SASL_AUTHENTICATE, 1, 1, auth_bytes=b"\0admin\0s3cret")[4:]
    for frame in (handshake, token):
        assert (await forwarder.forward(frame)).error_code == INVALID_REQUEST
    # and the forwarder is still who it was
    assert codes(await forwarder.forward(creation(), principal_bytes(ALICE))) == [
        CLUSTER_AUTHORIZATION_FAILED
    ]


async def test_an_envelope_in_an_envelope_is_not_opened(node: AdminNode, forwarder: Talker) -> None:
    before = acl_count(node)
    admin = principal_bytes(KafkaPrincipal("User", "admin"))
    fields = {"request_data": creation(), "request_principal": admin, "client_host_address": HERE}
    nested = frame_of(ENVELOPE, 0, 5, **fields)[4:]
    for _ in range(3):
        answer = await forwarder.forward(nested, admin)
        assert (answer.error_code, answer.response_data) == (INVALID_REQUEST, None)
        nested = frame_of(ENVELOPE, 0, 5, **fields | {"request_data": nested})[4:]
    assert acl_count(node) == before


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x1e",
        creation()[:7],
        creation()[:-3],
        creation()[:-1],
        b"\0\x1e\0\x63" + creation()[4:],
        b"\0\x1e\xff\xff" + creation()[4:],
        b"\0\x1e\0\0" + creation(1)[4:],
        b"\x7f\xff" + creation()[2:],
        b"\xff\xff" + creation()[2:],
        b"\0\4" + creation()[2:],
        creation()[:8] + b"\x7f\xff" + creation()[10:],
        creation()[:8] + b"\xff\xfe" + creation()[10:],
        creation(resource_type=0),
        creation(operation=0),
    ],
)
async def test_a_request_that_cannot_be_read_is_unsupported(
    node: AdminNode, forwarder: Talker, frame: bytes
) -> None:
    before = acl_count(node)
    answer = await forwarder.forward(frame)
    assert (answer.error_code, answer.response_data) == (UNSUPPORTED_VERSION, None)
    assert acl_count(node) == before
    assert codes(await forwarder.forward(creation())) == [0], "the connection goes on"


async def test_a_list_too_long_to_be_read_is_not_read(forwarder: Talker) -> None:
    head = creation()[: 8 + 2 + len("tests") + 1]
    for count in (2**31 - 1, 100_002):
        answer = await forwarder.forward(head + uvarint(count) + bytes(64))
        assert answer.error_code == UNSUPPORTED_VERSION


async def test_bytes_behind_the_inner_request_are_not_read(forwarder: Talker) -> None:
    assert codes(await forwarder.forward(creation() + creation(correlation_id=78))) == [0]


async def test_a_token_is_made_for_who_did_not_log_in_with_one(tmp_path: Path) -> None:
    async with admin_node(tmp_path, delegation_token_secret_key="k" * 32) as node:
        forwarder = await node.talk("forwarder")
        made = frame_of(ApiKey.CREATE_DELEGATION_TOKEN, 3, 9, renewers=[], max_lifetime=-1)[4:]
        held = KafkaPrincipal("User", "alice", token_authenticated=True)
        for principal, code in ((ALICE, 0), (held, TOKENS_NOT_ALLOWED)):
            answer = await forwarder.forward(made, principal_bytes(principal))
            token = inner(answer, ApiKey.CREATE_DELEGATION_TOKEN, 3)
            assert (token.error_code, token.principal_name) == (code, "alice")
        assert len(node.node.store.image.delegation_tokens) == 1


async def test_requests_before_and_behind_it_keep_their_own_maker(node: AdminNode, forwarder: Talker) -> None:
    """Pipelined: an Envelope does not change who the connection is."""
    admin = principal_bytes(KafkaPrincipal("User", "admin"))
    fields = {"request_data": creation(), "request_principal": admin, "client_host_address": HERE}
    direct = frame_of(CREATE, 3, 501, creations=[ACL | {"resource_name": "direct"}])
    forwarder.caller.writer.write(direct + frame_of(ENVELOPE, 0, 502, **fields) + direct)
    answers = [await forwarder.caller.frame() for _ in range(3)]
    assert all(answers)
    first, wrapped, last = (answer or b"" for answer in answers)
    for answer in (first, last):
        [result] = answer_of(CREATE, 3, answer).results
        assert result.error_code == CLUSTER_AUTHORIZATION_FAILED
    assert codes(answer_of(ENVELOPE, 0, wrapped)) == [0]


def test_nothing_that_tells_who_one_is_can_be_forwarded() -> None:
    assert not FORWARDABLE & {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.API_VERSIONS, ENVELOPE}
