"""Settings of worker processes, and their errors."""

import pytest

from kustos.client.errors import SettingsError
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.workers import WorkerSettings
from kustos.server.workers.process import worker_settings_of

LEAST = {
    "node.id": "7",
    "metadata.log.dir": "/var/lib/kustos",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
}
KRAFT = {
    "kustos.metadata.store": "kraft",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}


def test_a_node_is_one_process_unless_it_is_told_otherwise() -> None:
    assert settings_from(LEAST, {}).workers == WorkerSettings(count=1, apply_timeout_ms=3_000)
    expected = LEAST | {"kustos.workers": "4", "kustos.workers.apply.timeout.ms": "500"}
    assert settings_from(expected, {}).workers == WorkerSettings(count=4, apply_timeout_ms=500)


@pytest.mark.parametrize("count", ["0", "65", "many"])
def test_the_number_of_workers_is_bounded(count: str) -> None:
    with pytest.raises(SettingsError, match=r"`kustos\.workers`"):
        settings_from(LEAST | {"kustos.workers": count}, {})


def test_a_node_that_follows_a_quorum_may_have_workers() -> None:
    for count in (1, 2):
        found = settings_from(LEAST | KRAFT | {"kustos.workers": str(count)}, {})
        assert (found.workers.count, found.quorum is not None) == (count, True)


def test_a_node_with_an_authorizer_of_somebody_elses_is_one_process() -> None:
    mine = {"authorizer.class.name": "tests.unit.server.authorizers.Held"}
    with pytest.raises(SettingsError, match=r"`kustos\.workers` is `2`.*authorizer of your own"):
        settings_from(LEAST | mine | {"kustos.workers": "2"}, {})
    off = {"kustos.authorization.mode": "off", "kustos.workers": "2"}
    assert settings_from(LEAST | off, {}).workers.count == 2


def test_a_worker_has_audit_files_of_its_own_and_no_http() -> None:
    node = LEAST | {
        "kustos.workers": "2",
        "kustos.http.listener": "127.0.0.1:9090",
        "kustos.audit.sinks": "json",
        "kustos.audit.json.dir": "/var/lib/kustos/audit",
    }
    found = worker_settings_of(node, 2)
    assert found.http is None
    assert str(found.audit.json_directory) == "/var/lib/kustos/audit/worker-2"
    assert found.listeners == settings_from(node, {}).listeners
