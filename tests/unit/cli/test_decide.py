"""`kustos decide`: one answer a request, in order; what is not a request is an ERROR and nothing else."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from kustos.acl.forms import LINE_CHARACTERS_MAX, AclForm, read_acls
from kustos.cli.decisions import ALONE_BYTES
from kustos.cli.failures import ExitCode
from kustos.cli.requests import READ_BYTES, Lines, json_items
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from tests.unit.cli.test_terminal import converse

FIELDS = ("principal", "host", "operation", "resource_type", "resource_name")
ASKED = dict(zip(FIELDS, ("User:alice", "10.0.0.1", "READ", "TOPIC", "orders"), strict=True))
ACL = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission_type": "ALLOW",
}
RULE = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, "
    "principal=User:alice, host=*, operation=READ, permissionType=ALLOW])"
)
ALLOWED = {"result": "ALLOWED", "rule": RULE}
DENIED = {"result": "DENIED", "rule": "DefaultDeny"}


@pytest.fixture
def acls(tmp_path: Path) -> Path:
    file = tmp_path / "acls.jsonl"
    file.write_text(json.dumps(ACL) + "\n")
    return file


def asked(**changes: Any) -> str:
    return json.dumps(ASKED | changes)


def decide(acls: Path, requests: bytes | str, *more: str) -> list[dict[str, str]]:
    """Return the answers to lines of requests."""
    data = requests if isinstance(requests, bytes) else requests.encode()
    file, answers = acls.with_name("requests.jsonl"), acls.with_name("answers.jsonl")
    file.write_bytes(data)
    code = run(["decide", "--acls", str(acls), "--requests", str(file), "--answers", str(answers), *more])
    assert code == ExitCode.OK
    return [json.loads(line) for line in answers.read_bytes().decode().splitlines()]


def test_requests_are_answered_in_order(acls: Path) -> None:
    lines = [asked(), asked(operation="WRITE"), asked(resource_name=None), asked(operation="DESCRIBE")]
    assert decide(acls, "\n".join(lines) + "\n") == [ALLOWED, DENIED, ALLOWED, ALLOWED]
    assert decide(acls, "\n".join(lines)) == [ALLOWED, DENIED, ALLOWED, ALLOWED], "the last line has no end"
    assert decide(acls, "") == []
    assert decide(acls, b"\xef\xbb\xbf" + asked().encode() + b"\r\n") == [ALLOWED]


def test_answers_for_a_spreadsheet_hold_no_formula(acls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = acls.with_name("requests.jsonl")
    file.write_text("\n".join([asked(), asked(operation=';=cmd|" /C calc"!A0')]))
    assert run(["decide", "--acls", str(acls), "--requests", str(file), "-o", "spreadsheet"]) == ExitCode.OK
    out = capsys.readouterr().out.removeprefix("\ufeff")
    rows = [
        row for separator in ",;\t" for row in csv.reader(io.StringIO(out, newline=""), delimiter=separator)
    ]
    assert ["ALLOWED", RULE] in rows
    assert ";'=cmd|" in out
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("output", ["table", "csv", "spreadsheet", "json", "yaml", "json-lines"])
def test_no_answer_commands_a_terminal(acls: Path, output: str) -> None:
    (acls.with_name("requests.jsonl")).write_text(asked(operation="\x1b[2J\x9b\u202e"))
    line = ["decide", "--acls", str(acls), "--super-users", "User:x", "--no-allow-everyone-if-no-acl-found"]
    exit_code, screen = converse(
        [*line, "--requests", str(acls.with_name("requests.jsonl")), "-o", output], []
    )
    assert exit_code == ExitCode.USAGE
    assert "ERROR" in screen
    assert all(character.isprintable() for character in screen.replace("\r\n", "")), screen


def test_acls_come_from_one_place_whichever_it_is(acls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    format_directory(
        acls.with_name("meta"), acls=[read_acls(acls.read_text(), AclForm.JSON_LINES, "")[0].binding]
    )
    file, directory = acls.with_name("requests.jsonl"), acls.with_name("meta")
    file.write_text(asked())
    answered = ["decide", "--requests", str(file)]
    for place in (["--acls", str(acls)], ["--metadata-dir", str(directory)], ["--acls", str(directory)]):
        assert run([*answered, *place]) == ExitCode.OK
        assert json.loads(capsys.readouterr().out) == ALLOWED, place
    for places in ([], ["--acls", str(acls), "--metadata-dir", str(directory)]):
        assert run([*answered, *places]) == ExitCode.USAGE
        assert "source of ACLs" in capsys.readouterr().err


def test_the_brokers_settings_can_be_told(acls: Path) -> None:
    root = [{"result": "ALLOWED", "rule": "SuperUser"}]
    assert decide(acls, asked(principal="User:root"), "--super-users", "User:root;User:x") == root
    other = asked(resource_name="else")
    assert decide(acls, other, "--allow-everyone-if-no-acl-found") == [
        {"result": "ALLOWED", "rule": "DefaultAllow"}
    ]
    assert decide(acls, asked(principal="User:bob"), "--allow-everyone-if-no-acl-found") == [DENIED]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (asked() + "x", "not JSON"),
        (f"{asked()},{asked()}", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("null", "not an object"),
        ('"abcde"', "not an object"),
        (json.dumps([*ASKED.items()]), "not an object"),
        ("{}", "`principal` is missing"),
        (json.dumps({n: v for n, v in ASKED.items() if n != "resource_name"}), "`resource_name` is missing"),
        (asked(more="x"), "`more` is not a field"),
        (asked()[:-1] + ', "principal": "User:bob"}', "`principal` occurs twice"),
        (asked(principal="alice"), "principal `alice` is not written as `User:name`"),
        (asked(principal="User:*"), "means everybody"),
        (asked(principal=None), "principal `null`"),
        (asked(principal=7), "principal `7`"),
        (asked(host=True), "host `true`"),
        (asked(operation=["READ"]), "write `operation` in quotes"),
        (asked(operation={"a": 1}), "operation"),
        (asked(operation="FLY"), "operation `FLY` is no"),
        (asked(operation="read"), "operation `read` is no"),
        (asked(operation="ANY"), "operation `ANY` is no"),
        (asked(resource_type="UNKNOWN"), "resource_type `UNKNOWN` is no"),
        (asked(resource_name=1.5), "write `resource_name` in quotes"),
        (asked(resource_name=["orders"]), "write `resource_name` in quotes"),
        (asked(resource_name="\ud800"), "half of a character"),
    ],
)
def test_what_is_no_request_is_an_error_that_says_why_and_the_rest_goes_on(
    acls: Path, line: str, words: str
) -> None:
    first, error, last = decide(acls, f"{asked()}\n{line}\n{asked()}\n")
    assert first == last == ALLOWED
    assert error["result"] == "ERROR"
    assert error["rule"].startswith("Error(request 2: ")
    assert words in error["rule"]


def test_bytes_that_are_no_text_are_an_error_of_their_line(acls: Path) -> None:
    broken = asked(resource_name="caf?").encode().replace(b"?", b"\xe9")
    first, error, last = decide(acls, b"\n".join([asked().encode(), broken, asked(host="é").encode()]))
    assert first == last == ALLOWED
    assert "not text in UTF-8" in error["rule"]


@pytest.mark.parametrize(
    "length", [LINE_CHARACTERS_MAX - 200, LINE_CHARACTERS_MAX + 1, 3 * LINE_CHARACTERS_MAX]
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_beyond_the_limit_is_an_error_wherever_reads_cut_it(acls: Path, length: int, end: str) -> None:
    long = asked(resource_name="x" * length)
    found = decide(acls, f"{asked()}\n{long}\n{asked()}\n{long}{end}")
    long_result = "ERROR" if length > LINE_CHARACTERS_MAX else "DENIED"
    assert [answer["result"] for answer in found] == ["ALLOWED", long_result, "ALLOWED", long_result]


def test_no_cut_between_two_reads_loses_or_splits_a_line(tmp_path: Path) -> None:
    lines = [asked(resource_name="é" * (number % 977)) for number in range(3_000)]
    file = tmp_path / "requests"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert file.stat().st_size > 2 * READ_BYTES
    with file.open("rb") as stream:
        read = [item for batch in Lines(stream.fileno()).batches() for item in json_items(batch)]
    assert read == [tuple(json.loads(line).values()) for line in lines]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps(ACL) + "\n" + json.dumps(ACL | {"operation": "FLY"}), ["line 2", "`FLY`"]),
        (json.dumps(ACL | {"principal": "alice"}), ["line 1", "`alice`"]),
        (json.dumps(ACL)[:-1], ["line 1", "JSON"]),
    ],
)
def test_acls_that_are_not_understood_decide_nothing(
    acls: Path, text: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    acls.write_text(text)
    requests, answers = acls.with_name("requests"), acls.with_name("answers")
    requests.write_text(asked())
    arguments = ["--acls", str(acls), "--requests", str(requests), "--answers", str(answers)]
    assert run(["decide", *arguments]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert all(word in said.err for word in words), said.err
    assert not said.out
    assert not answers.exists()


def test_csv_in_and_out(acls: Path, tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.csv", tmp_path / "answers.csv"
    with requests.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["host", "principal", "resource_name", "resource_type", "operation"])
        rows.writerow(["10.0.0.1", "User:alice", "orders", "TOPIC", "READ"])
        rows.writerow(["10.0.0.1", "User:alice", "", "TOPIC", "READ"])
        rows.writerow(["", "User:alice", "orders", "TOPIC", "READ"])
        rows.writerow(["10.0.0.1", "User:alice", "or\nders", "TOPIC", "READ"])
        stream.write('10.0.0.1,"User:alice"x,orders,TOPIC,READ\n\na,b\n')
        rows.writerow(["10.0.0.1", "User:alice", "orders", "TOPIC", "READ"])
    arguments = ["--acls", str(acls), "--requests", str(requests), "--answers", str(answers)]
    assert run(["decide", *arguments]) == ExitCode.OK
    with answers.open(newline="") as stream:
        header, *found = csv.reader(stream)
    assert header == ["result", "rule"]
    assert [result for result, _ in found] == [
        *["ALLOWED", "ALLOWED", "ERROR", "DENIED", "ERROR", "ERROR", "ERROR", "ALLOWED"]
    ]
    assert found[0][1] == RULE


def test_parquet_in_and_out(acls: Path, tmp_path: Path) -> None:
    requests, answers = tmp_path / "requests.parquet", tmp_path / "answers.parquet"
    rows = [ASKED, ASKED | {"resource_name": None}, ASKED | {"operation": None}, ASKED] * 5_000
    parquet.write_table(pa.Table.from_pylist(rows), requests)
    arguments = ["--acls", str(acls), "--requests", str(requests), "--answers", str(answers)]
    assert run(["decide", *arguments]) == ExitCode.OK
    found = parquet.read_table(answers)
    assert found.column_names == ["result", "rule"]
    assert found["result"].to_pylist() == ["ALLOWED", "ALLOWED", "ERROR", "ALLOWED"] * 5_000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("requests.csv", "principal,host\n", "columns"),
        ("requests.csv", "", "columns"),
        ("requests.parquet", "PAR", "not a parquet file"),
        ("nowhere/requests", None, "cannot read"),
        (".", None, "directory"),
    ],
)
def test_files_of_another_kind_are_refused(
    acls: Path, name: str, text: str | None, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    requests = acls.parent / name
    if text is not None:
        requests.write_text(text)
    assert run(["decide", "--acls", str(acls), "--requests", str(requests)]) == ExitCode.USAGE
    assert words in capsys.readouterr().err


def test_answers_never_overwrite_what_is_read(acls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    requests = acls.with_name("requests")
    requests.write_text(asked())
    for target in (requests, acls):
        arguments = ["--acls", str(acls), "--requests", str(requests), "--answers", str(target)]
        assert run(["decide", *arguments]) == ExitCode.USAGE
        assert "overwrite" in capsys.readouterr().err
    assert run(["decide", "--acls", "-", "--requests", "-"]) == ExitCode.USAGE


def test_scripts_can_ask_for_an_exit_code(acls: Path) -> None:
    requests, answers = acls.with_name("requests"), acls.with_name("answers")
    for text, code in (
        (asked(), ExitCode.OK),
        (asked() + "\n{}", ExitCode.NO),
        (asked(host="x"), ExitCode.OK),
    ):
        requests.write_text(text)
        arguments = ["--acls", str(acls), "--requests", str(requests), "--answers", str(answers)]
        assert run(["decide", *arguments, "--exit-code"]) == code


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_many_requests_are_answered_in_order_by_any_number_of_workers(
    acls: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kustos.cli.decisions.ALONE_BYTES", 1000)
    lines = [asked(), asked(host="x" * 99, resource_name="else"), "?", asked(principal="User:b")] * 5_000
    found = decide(acls, "\n".join(lines), "--workers", str(workers))
    assert found[::4] == [ALLOWED] * 5_000
    assert found[1::4] == found[3::4] == [DENIED] * 5_000
    numbers = [answer["rule"].split(":")[0] for answer in found[2::4]]
    assert numbers == [f"Error(request {number}" for number in range(3, 20_001, 4)]


SETTINGS = ("--super-users", "", "--no-allow-everyone-if-no-acl-found")
"""All that the ACLs do not say, so that nothing need be told of it."""


def command(acls: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "kustos", "decide", "--acls", str(acls), "--requests", "-", *more]


@pytest.mark.parametrize("form", ["json-lines", "csv"])
def test_a_pipe_that_waits_has_its_answer(acls: Path, form: str) -> None:
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command(acls, "--input-format", form), **piped) as process:  # type: ignore[call-overload]
        line = asked() if form == "json-lines" else ",".join(ASKED.values())
        if form == "csv":
            process.stdin.write(",".join(ASKED).encode() + b"\n")
        for _ in range(3):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == ALLOWED
        process.stdin.close()
        assert process.wait() == 0


def test_a_pipe_that_waits_after_very_much_has_its_answer(acls: Path) -> None:
    lines, ends = 40_000, threading.Event()
    assert lines * len(asked()) > ALONE_BYTES
    with subprocess.Popen(
        command(acls, "--workers", "2"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = process.stdin

        def write() -> None:
            stdin.write(f"{asked()}\n".encode() * lines)
            stdin.flush()
            ends.wait(60)
            stdin.close()

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(lines):
            assert json.loads(process.stdout.readline()) == ALLOWED
        ends.set()
        writer.join()
        assert process.stdout.read() == b""
        assert process.wait() == 0


def test_a_reader_that_leaves_is_no_news(acls: Path) -> None:
    lines = acls.with_name("lines")
    lines.write_text(f"{asked()}\n" * 20_000)
    with (
        lines.open("rb") as requests,
        subprocess.Popen(
            command(acls, *SETTINGS), stdin=requests, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        os.close(process.stdout.fileno())
        assert process.stderr.read() == b""
        process.stdout = None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_answers_in_every_format_say_the_same(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "acls.yaml").write_text("acls: []\n")
    (tmp_path / "asked.jsonl").write_text("no request\n" * count)
    common = ["decide", "--acls", str(tmp_path / "acls.yaml"), "--requests", str(tmp_path / "asked.jsonl")]

    def told(output: str) -> str:
        answers = tmp_path / f"{output}.answers"
        assert run([*common, "--answers", str(answers), "-o", output]) == (ExitCode.USAGE if count else 0)
        return answers.read_text()

    lines = [json.loads(line) for line in told("json-lines").splitlines()]
    assert [line["result"] for line in lines] == ["ERROR"] * count
    assert json.loads(told("json")) == {"answers": lines}
    assert yaml.safe_load(told("yaml")) == {"answers": lines}
    assert list(csv.DictReader(io.StringIO(told("csv")))) == lines
    head, *rows = told("table").splitlines()
    assert head.split() == ["result", "rule"]
    assert [row.split("  ", 1)[0] for row in rows] == ["ERROR"] * count
