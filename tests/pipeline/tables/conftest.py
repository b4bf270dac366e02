"""What tests of tables share."""

import pytest

from kustos.pipeline import places
from kustos.pipeline.tables import delta, runs
from kustos.pipeline.tables import transaction as transactions


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies leaves what the system has; the power does not fail here."""
    for module in (delta, places, runs, transactions):
        monkeypatch.setattr(module, "sync", lambda path: None)
