"""Which tests run over Spark Connect is known before they run there."""

import ast
from pathlib import Path
from typing import Final

from tests.pipeline.backends import CLASSIC_ONLY, CONNECT_ONLY, LONG

FOLDER: Final = Path(__file__).parent

CLASSIC_CALLS: Final = frozenset({"sparkContext", "_jvm", "_jsc", "_jsparkSession"})
"""What a Spark Connect session refuses, as PySpark names it."""

CLASSIC_FIXTURES: Final = frozenset({"near"})
"""Fixtures of this folder that use it."""

OTHER_SESSIONS: Final = CLASSIC_ONLY.keys() | CONNECT_ONLY.keys()


def classic_names_in(text: str) -> frozenset[str]:
    """Return which of these calls and fixtures a Python text uses."""
    nodes = list(ast.walk(ast.parse(text)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return CLASSIC_CALLS & (names | attributes) | CLASSIC_FIXTURES & arguments


def test_tests_that_need_a_classic_session_are_left_out_over_spark_connect() -> None:
    found = {
        path.name: names
        for path in sorted(FOLDER.rglob("test_*.py"))
        if (names := classic_names_in(path.read_text())) and path.name not in OTHER_SESSIONS
    }
    assert found == {}, "name these files in `tests/pipeline/backends.py`"


def test_files_left_out_over_spark_connect_exist() -> None:
    files = {path.name for path in FOLDER.rglob("test_*.py")}
    assert OTHER_SESSIONS | LONG.keys() <= files
