"""The fsync of a running node's audit file fails: no event is lost, and none is taken for written.

The node's own system call fails, by a library before libc, while a file of the test exists.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import figure
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until

LIST_GROUPS = 16
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fsync(int descriptor) {
    char link[64], path[4096];
    const char *flag = getenv("FAILING_FSYNC");
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    if (strstr(path, "/_audit-") && flag && access(flag, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return real(descriptor);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled."""
    folder = tmp_path_factory.mktemp("shim")
    source = folder / "fsync.c"
    source.write_text(SHIM)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", str(folder / "fsync.so"), str(source), "-ldl"], check=True
    )
    return folder / "fsync.so"


@pytest.fixture
def flag(tmp_path: Path) -> Path:
    """The file whose existence makes fsyncs fail."""
    return tmp_path / "fsync-fails"


@pytest.fixture
def node(tmp_path: Path, kafka: KafkaNode, shim: Path, flag: Path) -> Iterator[KustosNode]:
    settings = KustosSettings(protocol="PLAINTEXT", super_users=("ANONYMOUS",))
    made = KustosNode(tmp_path / "kustos", kafka.bootstrap, settings)
    made.before_command = ("env", f"LD_PRELOAD={shim}", f"FAILING_FSYNC={flag}")
    try:
        yield made.start()
    finally:
        made.kill()


def ask(client: RawClient) -> None:
    assert int(client.ask(LIST_GROUPS, 4, states_filter=()).error_code) == 0


def failures(node: KustosNode) -> float:
    return figure(node, "kustos_audit_sink_failures_total")


def waits(node: KustosNode) -> float:
    return figure(node, "kustos_audit_queue_events")


@pytest.mark.parametrize("is_killed", [False, True], ids=["healed", "killed"])
def test_events_of_a_failed_fsync_are_written_again(node: KustosNode, flag: Path, is_killed: bool) -> None:
    with RawClient(node.bootstrap, "client") as client:
        ask(client)
        wait_until(lambda: waits(node) == 0, what="the first event is written")
        flag.touch()
        ask(client)
        wait_until(lambda: failures(node) > 2, what="the sink has tried it three times")
        assert waits(node) == 1, "the event counts as written by none of the tries"
        assert not node.is_ready()
        if is_killed:
            node.kill()
        flag.unlink()
        if is_killed:
            node.start()
    wait_until(node.is_ready, what="the node is ready")
    assert node.stop() == 0
    files = sorted(node.audit_directory.glob("*.jsonl"))
    assert not [path.name for path in files if path.name.startswith("_")], "all are shown"
    # half a line would be none of JSON
    events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert len({event["event_id"] for event in events if event["api_name"] == "ListGroups"}) == 2
