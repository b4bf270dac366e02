"""A sink that takes nothing: with `deny` requests are refused at once, and the node says why."""

from pathlib import Path

import pytest

from testkit.guarded.raw_client import RawClient
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until

LIST_GROUPS = 16
UNKNOWN_SERVER_ERROR = -1


@pytest.mark.parametrize("mode", ["enforce", "shadow", "off"])
def test_what_cannot_be_recorded_is_refused_in_every_mode(
    kafka: KafkaNode, tmp_path: Path, mode: str
) -> None:
    properties = {
        "kustos.authorization.mode": mode,
        "kustos.audit.sinks": "log4j",
        # takes no byte, as a full disk
        "kustos.audit.log4j.file": "/dev/full",
        "kustos.audit.log4j.level": "TRACE",
        "kustos.audit.on.full": "deny",
    }
    settings = KustosSettings(
        protocol="PLAINTEXT", super_users=("ANONYMOUS",), audit=False, properties=properties
    )
    node = KustosNode(tmp_path / "kustos", kafka.bootstrap, settings).start()
    try:
        with RawClient(node.bootstrap, "client") as client:
            answer = client.ask(LIST_GROUPS, 4, states_filter=())
            assert int(answer.error_code) == 0, "nothing was to be recorded before"
            wait_until(lambda: "kustos_audit_full 1.0" in node.metrics(), what="the sink fails")
            answer = client.ask(LIST_GROUPS, 4, states_filter=())
            assert (int(answer.error_code), answer.groups) == (UNKNOWN_SERVER_ERROR, ())
        assert "kustos_audit_refused_requests_total 1.0" in node.metrics()
        assert not node.is_ready()
        assert "every request is refused" in (node.directory / "kustos.log").read_text()
    finally:
        node.kill()
