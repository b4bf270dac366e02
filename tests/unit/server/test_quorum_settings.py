"""Settings of cluster mode, and their errors."""

import pytest

from kustos.client import NodeAddress
from kustos.client.errors import SettingsError
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.quorum import QuorumSettings

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD = "correct horse"

LEAST = {
    "node.id": "7",
    "metadata.log.dir": "/var/lib/kustos",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
}
KRAFT = LEAST | {
    "kustos.metadata.store": "kraft",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093,[::1]:9094",
}
SASL = KRAFT | {
    "kustos.quorum.security.protocol": "SASL_PLAINTEXT",
    "kustos.quorum.sasl.mechanism": "SCRAM-SHA-512",
    "kustos.quorum.sasl.jaas.config": f'{MODULE} required username="kustos" password="{PASSWORD}";',
}


def quorum(properties: dict[str, str]) -> QuorumSettings:
    found = settings_from(properties, {}).quorum
    assert found is not None
    return found


def test_metadata_is_a_nodes_own_by_default() -> None:
    assert settings_from(LEAST, {}).quorum is None
    assert settings_from(KRAFT | {"kustos.metadata.store": "embedded"}, {}).quorum is None


def test_the_least_of_cluster_mode() -> None:
    found = quorum(KRAFT)
    assert found.client.bootstrap_servers == (NodeAddress("127.0.0.1", 9093), NodeAddress("::1", 9094))
    assert (found.client.security_protocol, found.client.sasl) == ("PLAINTEXT", None)
    assert (found.max_staleness_ms, found.change_timeout_ms) == (300_000, 30_000)
    # as controllers have it among each other
    assert found.client.limits.request_timeout_ms == found.client.limits.connect_timeout_ms == 2_000


def test_all_of_cluster_mode() -> None:
    found = quorum(
        SASL
        | {
            "controller.quorum.request.timeout.ms": "5000",
            "kustos.metadata.max.staleness.ms": "60000",
            "kustos.quorum.change.timeout.ms": "9000",
        }
    )
    assert found.client.sasl is not None
    assert (found.client.sasl.mechanism, found.client.sasl.username) == ("SCRAM-SHA-512", "kustos")
    assert found.client.limits.request_timeout_ms == 5_000
    assert (found.max_staleness_ms, found.change_timeout_ms) == (60_000, 9_000)
    assert PASSWORD not in repr(settings_from(SASL, {}))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"controller.quorum.bootstrap.servers": None}, "`controller.quorum.bootstrap.servers` is not set"),
        ({"controller.quorum.bootstrap.servers": "nowhere"}, "`nowhere` has no port, write it as"),
        ({"controller.quorum.bootstrap.servers": "a:" + "9" * 5_000}, "a port is a number from 1 to 65535"),
        ({"kustos.metadata.store": "zookeeper"}, "use `embedded` or `kraft`"),
        ({"kustos.metadata.max.staleness.ms": "100"}, "from 2000"),
        ({"kustos.quorum.sasl.mechanism": None}, "`kustos.quorum.sasl.mechanism` is not set"),
        ({"kustos.quorum.sasl.jaas.config": None}, "`kustos.quorum.sasl.jaas.config` is not set"),
        ({"kustos.quorum.sasl.jaas.config": f"{MODULE} required;"}, "gives no `username`"),
        ({"kustos.quorum.request.timeout.ms": "5"}, "is not a setting of kustos"),
        (
            {
                "listeners": "PLAINTEXT://127.0.0.1:9092,ADMIN://127.0.0.1:9500",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ADMIN:PLAINTEXT",
                "controller.listener.names": "ADMIN",
            },
            "`ADMIN` is a listener of controllers",
        ),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, str | None], words: str) -> None:
    given = SASL | changed
    with pytest.raises(SettingsError, match=words) as raised:
        settings_from({key: value for key, value in given.items() if value is not None}, {})
    assert PASSWORD not in str(raised.value)
