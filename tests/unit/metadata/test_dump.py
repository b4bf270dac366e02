"""`kustos metadata dump`: all that is in a file is shown, but for secrets; nothing in it is an error."""

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kustos.cli.failures import ExitCode
from kustos.cli.output import StreamFormat
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from kustos.metadata.inspection.moments import moment_ms, moment_text
from kustos.metadata.inspection.shown import REDACTED, field_text, shown_record, shown_value
from kustos.metadata.records import ConfigRecord, encode_record
from kustos.wire.record_batch import Record, RecordBatch, batch_of
from tests.unit.metadata.inspection_support import BATCHES, SECRETS, T0_MS, directory_with, log_bytes, user


def dumped(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[Any], str]:
    capsys.readouterr()
    exit_code = run(["metadata", "dump", *arguments, "-o", "json-lines"])
    said = capsys.readouterr()
    return exit_code, [json.loads(line) for line in said.out.splitlines()], said.err


def test_every_record_has_its_place_and_kafkas_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    exit_code, lines, error = dumped(capsys, str(directory))
    assert (exit_code, error) == (ExitCode.OK, "")
    assert [line["offset"] for line in lines] == list(range(1 + sum(map(len, BATCHES))))
    assert {line["epoch"] for line in lines} == {1}
    assert lines[0]["type"] == "LEADER_CHANGE"
    assert lines[1]["value"] == {"name": "metadata.version", "featureLevel": 30}
    assert lines[1]["timestamp"] == moment_text(T0_MS + 1000) == "2023-11-14T22:13:21.000Z"
    assert lines[3]["value"] == {
        "id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "resourceType": 2,
        "resourceName": "t1",
        "patternType": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permissionType": 3,
    }
    topic = lines[8]
    assert (topic["type"], topic["version"], topic["value"]) == ("TOPIC_RECORD", 0, None)
    assert topic["size_bytes"] == len(b"\x01\x02\x00a topic\x00")


def test_no_form_shows_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    for output in StreamFormat:
        run(["metadata", "dump", str(directory), "-o", output.value])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        run(["metadata", "dump", str(directory)])
    said = capsys.readouterr().out
    # each form shows the three, the one for terminals too, and names show nothing
    assert said.count(REDACTED) == 3 * len(StreamFormat)
    for secret in SECRETS:
        for form in (secret.decode(), secret.hex(), base64.b64encode(secret).decode(), repr(secret)):
            assert form not in said
    assert shown_record(user()).value == {
        "name": "alice",
        "mechanism": 1,
        "salt": REDACTED,
        "storedKey": REDACTED,
        "serverKey": REDACTED,
        "iterations": 4096,
    }


@pytest.mark.parametrize(
    ("value", "kind", "version"),
    [
        (b"\x01\x63\x00whatever", "kind 99", 0),
        (b"\x01\x12\x07whatever", "ACCESS_CONTROL_ENTRY_RECORD", 7),
        (b"\x01\x12\x00short", "ACCESS_CONTROL_ENTRY_RECORD", 0),
        (b"\x01\x12", "(malformed)", None),
        (None, "(no value)", None),
    ],
)
def test_what_nobody_knows_is_shown_by_number(value: bytes | None, kind: str, version: int | None) -> None:
    shown = shown_value(value)
    assert (shown.kind, shown.version, shown.value) == (kind, version, None)
    assert shown.note


def test_a_record_that_nobody_knows_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = batch_of(1, 1, T0_MS, [b"\x01\x63\x00whatever"]).encode()
    directory = directory_with(tmp_path, log_0=log_bytes(()) + unknown)
    exit_code, lines, _ = dumped(capsys, str(directory))
    assert exit_code == ExitCode.OK
    assert (lines[1]["type"], lines[1]["size_bytes"]) == ("kind 99", 11)


def test_an_unfinished_write_is_told_of_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes() + b"\x00" * 20)
    assert run(["metadata", "dump", str(directory)]) == ExitCode.FAILED
    assert "the last 20 bytes, from" in capsys.readouterr().err
    assert run(["metadata", "dump", str(directory), "--ignore-torn-tail"]) == ExitCode.OK
    assert "the last 20 bytes, from" in capsys.readouterr().err
    exit_code, lines, error = dumped(capsys, str(directory))
    assert (exit_code, len(lines)) == (ExitCode.FAILED, 11)
    assert "unfinished write" in error
    exit_code, lines, error = dumped(capsys, str(directory), "--ignore-torn-tail")
    assert (exit_code, len(lines)) == (ExitCode.OK, 11)
    assert "unfinished write" in error


def test_bytes_that_cannot_be_read_end_the_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(log_bytes())
    first = len(log_bytes(()))
    data[first + 80] ^= 0xFF
    directory = directory_with(tmp_path, log_0=bytes(data))
    exit_code, lines, error = dumped(capsys, str(directory))
    assert exit_code == ExitCode.FAILED
    assert [line["offset"] for line in lines] == [0]
    assert f"from byte {first} on, where offset 1 is due" in error
    assert "kustos metadata verify" in error


def test_a_document_of_what_cannot_be_read_to_its_end_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes() + b"\xff" * 100)
    assert run(["metadata", "dump", str(directory), "-o", "json"]) == ExitCode.FAILED
    said = capsys.readouterr().out
    assert '"offset": 10' in said, "what can be read is printed"
    with pytest.raises(json.JSONDecodeError):
        json.loads(said)


def test_every_format_says_the_same_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(directory_with(tmp_path, log_0=log_bytes()))
    _, lines, _ = dumped(capsys, directory)

    def printed(output: str) -> str:
        assert run(["metadata", "dump", directory, "-o", output]) == ExitCode.OK
        return capsys.readouterr().out

    assert json.loads(printed("json")) == {"records": lines}
    assert yaml.safe_load(printed("yaml")) == {"records": lines}
    assert printed("name").split() == [str(line["offset"]) for line in lines]
    rows = list(csv.DictReader(io.StringIO(printed("csv"), newline="")))
    assert [json.loads(row["value"] or "null") for row in rows] == [line["value"] for line in lines]
    assert [(row["offset"], row["type"], row["note"]) for row in rows] == [
        (str(line["offset"]), line["type"], line.get("note", "")) for line in lines
    ]
    table = printed("table").splitlines()
    assert len(table) == len(lines) + 1
    assert all(line["type"] in row for line, row in zip(lines, table[1:], strict=True))


def test_records_of_a_snapshot_have_no_offset_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    format_directory(tmp_path / "meta")
    assert run(["metadata", "dump", str(tmp_path / "meta"), "-o", "name"]) == ExitCode.OK
    snapshots = list((tmp_path / "meta").rglob("*.checkpoint"))
    assert snapshots
    capsys.readouterr()
    assert run(["metadata", "dump", *map(str, snapshots), "-o", "name"]) == ExitCode.OK
    assert capsys.readouterr().out == ""


def test_a_later_segment_says_which_of_its_offsets_is_due(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(log_bytes(base_offset=11, epoch=2))
    data[70] ^= 0xFF
    directory = directory_with(tmp_path, log_0=log_bytes(), log_11=bytes(data))
    exit_code, lines, error = dumped(capsys, str(directory))
    assert (exit_code, lines[-1]["offset"]) == (ExitCode.FAILED, 10)
    assert "from byte 0 on, where offset 11 is due" in error


def test_a_record_has_its_own_time_where_its_batch_gives_it_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = encode_record(BATCHES[0][0])
    records = (Record(0, value, timestamp_delta_ms=1000), Record(1, value, timestamp_delta_ms=2500))
    batch = RecordBatch(1, 1, records, last_offset_delta=1, base_timestamp_ms=T0_MS)
    _, lines, _ = dumped(capsys, str(directory_with(tmp_path, log_0=log_bytes(()) + batch.encode())))
    assert [line["timestamp"] for line in lines[1:]] == [
        "2023-11-14T22:13:21.000Z",
        "2023-11-14T22:13:22.500Z",
    ]


@pytest.mark.parametrize("name", ["nothing.txt", ""])
def test_what_is_no_metadata_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metadata", "dump", str(tmp_path / name)]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert ("there is no directory" if name else "it has no `__cluster_metadata-0`") in said


def test_a_file_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metadata", "dump", str(tmp_path / "0.log")]) == ExitCode.FAILED
    assert "0.log` cannot be read: no such file or directory" in capsys.readouterr().err


def test_codes_are_shown_to_people_as_names() -> None:
    acl = "ACCESS_CONTROL_ENTRY_RECORD"
    assert field_text(acl, "operation", 3) == "READ"
    assert field_text(acl, "operation", 99) == "99"
    assert field_text(acl, "resourceType", 4) == "CLUSTER"
    assert field_text("CONFIG_RECORD", "resourceType", 4) == "BROKER"
    assert field_text("USER_SCRAM_CREDENTIAL_RECORD", "mechanism", 2) == "SCRAM_SHA_512"
    assert field_text("USER_SCRAM_CREDENTIAL_RECORD", "iterations", 4096) == "4096"


@pytest.mark.parametrize(
    ("resource_type", "name", "value", "expected"),
    [
        (4, "listener.name.sasl.plain.sasl.jaas.config", "password=x", REDACTED),
        (4, "unheard.of", "secret", REDACTED),
        (4, "unheard.of", None, None),
        (4, "super.users", "User:admin", "User:admin"),
        (2, "retention.ms", "1000", "1000"),
    ],
)
def test_settings_of_brokers_are_not_shown(
    resource_type: int, name: str, value: str | None, expected: str | None
) -> None:
    shown = shown_record(ConfigRecord(resource_type, "", name, value))
    assert shown.value is not None
    assert shown.value["value"] == expected


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:00.250+01:00", 250),
        ("1969-12-31T23:59:59Z", -1000),
        ("2023-11-14T22:13:20.001999Z", T0_MS + 1),
    ],
)
def test_moments_are_utc_unless_they_name_a_zone(text: str, time_ms: int) -> None:
    assert moment_ms(text) == time_ms
    assert moment_ms(moment_text(time_ms)) == time_ms


def test_a_moment_that_no_calendar_holds_is_shown_as_its_number() -> None:
    assert moment_text(1 << 62) == f"{1 << 62} ms"
