"""New key and trust stores while clients are connected: by file, by SIGHUP and by IncrementalAlterConfigs."""

import os
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from testkit.certificates import STORE_PASSWORD, Authority
from testkit.guarded.raw_client import RawClient
from testkit.kafka import KafkaNode
from testkit.waiting import wait_until
from tests.e2e.tls_scene import TlsScene

API_VERSIONS, INCREMENTAL_ALTER_CONFIGS = 18, 44
INVALID_REQUEST = 42
BROKER, SET, DELETE = 4, 0, 1
NODE_ID = "1"
STORE_KEY = "listener.name.ssl.ssl.keystore.location"
LOOKS = 24  # new connections, each to whichever process: all to one of two once in eight million times


class TlsClient(RawClient):
    """A raw client with alice's certificate; its answers show that the connection lives."""

    def __init__(self, scene: TlsScene) -> None:
        super().__init__(scene.by_certificate, "alice")
        context = ssl.create_default_context(cafile=str(scene.trust))
        context.load_cert_chain(scene.alice_store)
        self.socket: ssl.SSLSocket = context.wrap_socket(self.socket, server_hostname="localhost")

    @property
    def certificate(self) -> bytes:
        """The listener's certificate."""
        return self.socket.getpeercert(binary_form=True) or b""

    def lives(self) -> bool:
        """Return whether a request is answered."""
        fields = {"client_software_name": "raw", "client_software_version": "1"}
        return bool(self.ask(API_VERSIONS, 3, **fields).api_keys)


def certificate_now(scene: TlsScene) -> bytes:
    """Return the certificate that a new connection is shown."""
    context = ssl.create_default_context(cafile=str(scene.trust))
    host, _, port = scene.kustos.bootstrap.rpartition(":")
    plain = socket.create_connection((host, int(port)))
    with context.wrap_socket(plain, server_hostname="localhost") as link:
        return link.getpeercert(binary_form=True) or b""


def shown(scene: TlsScene, certificate: bytes, look: Callable[[TlsScene], bytes] = certificate_now) -> bool:
    """Return whether every process shows new connections this certificate."""
    return all(look(scene) == certificate for _ in range(LOOKS))


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kafka: KafkaNode
) -> Iterator[TlsScene]:
    made = TlsScene(tmp_path_factory.mktemp("reload"), kafka, request.param)
    with made.kustos:
        yield made


def put(scene: TlsScene, path: Path) -> bytes:
    """Replace a store by one of the same names; return its certificate in DER."""
    holder = scene.node_certificate()
    fresh = holder.write(path.with_suffix(".new"), STORE_PASSWORD)
    fresh.replace(path)
    return holder.certificate.public_bytes(Encoding.DER)


def complaints(scene: TlsScene, words: str) -> int:
    return sum(words in line for line in scene.log.splitlines() if "not in force" in line)


@pytest.mark.behaviour("B263")
def test_changed_files_serve_new_connections_and_leave_old_ones_alone(scene: TlsScene) -> None:
    clients = [TlsClient(scene) for _ in range(4)]
    assert all(client.lives() for client in clients)
    new = put(scene, scene.node_store)
    wait_until(lambda: shown(scene, new), what="new connections are shown the new certificate")
    assert all(client.lives() for client in clients)
    assert all(client.certificate != new for client in clients)
    newer = TlsClient(scene)
    assert newer.lives()
    for client in (*clients, newer):
        client.socket.close()


def test_a_bad_file_leaves_the_old_in_force_and_is_reported(scene: TlsScene) -> None:
    before, good = certificate_now(scene), scene.node_store.read_text()
    known = complaints(scene, "ssl.allow.dn.changes")
    scene.authority.issue("another name").write(scene.node_store, STORE_PASSWORD)
    wait_until(lambda: complaints(scene, "ssl.allow.dn.changes") > known, what="the other name is reported")
    scene.node_store.write_text("nothing")
    wait_until(lambda: complaints(scene, "has 0 private keys") > 0, what="the bad file is reported")
    assert shown(scene, before)
    scene.node_store.write_text(good)


def alter(scene: TlsScene, value: Path | None, resource: str = NODE_ID) -> tuple[int, str]:
    """Have the key store of a listener changed; return the error code and its text."""
    config = AlterableConfig(
        name=STORE_KEY,
        config_operation=i8(DELETE if value is None else SET),
        value=None if value is None else str(value),
    )
    asked = AlterConfigsResource(resource_type=i8(BROKER), resource_name=resource, configs=(config,))
    with scene.administrator() as administrator:
        answer = administrator.ask(
            INCREMENTAL_ALTER_CONFIGS, 1, resources=(asked,), validate_only=False
        ).responses[0]
    return int(answer.error_code), answer.error_message or ""


def on_ssl(scene: TlsScene) -> bytes:
    client = TlsClient(scene)
    with client.socket:
        return client.certificate


def test_another_store_is_put_in_force_by_an_administrator(scene: TlsScene) -> None:
    other = scene.directory / "other.pem"
    new = put(scene, other)
    client, before = TlsClient(scene), certificate_now(scene)
    assert alter(scene, other) == (0, "")
    wait_until(lambda: shown(scene, new, on_ssl), what="the new store is in force")
    # of this listener, and no other
    assert certificate_now(scene) == before
    assert client.lives()
    client.socket.close()
    renewed = put(scene, other)
    wait_until(lambda: shown(scene, renewed, on_ssl), what="its file is followed")
    assert alter(scene, None) == (0, "")
    wait_until(lambda: shown(scene, before, on_ssl), what="the store of the file is in force again")


@pytest.mark.behaviour("B264")
def test_what_cannot_be_put_in_force_is_refused(scene: TlsScene) -> None:
    before = on_ssl(scene)
    stranger = Authority("stranger").issue("somebody").write(scene.directory / "s.pem", STORE_PASSWORD)
    for value, resource, told in (
        (scene.directory / "none.pem", NODE_ID, "no such file"),
        (stranger, NODE_ID, "ssl.allow.dn.changes"),
        (scene.node_store, "", "for one node only"),
    ):
        code, text = alter(scene, value, resource)
        assert (code, told in text) == (INVALID_REQUEST, True), text
    assert shown(scene, before, on_ssl)


def test_sighup_puts_a_store_of_the_file_in_force(scene: TlsScene) -> None:
    other, first = scene.directory / "third.pem", on_ssl(scene)
    new = put(scene, other)
    file = scene.kustos.properties_file
    former = file.read_text()
    file.write_text(f"{former}{STORE_KEY}={other}\n")
    assert scene.kustos.server is not None
    os.kill(scene.kustos.server.pid, signal.SIGHUP)
    wait_until(lambda: shown(scene, new, on_ssl), what="the new store is in force")
    assert "change only with a restart" not in scene.log
    file.write_text(f"{former}{STORE_KEY}={scene.directory / 'none.pem'}\n")
    os.kill(scene.kustos.server.pid, signal.SIGHUP)
    wait_until(lambda: "the settings were not reloaded" in scene.log, what="the bad file is reported")
    assert shown(scene, new, on_ssl)
    file.write_text(former)
    os.kill(scene.kustos.server.pid, signal.SIGHUP)
    wait_until(lambda: shown(scene, first, on_ssl), what="the first store is in force again")


def test_a_store_of_the_log_outlives_a_restart(scene: TlsScene) -> None:
    other, first = scene.directory / "fourth.pem", on_ssl(scene)
    new = put(scene, other)
    assert alter(scene, other) == (0, "")
    scene.kustos.stop()
    scene.kustos.start()
    assert shown(scene, new, on_ssl)
    assert alter(scene, None) == (0, "")
    wait_until(lambda: shown(scene, first, on_ssl), what="the store of the file is in force again")
