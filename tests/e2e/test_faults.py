"""Brokers and workers are killed and paused, connections are cut and slowed: a short run of `make faults`."""

import pytest

from testkit.faults.run import Run
from testkit.faults.scene import FaultScene
from testkit.faults.schedule import Kind
from testkit.seeds import seed_of_run

pytestmark = pytest.mark.slow

ROUNDS, ROUND_S = 2, 16.0


def test_faults_lose_nothing_and_let_nothing_by(tmp_path_factory: pytest.TempPathFactory) -> None:
    told: list[str] = []
    with FaultScene(tmp_path_factory.mktemp("faults")) as scene:
        outcome = Run(scene, seed_of_run(), told.append).rounds(ROUNDS, ROUND_S)
    print(*told, outcome.figures, sep="\n")
    assert outcome.problems == []
    assert outcome.figures["records acknowledged"]
    assert outcome.figures["requests forwarded and decided again"]
    assert outcome.faults[Kind.KILL_NODE] == 1
    assert outcome.figures["faults"] > ROUNDS
