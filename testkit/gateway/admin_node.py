"""A node on real sockets, with a client listener and an admin listener, before a scripted broker."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kustos.acl import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.features import DEFAULT_LEVEL
from kustos.protocol.envelopes import principal_bytes
from kustos.server.logs import LOG_LEVELS, LOGGERS
from kustos.server.node import Node
from kustos.server.settings.node_settings import settings_from
from kustos.wire import (
    Message,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_header_is_flexible,
)
from kustos.wire.api_keys import ApiKey
from testkit.equality.stories import message_of
from testkit.gateway.gateways import Caller
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK, free_port, free_port_range

OP = AclOperation
USERS = ("admin", "forwarder", "ops", "settings", "viewer", "alice")
PASSWORD = "s3cret"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = KafkaPrincipal("User", "alice")
OPS = KafkaPrincipal("User", "ops")
HERE = bytes((127, 0, 0, 1))


def on_cluster(user: str, *operations: AclOperation, host: str = "*") -> list[AclBinding]:
    """Return the ACLs that allow a user these operations on the cluster."""
    pattern = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
    return [
        AclBinding(pattern, AccessControlEntry(f"User:{user}", host, each, AclPermissionType.ALLOW))
        for each in operations
    ]


ACLS = (
    *on_cluster("forwarder", OP.CLUSTER_ACTION),
    *on_cluster("ops", OP.ALTER, OP.ALTER_CONFIGS, OP.DESCRIBE_CONFIGS, OP.DESCRIBE),
    *on_cluster("settings", OP.ALTER_CONFIGS),
    *on_cluster("viewer", OP.DESCRIBE, OP.DESCRIBE_CONFIGS),
    *on_cluster("remote", OP.ALTER, host="10.1.2.3"),
)


class NoAnswerError(Exception):
    """The connection was closed."""


@dataclass
class Talker:
    """A client that is logged in."""

    caller: Caller
    correlation_id: int = 0

    async def frame(self, frame: bytes) -> bytes:
        """Send a frame with its length before it; return the answer without, raise `NoAnswerError`."""
        self.caller.writer.write(frame)
        answer = await self.caller.frame()
        if answer is None:
            raise NoAnswerError
        return answer

    async def ask(self, api: ApiKey, version: int, **fields: Any) -> Message:
        """Send a request; return the answer, raise `NoAnswerError`."""
        self.correlation_id += 1
        return answer_of(
            api, version, await self.frame(frame_of(api, version, self.correlation_id, **fields))
        )

    async def forward(
        self, inner: bytes, principal: bytes | None = None, address: bytes = HERE, **_: Any
    ) -> Message:
        """Send a request in an Envelope, `inner` without its length; return the enclosed answer."""
        data = principal_bytes(OPS) if principal is None else principal
        return await self.ask(
            ApiKey.ENVELOPE, 0, request_data=inner, request_principal=data, client_host_address=address
        )


def frame_of(api: ApiKey, version: int, correlation_id: int, **fields: Any) -> bytes:
    """Return a whole request with its length before it."""
    codec = request_codec(api, version)
    body = codec.encode(message_of(codec.root, fields, lambda value: value))
    return request_frame(codec, api, correlation_id, "tests", body)


def answer_of(api: ApiKey, version: int, frame: bytes) -> Message:
    """Return the answer in a frame without its length."""
    codec = response_codec(api, version)
    _, body_at = read_response_header(frame, response_header_is_flexible(api, codec))
    return codec.decode(frame, body_at).message


@dataclass
class AdminNode:
    """A node that serves, and where its metadata is."""

    node: Node
    admin_port: int
    client_port: int
    properties: dict[str, str]
    """The content of the node's configuration file."""
    talkers: list[Talker] = field(default_factory=list)

    async def talk(self, user: str, *, admin: bool = True) -> Talker:
        """Return a logged-in client."""
        caller = await Caller.at(self.admin_port if admin else self.client_port)
        talker = Talker(caller)
        await talker.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
        token = f"\0{user}\0{PASSWORD}".encode()
        answer = await talker.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=token)
        assert answer.error_code == 0
        self.talkers.append(talker)
        return talker


@asynccontextmanager
async def admin_node(
    directory: Path,
    *,
    acls: Sequence[AclBinding] = ACLS,
    metadata_version: int = DEFAULT_LEVEL,
    **more: str,
) -> AsyncIterator[AdminNode]:
    """Serve; an already formatted directory is used unchanged. Everything is closed at the end."""
    broker = ScriptedBroker(1)
    await broker.start()
    metadata = directory / "metadata"
    if not metadata.exists():
        format_directory(metadata, acls=acls, metadata_version=metadata_version)
    admin_port, client_port, brokers = free_port(), free_port(), free_port_range(4)
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    keys = {
        "node.id": "1",
        "metadata.log.dir": str(metadata),
        "listeners": f"CLIENTS://{LOOPBACK}:{client_port},ADMIN://{LOOPBACK}:{admin_port}",
        "controller.listener.names": "ADMIN",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,ADMIN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{MODULE} required {users};",
        "kustos.gateway.broker.port.start": str(brokers),
        "kustos.gateway.broker.port.count": "4",
        "kustos.upstream.bootstrap.servers": f"{LOOPBACK}:{broker.port}",
        "super.users": "User:admin",
    }
    given = keys | {key.replace("_", "."): value for key, value in more.items()}
    node = await Node.open(settings_from(given, {}))
    made = AdminNode(node, admin_port, client_port, given)
    try:
        await node.start()
        yield made
    finally:
        for talker in made.talkers:
            talker.caller.close()
        await node.stop()
        broker.stop()
        for logger in LOGGERS:
            # levels are those of the process, which other tests share
            LOG_LEVELS.unset_level(logger)
