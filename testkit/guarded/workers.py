"""A node of several processes before a real broker, and what the kernel knows of its processes."""

import os
import re
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import settings
from testkit.guarded.raw_client import RawClient
from testkit.kustos import KustosNode
from testkit.ports import LOOPBACK, free_port
from testkit.tap.frames import code, read_response
from testkit.waiting import PATIENCE_S, wait_until

METADATA, CREATE_ACLS, DELETE_ACLS = 3, 30, 31
TOPIC_AUTHORIZATION_FAILED = 29
TOPIC, LITERAL, DESCRIBE, DENY, ANY = 2, 3, 8, 2, 1
ESTABLISHED = "01"
WORKERS = 2
ENDED = "kustos_workers_ended_total"
CONNECTION_COUNT = "kafka_server_socket_server_metrics_connection_count"
TOPIC_NAME = "orders-eu"


def worker_settings(**properties: str) -> dict[str, str]:
    """Return the settings that make several processes of a node."""
    return {"kustos.workers": str(WORKERS)} | properties


class WorkerCluster(GuardedCluster):
    """The common world, served by a cluster, with an admin listener besides."""

    def __init__(self, directory: Path, **properties: str) -> None:
        world = replace(settings(), properties=worker_settings(**properties))
        super().__init__(directory, world, topics=(TOPIC_NAME,), taps_clients=False)
        self.admin_address = f"{LOOPBACK}:{free_port()}"

    def _kustos_before(self, upstream: str) -> KustosNode:
        node = super()._kustos_before(upstream)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        own = {
            "listeners": f"SASL_PLAINTEXT://{node.bootstrap},CONTROLLER://{self.admin_address}",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.name.controller.plain.sasl.jaas.config": (
                f'{module} required user_admin="{self.settings.users["admin"]}";'
            ),
        }
        node.settings = replace(node.settings, properties=own | dict(node.settings.properties))
        return node

    def administrator(self) -> RawClient:
        """Return a connection to the admin listener."""
        return RawClient(self.admin_address, "operator").log_in("admin", self.settings.users["admin"])


def writer_pid(node: KustosNode) -> int:
    """Return the process that was started."""
    assert node.server is not None
    return node.server.pid


def worker_pids(node: KustosNode) -> list[int]:
    """Return the processes that it started."""
    pid = writer_pid(node)
    return sorted(int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def is_alive(pid: int) -> bool:
    """Return whether a process runs or is stopped, and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        # it was gone before its file was opened, or before that was read
        return False
    return state not in {"Z", "X"}


def connections_of(pid: int, port: int) -> set[int]:
    """Return the ports from which clients are connected to this port in this process."""
    return {remote for local, remote in _ports_of(pid) if local == port}


def is_connected_to(pid: int, port: int) -> bool:
    """Return whether a process is connected to this port."""
    return any(remote == port for _, remote in _ports_of(pid))


def _ports_of(pid: int) -> set[tuple[int, int]]:
    """Return the local and the remote port of each TCP connection of a process."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {
        (int(row[1].rpartition(":")[2], 16), int(row[2].rpartition(":")[2], 16))
        for row in rows
        if row[3] == ESTABLISHED and row[9] in inodes
    }


def held_by(pid: int, node: KustosNode, clients: list[RawClient]) -> list[RawClient]:
    """Return those of these connections that a process holds."""
    ports = connections_of(pid, node.port)
    return [client for client in clients if client.socket.getsockname()[1] in ports]


def log_in(scene: GuardedCluster, user: str) -> RawClient:
    """Return a connection of a user, to whichever worker the kernel gives it."""
    return RawClient(scene.bootstrap, f"{user}-client").log_in(user, scene.settings.users[user])


def asked(client: RawClient) -> bytes:
    """Return the frame that asks for the topic."""
    topic = MetadataRequestTopic(topic_id=None, name=TopicName(TOPIC_NAME))
    return client.request(
        METADATA,
        12,
        topics=(topic,),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def is_denied(clients: list[RawClient]) -> list[bool]:
    """Ask on every connection at once; return for each whether the topic was denied."""
    for client in clients:
        client.send(asked(client))
    answers = [read_response(client.receive(), METADATA, 12)[1] for client in clients]
    return [code(answer.topics[0]) == TOPIC_AUTHORIZATION_FAILED for answer in answers]


def creation_of(principal: str) -> AclCreation:
    """Return what denies the topic to a principal."""
    return AclCreation(
        resource_type=i8(TOPIC),
        resource_name=TOPIC_NAME,
        resource_pattern_type=i8(LITERAL),
        principal=principal,
        host="*",
        operation=i8(DESCRIBE),
        permission_type=i8(DENY),
    )


def deny(client: RawClient, principal: str = "User:alice") -> int:
    """Have the topic denied; return the error code of the answer."""
    answer = client.ask(CREATE_ACLS, 3, creations=(creation_of(principal),))
    return int(answer.results[0].error_code)


def filter_of(principal: str) -> DeleteAclsFilter:
    """Return what matches that."""
    return DeleteAclsFilter(
        resource_type_filter=i8(TOPIC),
        resource_name_filter=TOPIC_NAME,
        pattern_type_filter=i8(LITERAL),
        principal_filter=principal,
        host_filter=None,
        operation=i8(ANY),
        permission_type=i8(DENY),
    )


def undo(client: RawClient, principal: str = "User:alice") -> int:
    """Take that back; return the error code of the answer."""
    return int(client.ask(DELETE_ACLS, 3, filters=(filter_of(principal),)).filter_results[0].error_code)


def wait_ready(node: KustosNode) -> None:
    """Return when the node says that all of it is ready."""
    wait_until(node.is_ready, what="the node is ready")


def wait_replaced(node: KustosNode, ended: float) -> None:
    """Return when so many workers have ended, and others serve.

    A node says that it is ready until it has noticed that a worker is gone.
    """
    wait_until(lambda: figure(node, ENDED) >= ended, what="the node knows which workers have ended")
    wait_ready(node)


def figure(node: KustosNode, name: str) -> float:
    """Return a figure of the metrics page, its labels added up."""
    lines = [line for line in node.metrics().splitlines() if line.startswith((name + " ", name + "{"))]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def wait_connections(node: KustosNode, count: int, timeout_s: float = PATIENCE_S) -> None:
    """Return when the node counts so many connections of clients."""
    wait_until(
        lambda: figure(node, CONNECTION_COUNT) == count,
        timeout_s=timeout_s,
        what=f"the node counts {count} connections",
    )


def has_room(scene: GuardedCluster) -> bool:
    """Return whether the node lets another client in."""
    try:
        with log_in(scene, "alice"):
            return True
    except (EOFError, OSError):
        return False


def log_of(node: KustosNode) -> Path:
    """Return the file to which all processes log."""
    return node.directory / "kustos.log"


def set_in_file(node: KustosNode, key: str, value: str) -> None:
    """Change a setting in the node's file, and have it read."""
    text = node.properties_file.read_text()
    node.properties_file.write_text(re.sub(rf"(?m)^{re.escape(key)}=.*$", f"{key}={value}", text))
    os.kill(writer_pid(node), signal.SIGHUP)


def close_all(clients: Iterable[RawClient]) -> None:
    """Close the connections."""
    for client in clients:
        client.socket.close()
