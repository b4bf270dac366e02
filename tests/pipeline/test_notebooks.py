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


def printed(notebook: Any) -> str:
    """Return all that the cells of a notebook show, as text."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            texts.append(output.get("text", ""))
            texts += [str(part) for part in output.get("data", {}).values()]
    return "\n".join(texts)


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_runs_and_shows_what_it_promises(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in quick_environment().items():
        monkeypatch.setenv(key, value)
    notebook = read(name)
    client = NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(EXAMPLES)}})
    shown = printed(client.execute())
    for text in SHOWN[name]:
        assert text in shown


def test_every_notebook_is_run_and_kept_clean() -> None:
    assert {path.name for path in EXAMPLES.glob("*.ipynb")} == SHOWN.keys()
    for name in SHOWN:
        for cell in read(name).cells:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None
