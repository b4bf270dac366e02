"""How a ZooKeeper is reached, and that no write ever leaves the client."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import KeeperState

from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.migrate.zookeeper_client import ReadOnlyClient, WriteRefusedError, client_of
from kustos.cli.migrate.zookeeper_settings import ZookeeperSettings

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"

WRITES: dict[str, Callable[[Any], object]] = {
    "create": lambda client: client.create_async("/a", b""),
    "create2": lambda client: client.create_async("/a", b"", include_data=True),
    "delete": lambda client: client.delete_async("/a"),
    "set": lambda client: client.set_async("/a", b""),
    "set_acls": lambda client: client.set_acls_async("/a", []),
    "reconfig": lambda client: client.reconfig_async("", "", "", 0),
    "transaction": lambda client: client.transaction().commit_async(),
    "add_auth": lambda client: client.add_auth_async("digest", "a:b"),
}


def refusal_of(name: str, client: ReadOnlyClient) -> BaseException | None:
    """The refusal, which the library hands on in its own way for some requests."""
    try:
        answer: Any = WRITES[name](client)
    except WriteRefusedError as error:
        return error
    assert isinstance(answer.exception, WriteRefusedError)
    return answer.exception


@pytest.mark.parametrize("name", WRITES)
def test_whatever_is_no_read_is_not_sent(name: str) -> None:
    client = ReadOnlyClient(hosts="127.0.0.1:1")
    client._state = KeeperState.CONNECTED
    assert "is not a read" in str(refusal_of(name, client))
    assert not client._queue
    asking = KazooClient(hosts="127.0.0.1:1")
    asking._state = KeeperState.CONNECTED
    WRITES[name](asking)
    assert asking._queue, "the library would have sent it"


def test_a_server_that_has_lost_its_ensemble_is_not_asked() -> None:
    settings = ZookeeperSettings.of("zk1/kafka", None)
    client = client_of(settings)
    assert (client.read_only, client.chroot) == (False, "/kafka")


def test_without_kazoo_it_is_said_what_to_install() -> None:
    program = (
        "import sys; sys.modules['kazoo'] = None; from kustos.cli.run import run; "
        "sys.exit(run(['migrate', 'zookeeper://zk1', '.']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert "`pip install 'kustos[zookeeper]'`" in done.stderr


@pytest.mark.parametrize("read", ["get_async", "get_children_async", "exists_async", "sync_async"])
def test_reads_pass(read: str) -> None:
    client = ReadOnlyClient(hosts="127.0.0.1:1")
    client._state = KeeperState.CONNECTED
    getattr(client, read)("/a")
    assert len(client._queue) == 1


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("zk1", "zk1", ""),
        ("zk1:2181,zk2:2181/kafka", "zk1:2181,zk2:2181", "/kafka"),
        ("[::1]:2181/a/b-ü", "[::1]:2181", "/a/b-ü"),
        ("127.0.0.1:2181/", "127.0.0.1:2181", ""),
    ],
)
def test_a_connect_string_is_that_of_kafka(text: str, hosts: str, chroot: str) -> None:
    settings = ZookeeperSettings.of(text, None)
    assert (settings.hosts, settings.chroot) == (hosts, chroot)
    assert settings.name == f"ZooKeeper at {hosts}{chroot}"


@pytest.mark.parametrize(
    "text", ["", "/kafka", "a b", "zk1:x", "zk1,,zk2", "zk1//a", "zk1/a/", "zk1/a//b", "zk1:2181:1"]
)
def test_what_is_no_connect_string_is_a_usage_error(text: str) -> None:
    with pytest.raises(CommandError) as raised:
        ZookeeperSettings.of(text, None)
    assert raised.value.failure.exit_code == ExitCode.USAGE


def settings_of(tmp_path: Path, text: str) -> ZookeeperSettings:
    file = tmp_path / "zookeeper.properties"
    file.write_text(text)
    return ZookeeperSettings.of("zk1", file)


def test_logins_are_read_and_never_shown(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        f'kustos.zookeeper.sasl.jaas.config={MODULE} required username="u" password="the-secret";\n'
        "kustos.zookeeper.digest=u:the-secret\nzookeeper.session.timeout.ms=7\n"
        "zookeeper.connection.timeout.ms=8\nzookeeper.ssl.keystore.password=ignored\n",
    )
    assert (settings.sasl_username, settings.sasl_password) == ("u", "the-secret")
    assert (settings.digest, settings.session_timeout_ms, settings.connection_timeout_ms) == (
        "u:the-secret", 7, 8,
    )  # fmt: skip
    assert (settings.is_tls, settings.keystore_password) == (False, None)
    assert "the-secret" not in repr(settings)


TLS = (
    "zookeeper.ssl.client.enable=TRUE\nzookeeper.ssl.truststore.type=PEM\n"
    "zookeeper.ssl.truststore.location=/ca.pem\n"
)
OWN = (
    "zookeeper.ssl.keystore.type=PEM\nzookeeper.ssl.keystore.location=/own.pem\n"
    "zookeeper.ssl.keystore.password=the-secret\n"
)


def test_tls_checks_host_names_unless_told_not_to(tmp_path: Path) -> None:
    plain = settings_of(tmp_path, TLS)
    assert (plain.is_tls, plain.checks_host_name) == (True, True)
    assert (plain.truststore, plain.keystore, plain.keystore_password) == (Path("/ca.pem"), None, None)
    own = settings_of(tmp_path, f"{TLS}{OWN}zookeeper.ssl.endpoint.identification.algorithm=\n")
    assert (own.keystore, own.keystore_password) == (Path("/own.pem"), "the-secret")
    assert own.checks_host_name is False
    client = client_of(own)
    assert (client.use_ssl, client.check_hostname, client.ca) == (True, False, "/ca.pem")
    assert (client.certfile, client.keyfile, client.keyfile_password) == (
        "/own.pem", "/own.pem", "the-secret",
    )  # fmt: skip
    assert client_of(plain).check_hostname is True
    assert (client_of(ZookeeperSettings("zk1")).use_ssl, client_of(plain).verify_certs) == (False, True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"{OWN}zookeeper.ssl.client.enable=true", "zookeeper.ssl.truststore.location"),
        ("zookeeper.session.timeout.ms=0", "zookeeper.session.timeout.ms"),
        ("zookeeper.connection.timeout.ms=soon", "zookeeper.connection.timeout.ms"),
        ("kustos.zookeeper.digest=the-secret", "kustos.zookeeper.digest"),
        ("kustos.zookeeper.sasl.jaas.config=the-secret", "kustos.zookeeper.sasl.jaas.config"),
        (f'kustos.zookeeper.sasl.jaas.config={MODULE} required password="the-secret";', "username"),
        ('kustos.zookeeper.sasl.jaas.config=a.B required username="u" password="the-secret";', MODULE),
        ("zookeeper.ssl.client.enable=yes", "zookeeper.ssl.client.enable"),
        ("zookeeper.ssl.client.enable=true", "zookeeper.ssl.truststore.location"),
        (
            "zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location=a.jks",
            "zookeeper.ssl.truststore.type",
        ),
    ],
)
def test_a_wrong_setting_is_named_without_its_secret(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(CommandError) as raised:
        settings_of(tmp_path, text + "\n")
    assert raised.value.failure.exit_code == ExitCode.USAGE
    assert named in raised.value.failure.message
    assert "the-secret" not in raised.value.failure.message
