"""A node with fewer workers than before recovers the audit rings and files of the others."""

import json
from pathlib import Path

import pytest

from kustos.server.process import NODE, open_audit_log
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.workers import worker_name
from kustos.server.workers.process import worker_settings_of
from testkit.gateway.audit import CONTEXT, decided


def properties(directory: Path, workers: int, **more: str) -> dict[str, str]:
    return {
        "node.id": "7",
        "metadata.log.dir": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
        "kustos.workers": str(workers),
        "kustos.audit.sinks": "json",
        "kustos.audit.json.dir": str(directory / "audit"),
        **more,
    }


async def killed_amid_writing(settings: KustosSettings, name: str) -> None:
    """Write one event, take another, and leave everything as a kill does."""
    log = await open_audit_log(settings, name, "cluster")
    [writer] = log.writers
    log.record(CONTEXT, [decided(f"{name}-written")], 7)
    writer.end()
    await log._tasks[0]
    log.record(CONTEXT, [decided(f"{name}-waiting")], 7)
    log._rings.close()
    lock = writer.sink._lock  # type: ignore[attr-defined]
    lock.release()
    writer.sink._roller.cancel()  # type: ignore[attr-defined]


def topics_in(directory: Path) -> list[str]:
    """Return the topics in the files that a pipeline reads."""
    paths = directory.glob("audit/**/audit-*.jsonl")
    return sorted(
        json.loads(line)["resource_name"] for path in paths for line in path.read_text().splitlines()
    )


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("workers", [1, 2])
async def test_with_fewer_workers_nothing_stays_hidden(tmp_path: Path, workers: int) -> None:
    many = properties(tmp_path, 4)
    names = [worker_name(index) for index in range(1, 5)]
    for index, name in enumerate(names, 1):
        await killed_amid_writing(worker_settings_of(many, index), name)
    assert not topics_in(tmp_path)
    few = properties(tmp_path, workers)
    log = await open_audit_log(settings_from(few, {}), NODE, "cluster")
    living = names[:workers] if workers > 1 else []
    for index, name in enumerate(living, 1):
        await (await open_audit_log(worker_settings_of(few, index), name, "cluster")).close()
    await log.close()
    assert topics_in(tmp_path) == sorted(
        f"{name}-{what}" for name in names for what in ("waiting", "written")
    )
    assert names_in(tmp_path / "audit-journals") == sorted([NODE, *living])
    for name in names:
        assert not [each for each in names_in(tmp_path / "audit" / name) if each.startswith("_audit-")]


async def test_in_mode_drop_no_journal_is_created(tmp_path: Path) -> None:
    settings = settings_from(properties(tmp_path, 1, **{"kustos.audit.on.full": "drop"}), {})
    log = await open_audit_log(settings, NODE, "cluster")
    log.record(CONTEXT, [decided("one")], 7)
    await log.close()
    assert topics_in(tmp_path) == ["one"]
    assert names_in(tmp_path) == ["audit"]
