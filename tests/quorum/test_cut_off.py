"""A node that is cut off decides by what it knows for a while, then denies, and comes back by itself."""

import json
import subprocess
import sys
from typing import Any

import pytest

from testkit.paths import ROOT
from testkit.processes import unshared
from testkit.quorum.nodes import UNKNOWN_TOPIC
from tests.quorum.cut_off import STALENESS_MS

REQUEST_TIMED_OUT = 7

"""A network of its own; who is not root becomes so within, if the kernel lets users have namespaces."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("cut")
    done = subprocess.run(
        [*unshared("net"), sys.executable, "-m", "tests.quorum.cut_off", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    story: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return story


def test_while_the_metadata_is_young_it_decides(told: dict[str, Any]) -> None:
    assert told["created before"] == [0, ""]
    assert (told["seen while young"], told["ready while young"]) == (UNKNOWN_TOPIC, True)
    assert told["scram before"]


def test_a_change_is_refused_with_a_clear_error(told: dict[str, Any]) -> None:
    code, message = told["created while cut"]
    assert code == REQUEST_TIMED_OUT
    assert "the metadata quorum did not complete the change within 1500 ms" in message
    assert told["seen by super user when old"] == REQUEST_TIMED_OUT


def test_when_it_is_too_old_everything_is_denied(told: dict[str, Any]) -> None:
    assert told["seen when old"] not in {UNKNOWN_TOPIC, 0}
    assert not told["scram when old"]
    assert told["metric"]
    assert told["staleness at closing"] >= STALENESS_MS
    assert {
        "the quorum is not followed for now",
        "the quorum is unreachable, decisions use old metadata",
        "the metadata is too old, everything but super users is denied until the quorum is back",
    } <= set(told["log"])


def test_it_comes_back_by_itself(told: dict[str, Any]) -> None:
    assert told["seen when mended"] == UNKNOWN_TOPIC
    assert told["scram when mended"]
    assert told["created when mended"] == [0, ""]
    assert told["seen of the new"]
    assert "the metadata is current again" in told["log"]


def test_early_listeners_serve_super_users_before_the_quorum_is_there(told: dict[str, Any]) -> None:
    early = told["early"]
    assert early["seen by admin"] == UNKNOWN_TOPIC
    assert early["seen by ann"] not in {UNKNOWN_TOPIC, 0}
    assert (early["ready"]["quorum"], early["ready"]["metadata"]) == (False, False)
