"""`kustos features` and `kafka-features` ask one Kafka for the same levels: both do it, or hear the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from testkit.cli import SETTINGS, USERS, Cli, login
from testkit.kafka import KafkaNode, KafkaTools, NodeFactory
from testkit.waiting import wait_until

RELEASE, LEVEL = "4.2-IV1", 29
"""No record kind came with it, so the level below can be gone back to."""


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(replace(SETTINGS, release_version=RELEASE))


@pytest.mark.parametrize(
    "asked",
    [
        ("downgrade", 28, "--dry-run"),
        ("downgrade", 29),
        ("downgrade", 22),
        ("downgrade", 22, "--unsafe"),
        ("downgrade", 22, "--unsafe", "--dry-run"),
        ("downgrade", 30),
        ("downgrade", 30, "--unsafe"),
        ("upgrade", 28),
        ("upgrade", 30, "--dry-run"),
    ],
    ids=str,
)
def test_what_changes_nothing_is_answered_alike(
    asked: tuple[str, int, str],
    node: KafkaNode,
    kafka_tools: KafkaTools,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    way, level, *flags = asked
    arguments = (way, "--feature", f"metadata.version={level}", *flags)
    kustos = Cli(node, tmp_path, capsys)
    properties = kustos.properties(login("admin", USERS["admin"]))
    where = ("--bootstrap-server", node.bootstrap, "--command-config", str(properties))
    theirs = kafka_tools.run("FeatureCommand", *where, *arguments)
    ours = kustos("features", *arguments)
    assert ours.exit_code == theirs.exit_code, (ours, theirs)
    if theirs.exit_code:
        # theirs is `Could not downgrade metadata.version to 22. <what the controller said>`
        why = theirs.stdout.splitlines()[0].partition(f" to {level}. ")[2]
        assert why
        assert why in ours.stderr
        assert ours.error_code == "INVALID_UPDATE_VERSION"
    else:
        assert ours.document["done"] == ("--dry-run" not in flags)
    assert level_of(node, tmp_path, capsys) == RELEASE


def test_a_level_that_can_be_left_is_left(
    node: KafkaNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kustos = Cli(node, tmp_path, capsys)

    def is_at(level: str) -> bool:
        return level_of(node, tmp_path, capsys) == level

    lowered = kustos("features", "downgrade", "--feature", f"metadata.version={LEVEL - 1}")
    assert lowered.exit_code == 0, lowered
    wait_until(lambda: is_at("4.2-IV0"), what="the broker has read of the lower level")
    raised = kustos("features", "upgrade", "--release-version", RELEASE)
    assert raised.exit_code == 0, raised
    wait_until(lambda: is_at(RELEASE), what="the broker has read of the former level")


def level_of(node: KafkaNode, directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    features = Cli(node, directory, capsys)("features", "describe").document["features"]
    [level] = [each["finalized_version_level"] for each in features if each["feature"] == "metadata.version"]
    return str(level)
