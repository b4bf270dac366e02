"""`kustos metadata history`: when ACLs came and went, and who may have asked."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Decision,
    Rule,
    RuleKind,
)
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.gateway.audit.events import AuditEvents, RequestEvents
from kustos.metadata.inspection.requesters import AdminEvent, AuditTrailError, admin_events
from kustos.metadata.inspection.timeline import Timeline
from kustos.metadata.records import AccessControlEntryRecord
from kustos.protocol.exchange import Decided
from kustos.runtime import FileSystemStorage
from kustos.wire.api_keys import ApiKey
from tests.unit.cli.cli_sets import Said
from tests.unit.metadata.inspection_support import (
    BATCHES,
    T0_MS,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
)


def event(
    api: str, principal: str, time_ms: int, acl_offset: int, decision: str = "ALLOWED", **more: int | None
) -> str:
    return json.dumps(
        more
        | {
            "schema_version": 1,
            "event_id": f"{api} {principal} {time_ms}",
            "time_ms": time_ms,
            "principal_type": "User",
            "principal_name": principal,
            "host": "10.0.0.9",
            "api_name": api,
            "client_id": None,
            "decision": decision,
            "acl_offset": acl_offset,
        }
    )


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert run(["metadata", "history", *arguments, "-o", "json"]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def changes(document: Any) -> list[tuple[str, int, str]]:
    return [(each["change"], each["offset"], each["resource_name"]) for each in document["changes"]]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return directory_with(tmp_path, log_0=log_bytes())


def test_every_creation_and_deletion_is_told_in_order(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = told(capsys, str(directory))
    assert document["since"] == {"offset": -1, "timestamp": "2023-11-14T22:13:20.000Z", "first": True}
    assert changes(document) == [
        ("CREATED", 3, "t1"),
        ("CREATED", 4, "t2"),
        ("CREATED", 5, "t3"),
        ("DELETED", 7, "t2"),
        ("CREATED", 10, "t4"),
    ]
    assert document["changes"][3] == {
        "change": "DELETED",
        "offset": 7,
        "timestamp": "2023-11-14T22:13:23.000Z",
        "id": "AAAAAAAAAAAAAAAAAAAAAg",
        "resource_type": "TOPIC",
        "resource_name": "t2",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission_type": "ALLOW",
        "requesters": [],
    }


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--topic", "t2"], ["t2", "t2"]),
        (["--principal", "User:bob"], ["t4"]),
        (["--topic", "t2", "--topic", "t4", "--principal", "User:bob"], ["t4"]),
        (["--group", "t2"], []),
        (["--topic", "t", "--resource-pattern-type", "literal"], []),
        (["--cluster"], []),
    ],
)
def test_only_matching_acls_are_told(
    arguments: list[str], names: list[str], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = told(capsys, str(directory), *arguments)
    assert [each["resource_name"] for each in document["changes"]] == names


def test_a_name_asks_for_all_that_governs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = AccessControlEntryRecord(UUID(int=70), 2, "*", 3, "User:w", "*", 3, 3)
    prefix = AccessControlEntryRecord(UUID(int=71), 2, "pay", 4, "User:p", "*", 3, 3)
    directory = directory_with(tmp_path, log_0=log_bytes((*BATCHES, (wide, prefix))))
    document = told(capsys, str(directory), "--topic", "payments")
    assert [each["principal"] for each in document["changes"]] == ["User:w", "User:p"]


def test_what_was_there_at_the_beginning_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = snapshot_bytes(acl(1), acl(2), last_contained_ms=T0_MS - 5000)
    tail = log_bytes(((acl(5),),), base_offset=11, epoch=2)
    directory = directory_with(tmp_path, log_11=tail, snapshot_11_1=snapshot)
    document = told(capsys, str(directory))
    assert document["since"] == {"offset": 10, "timestamp": "2023-11-14T22:13:15.000Z", "first": False}
    assert changes(document) == [("PRESENT", 10, "t1"), ("PRESENT", 10, "t2"), ("CREATED", 12, "t5")]
    said = " ".join(Said(capsys)("metadata", "history", str(directory), "--topic", "t1")[1].split())
    assert "reaches back to offset 10" in said
    assert "there ALLOW READ to User:alice from * on TOPIC t1" in said


def test_who_asked_is_found_in_the_audit_trail(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trail = tmp_path / "audit"
    trail.mkdir()
    lines = [
        event("CreateAcls", "ann", T0_MS + 990, 0),  # t1, offsets 1 to 3
        event("Fetch", "eve", T0_MS + 1990, 3),
        event("CreateAcls", "eve", T0_MS + 1990, 3, "DENIED"),
        event("DeleteAcls", "eve", T0_MS + 1990, 3),
        event("CreateAcls", "ben", T0_MS + 1995, 3),  # t2 and t3, offsets 4 to 6
        event("CreateAcls", "eve", T0_MS + 1996, 6),  # too late: the log had reached t3 already
        event("DeleteAcls", "cid", T0_MS + 2999, 6),
    ]
    # a sink that failed in between has written one twice
    lines.insert(3, lines[0])
    worker = trail / "worker-1"
    worker.mkdir()
    (worker / "audit-20231114T221320Z-000001.jsonl").write_text("\n".join(lines) + "\n")
    (trail / "_audit-20231114T221320Z-000002.jsonl").write_text('{"api_name":"CreateAcls","dec')
    document = told(capsys, str(directory), "--audit", str(trail))
    asked = {each["offset"]: [who["principal"] for who in each["requesters"]] for each in document["changes"]}
    assert asked[3] == ["User:ann"]
    assert asked[4] == asked[5] == ["User:ben"], "ann's request has made t1 already"
    assert asked[7] == ["User:cid", "User:eve"], "both may have: neither is ruled out"
    assert asked[10] == ["User:eve"]
    assert run(["metadata", "history", str(directory), "--topic", "t1", "--audit", str(trail)]) == ExitCode.OK
    assert "requested by User:ann from 10.0.0.9 (about)\n" in capsys.readouterr().out
    nobody = tmp_path / "other.jsonl"
    nobody.write_text(event("CreateAcls", "ann", T0_MS - 60_000, 0) + "\n")
    assert run(["metadata", "history", str(directory), "--audit", str(nobody)]) == ExitCode.OK
    assert "the audit files name no requester" in capsys.readouterr().out


def asked_of(document: Any) -> dict[int, list[tuple[str, str]]]:
    return {
        each["offset"]: [(who["principal"], who["match"]) for who in each["requesters"]]
        for each in document["changes"]
    }


def test_who_asked_is_known_for_certain_where_events_tell_the_offset(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # all at one moment: only the offsets tell them apart
    lines = [
        event("CreateAcls", "ann", T0_MS, 0, change_offset=4),
        event("CreateAcls", "ben", T0_MS, 0, change_offset=1),
        event("CreateAcls", "eve", T0_MS, 0, change_offset=None),
        event("CreateAcls", "eve", T0_MS + 1, 0, change_offset=99),
        event("DeleteAcls", "eve", T0_MS, 0, change_offset=4),
        event("DeleteAcls", "ann", T0_MS, 0, change_offset=7),
        event("DeleteAcls", "eve", T0_MS + 2, 0),
    ]
    trail = tmp_path / "a.jsonl"
    trail.write_text("\n".join(lines) + "\n")
    document = told(capsys, str(directory), "--audit", str(trail))
    bases = {
        each.offset: each.batch_base_offset for each in Timeline(directory, FileSystemStorage()).changes()
    }
    assert (bases[3], bases[4], bases[5], bases[7]) == (1, 4, 4, 7)
    assert asked_of(document) == {
        3: [("User:ben", "EXACT")],
        4: [("User:ann", "EXACT")],
        5: [("User:ann", "EXACT")],
        7: [("User:ann", "EXACT")],
        # nobody says that it was theirs: whoever does not say where theirs is may have
        10: [("User:eve", "ABOUT")],
    }
    assert document["changes"][0]["requesters"][0]["change_offset"] == 1
    assert run(["metadata", "history", str(directory), "--topic", "t1", "--audit", str(trail)]) == ExitCode.OK
    assert "requested by User:ben from 10.0.0.9 (exact)\n" in capsys.readouterr().out


def test_an_offset_that_several_claim_or_that_is_of_another_time_is_not_certain(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        # another node's, whose log is its own
        event("CreateAcls", "ann", T0_MS, 0, change_offset=1),
        event("CreateAcls", "ben", T0_MS + 1, 0, change_offset=1),
        # of a log that was here before
        event("CreateAcls", "cid", T0_MS - 86_400_000, 0, change_offset=4),
    ]
    trail = tmp_path / "a.jsonl"
    trail.write_text("\n".join(lines) + "\n")
    asked = asked_of(told(capsys, str(directory), "--audit", str(trail)))
    assert asked[3] == [("User:ben", "ABOUT"), ("User:ann", "ABOUT")]
    assert asked[4] == []


@pytest.mark.parametrize(("api_key", "creates"), [(ApiKey.CREATE_ACLS, True), (ApiKey.DELETE_ACLS, False)])
def test_an_audit_event_as_kustos_writes_it_is_read(api_key: ApiKey, creates: bool) -> None:
    context = AuthorizableRequestContext(
        KafkaPrincipal.parse("User:ann:b"), "10.0.0.9", request_type=api_key, client_id="tool"
    )
    decided = Decided(
        Action(ResourceType.CLUSTER, "kafka-cluster", AclOperation.ALTER),
        Decision(AuthorizationResult.ALLOWED, Rule(RuleKind.SUPER_USER)),
        listing=False,
        name="kafka-cluster",
    )
    entry = RequestEvents(7, T0_MS, context, (decided,), 41, 43)
    (line,) = AuditEvents(1, 99).json_lines(entry)
    (read,) = admin_events([line + "\n"])
    assert read == AdminEvent(read.event_id, T0_MS, 41, creates, "User:ann:b", "10.0.0.9", "tool", 43)
    assert len(read.event_id) == 36


def test_a_login_as_a_user_with_the_name_of_a_request_is_no_request() -> None:
    line = json.dumps({"event_type": "LOGIN", "claimed_name": "CreateAcls"})
    assert list(admin_events([line + "\n"])) == []


@pytest.mark.parametrize(
    "line", ['{"api_name":"CreateAcls"}\n', "CreateAcls\n", '["DeleteAcls"]\n', '{"api_name":"DeleteAcls",\n']
)
def test_a_line_that_is_no_event_is_refused(
    line: str, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AuditTrailError, match="line 2"):
        list(admin_events(["{}\n", line]))
    (tmp_path / "a.jsonl").write_text(line)
    arguments = ["metadata", "history", str(directory), "--audit", str(tmp_path / "a.jsonl")]
    assert run(arguments) == ExitCode.USAGE
    assert "line 1 is not an audit event" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["trial"], ["metadata", "history", "DIR", "--audit"]])
@pytest.mark.parametrize(
    "text", ["hello\nworld\n", "hello", '{"a":1}\n', "[2026-01-01] INFO Principal = User:a\n"]
)
def test_a_file_of_another_kind_is_refused_by_its_first_foreign_line(
    text: str, command: list[str], directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(directory) if word == "DIR" else word for word in command]
    file = tmp_path / "a.jsonl"
    for before in (
        "",
        "\n",
        event("Fetch", "eve", T0_MS, 3) + "\n",
        '{"torn":' + event("Fetch", "eve", T0_MS, 3) + "\n",
    ):
        file.write_text(before + text)
        assert run([*words, str(file)]) == ExitCode.USAGE
        assert f"`{file}`: line {before.count(chr(10)) + 1} is not an audit event" in capsys.readouterr().err
        file.write_text(before + '{"event_id":"')
        assert run([*words, str(file)]) == ExitCode.OK


@pytest.mark.parametrize("name", ["nothing.jsonl", "."])
def test_audit_files_that_are_not_there_are_told(
    name: str, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metadata", "history", str(directory), "--audit", str(tmp_path / name)]) == ExitCode.USAGE
    assert str(tmp_path / name).rstrip(".").rstrip("/") in capsys.readouterr().err


def test_people_read_one_change_after_the_other(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = Said(capsys)
    assert " ".join(told("metadata", "history", str(directory), "--topic", "t2")[1].split()) == (
        "the log is whole since its beginning at 2023-11-14T22:13:20.000Z "
        "2023-11-14T22:13:22.000Z offset 4 created ALLOW READ to User:alice from * on TOPIC t2 "
        "2023-11-14T22:13:23.000Z offset 7 deleted ALLOW READ to User:alice from * on TOPIC t2"
    )
    assert "no matching ACL was there since" in told("metadata", "history", str(directory), "--topic", "x")[1]


def test_programs_get_one_line_for_each_change(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["metadata", "history", str(directory), "--topic", "t2"]
    exit_code, out, _ = Said(capsys).piped(*arguments)
    assert exit_code == ExitCode.OK
    assert [" ".join(line.split()) for line in out.splitlines()[2:]] == [
        "time offset change resource principal host permission operation",
        "2023-11-14T22:13:22.000Z 4 created topic t2 User:alice * ALLOW READ",
        "2023-11-14T22:13:23.000Z 7 deleted topic t2 User:alice * ALLOW READ",
    ]
    assert Said(capsys).piped(*arguments, "-o", "name")[1] == "4\n7\n"
