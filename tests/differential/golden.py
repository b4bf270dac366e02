"""Worlds with Kafka's recorded answers: what the comparison knows where no Java is.

    python -m tests.differential.golden     # records them again

A file is a world, each question followed by a line of `= ` and Kafka's answer.
"""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.oracle import Oracle
from testkit.differential.replay import answers_of_kafka
from testkit.differential.vocabularies import STYLES
from testkit.differential.worlds import Question, Step, from_lines, to_lines

GOLDEN = Path(__file__).parent / "golden"
CORPUS = Path(__file__).parent / "corpus"
BEYOND_KAFKA = "beyond-kafka"
SHAPE = Shape(acl_count=60, question_count=90)
STEPS_MIN = 200
ANSWER = "= "


def worlds() -> Iterator[tuple[str, list[Step]]]:
    """Yield what is recorded: the corpus, and the first large world of each style."""
    for path in sorted(CORPUS.glob("*.world")):
        if not path.stem.startswith(BEYOND_KAFKA):
            yield path.stem, list(from_lines(path.read_text(encoding="utf-8").splitlines()))
    for style in STYLES:
        makers = (WorldMaker(number, SHAPE) for number in itertools.count())
        large = (list(maker.steps()) for maker in makers if maker.style == style)
        yield f"style-{style}", next(steps for steps in large if len(steps) > STEPS_MIN)


def write(path: Path, steps: list[Step], answers: list[str]) -> None:
    rest = iter(answers)
    with path.open("w", encoding="utf-8") as file:
        for step in steps:
            file.writelines(f"{line}\n" for line in to_lines([step]))
            if isinstance(step, Question):
                file.write(f"{ANSWER}{next(rest)}\n")


def read(path: Path) -> tuple[list[Step], list[str]]:
    """Return the steps and the answers to those that ask."""
    lines = path.read_text(encoding="utf-8").split("\n")
    steps = list(from_lines(line for line in lines if not line.startswith(ANSWER)))
    return steps, [line.removeprefix(ANSWER) for line in lines if line.startswith(ANSWER)]


def main() -> int:
    GOLDEN.mkdir(exist_ok=True)
    with Oracle(256) as oracle:
        for name, steps in worlds():
            write(GOLDEN / f"{name}.golden", steps, answers_of_kafka(steps, oracle))
    return 0


if __name__ == "__main__":
    sys.exit(main())
