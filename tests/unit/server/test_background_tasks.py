"""Every background task of a node is started by `kustos.client.supervision`, and a test breaks it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from testkit.paths import ROOT
from tests.unit.server.test_background_failures import SCENARIOS

SOURCES = ROOT / "src" / "kustos"
HELPER = "client/supervision.py"
STARTS = {"create_task", "ensure_future", "Thread"}
STARTERS = {"supervised", "one_shot", "_supervise", "_spawn", "failed"}

AWAITED = "the caller awaits it and gets its error"
THREAD_OF_A_CALL = "a thread for one call, whose outcome, also an error, comes to the caller"

UNSUPERVISED = {
    "client/connection.py:_prolong": AWAITED,
    "client/kerberos/tickets.py:in_thread": AWAITED,
    "client/quorum/forwarding.py:_unless_moved": AWAITED,
    "client/refreshed.py:_begin": "callers await it; an error that is no `ClientError` is counted as well",
    "client/refreshed.py:in_a_thread": THREAD_OF_A_CALL,
    "gateway/apis/acls.py:begin": AWAITED,
    "gateway/apis/audited_changes.py:serve": AWAITED,
    "gateway/apis/purgatory.py:_operation": AWAITED,
    "gateway/apis/purgatory.py:outcomes": AWAITED,
    "gateway/listener/gateway.py:_opening": AWAITED,
    "gateway/listener/login_threads.py:_begin": THREAD_OF_A_CALL,
    "gateway/session/client_session.py:_hold": "its callback closes the connection after an error",
    "gateway/store/large_work.py:run": AWAITED,
    "gateway/upstream/all_topics.py:_begin": "callers await it; its callback logs an error",
    "gateway/upstream/in_flight.py:_scanned": AWAITED,
    "gateway/upstream/in_flight.py:drain_own": AWAITED,
    "gateway/workers/channel.py:data_received": "an error closes the channel, which fences the worker",
    "gateway/workers/pool.py:start": AWAITED,
    "server/authorization/life.py:start": AWAITED,
    "server/callbacks.py:close_in_thread": THREAD_OF_A_CALL,
    "server/http.py:read": AWAITED,
    "server/lifecycle.py:run_node": AWAITED,
    "server/log_lines.py:_has_thread": "the thread of the log itself, which catches every error",
    "server/quorum.py:start": "after an error the metadata is unknown: it denies everything from then on",
    "server/workers/process.py:_waits_for_writer": AWAITED,
}
"""Function → why it may start a task or a thread by itself."""


def functions() -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions of a node's code by their names, those within others too."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if name == HELPER or name.startswith(("pipeline/", "cli/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{node.name}", node


def calls(function: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = node.func
            if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in names:
                yield node


def test_only_named_functions_start_tasks_by_themselves() -> None:
    found = {name for name, function in functions() if any(calls(function, STARTS))}
    assert found == set(UNSUPERVISED)


def test_each_background_task_has_a_test_that_breaks_it() -> None:
    names = {
        argument.value
        for _, function in functions()
        for call in calls(function, STARTERS)
        if isinstance(argument := call.args[0], ast.Constant)
    }
    assert names == set(SCENARIOS)


def test_the_list_of_sources_is_the_code_of_a_node() -> None:
    assert Path(SOURCES / HELPER).is_file()
    assert sum(1 for _ in functions()) > 1_000
