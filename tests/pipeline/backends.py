"""Which tests run over Spark Connect: all that use a session, but for those named here."""

import os
from typing import Final

import pytest

IS_CONNECT: Final = os.environ.get("KUSTOS_TEST_SPARK") == "connect"

CLASSIC_ONLY: Final = {
    "test_stream.py": "a stream runs in the driver, a Connect session is refused",
    "test_kills.py": "a driver is killed together with its Spark",
    "test_delta.py": "a driver is killed together with its Spark, which has Delta's extension",
}
"""Files of tests that need a driver with a Spark of its own, and why."""

CONNECT_ONLY: Final = {"test_refused_over_connect.py": "what a Connect session cannot do"}
"""Files of tests that have nothing to look at in a classic session, and why."""


def runs_here(item: pytest.Item) -> bool:
    """Return whether a test says something about the kind of session that this run has."""
    if not IS_CONNECT:
        return item.path.name not in CONNECT_ONLY
    return "spark" in getattr(item, "fixturenames", ()) and item.path.name not in CLASSIC_ONLY
