"""The notebooks of the examples run from top to bottom, and are kept without what they printed."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from testkit.spark_quick import quick_environment

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    "who_needs_what.ipynb": ["User:auditor", "orders.", "proven: True"],
    "replay_a_change.ipynb": ["LOST", "GAINED", "User:shop", "What the replayed ACLs would change"],
}
"""What somebody must see in each."""

TIMEOUT_S = 600


def read(name: str) -> Any:
    return nbformat.read(EXAMPLES / name, as_version=4)  # type: ignore[no-untyped-call]


def forget() -> Any:
    return nbformat.v4.new_code_cell("%reset -f")  # type: ignore[no-untyped-call]


def printed(cells: list[Any]) -> str:
    """Return all that cells of a notebook show, as text."""
    texts = []
    for cell in cells:
        for output in cell.get("outputs", []):
            texts.append(output.get("text", ""))
            texts += [str(part) for part in output.get("data", {}).values()]
    return "\n".join(texts)


@pytest.mark.timeout(TIMEOUT_S + 60)
def test_notebooks_run_and_show_what_they_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other in one kernel, whose names are forgotten in between: a JVM more is dear."""
    for key, value in quick_environment().items():
        monkeypatch.setenv(key, value)
    notebooks = {name: [forget(), *read(name).cells] for name in SHOWN}
    cells = [cell for each in notebooks.values() for cell in each]
    for number, cell in enumerate(cells):
        cell["id"] = str(number)
    whole = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    client = NotebookClient(whole, timeout=TIMEOUT_S, resources={"metadata": {"path": str(EXAMPLES)}})
    done = client.execute().cells
    for name, each in notebooks.items():
        own, done = done[: len(each)], done[len(each) :]
        for text in SHOWN[name]:
            assert text in printed(own)


def test_every_notebook_is_run_and_kept_clean() -> None:
    assert {path.name for path in EXAMPLES.glob("*.ipynb")} == SHOWN.keys()
    for name in SHOWN:
        for cell in read(name).cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
