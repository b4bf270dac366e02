"""Every command has help, an example that can be read, and its place in the docs."""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from kustos import __version__
from kustos.acl import SUPPORTED_OPERATIONS
from kustos.cli.app import app
from kustos.cli.chooser import CHOICES, TASKS
from kustos.cli.failures import ExitCode
from kustos.cli.output import printable
from kustos.cli.reference import Command, commands, page
from kustos.cli.run import run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
WIDTH = 80

COMMANDS = list(commands())
by_path = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)


def test_the_reference_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "run `python -m kustos.cli.reference > docs/reference/cli.md`"
    assert "`None`" not in page()


@by_path
def test_every_command_has_help_with_an_example(command: Command) -> None:
    doc = inspect.getdoc(command.function)
    assert doc
    summary = doc.splitlines()[0]
    assert summary.endswith(".")
    assert len(summary) <= 60, "the list of commands would cut it"
    assert command.examples
    assert all(len(line) <= WIDTH - 4 for line in command.examples), "it would not fit a terminal"


@by_path
def test_every_example_is_a_command_line_of_that_command(command: Command) -> None:
    joined = "\n".join(command.examples).replace("\\\n", " ")
    words_before = f"kustos {command.path}".split()
    for line in joined.splitlines():
        words = [word for word in shlex.split(line) if "=..." not in word]
        assert words[: len(words_before)] == words_before
        known = page().split(f"## kustos {command.path}\n")[1].split("\n## ")[0]
        for word in words:
            if word.startswith("-") and word != "--help":
                assert f"`{word}`" in known, word


@by_path
def test_help_fits_a_terminal(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command.path.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "Examples:" in said
    assert all(len(line) <= WIDTH for line in said.splitlines()), said


@pytest.mark.parametrize(
    "arguments", [["acls", "fly"], ["users", "list"], ["users", "add", "a", "--iterations", "1"]]
)
def test_a_usage_error_has_the_one_shape(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--output=json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    document = json.loads(said.err)
    assert document.keys() == {"error"}
    assert document["error"].keys() == {"code", "message"}
    message = document["error"]["message"]
    assert document["error"]["code"] == "USAGE"
    assert "--help`" in message
    assert message[0].islower()
    assert run(arguments) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_the_page_of_exit_codes_names_each_command_that_answers_no() -> None:
    text = (PAGE.parent / "exit-codes.md").read_text()
    named = {words for line in text.splitlines() for words in re.findall(r"`([a-z][a-z -]*)`", line)}
    # the exit code of a migration is that of its plan
    answering = {"migrate"}
    for command in COMMANDS:
        if "exit_code" in inspect.signature(command.function).parameters:
            answering.add(f"{command.path} --exit-code")
        elif re.search(r"ExitCode\.NO\b", inspect.getsource(command.function)):
            answering.add(command.path)
    assert {"lint", "verify", "metadata repair"} <= answering
    assert {words.removesuffix(" --dry-run") for words in named if words != "serve"} >= answering
    assert {f"| {code:d} |" for code in ExitCode} <= set(re.findall(r"^\| [0-9]+ \|", text, re.MULTILINE))


GROUPS = ["", *sorted({command.path.rpartition(" ")[0] for command in COMMANDS} - {""})]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group or "kustos")
def test_a_group_without_a_command_prints_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    # as click does: the help on standard error, and the exit code of a usage error
    words = group.split()
    assert run([*words, "--help"]) == ExitCode.OK
    helped = capsys.readouterr().out
    assert run(words) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip() == helped.strip()
    assert len(helped.splitlines()) > 5


def test_the_version_is_told_by_flag_and_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert run(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == told == f"kustos {__version__}\n"


def choices() -> Iterator[tuple[str, Any, type[Enum]]]:
    """The path of each command with each parameter that lets choose, and what it lets choose from."""
    tree: Any = typer.main.get_command(app)
    for command in COMMANDS:
        found = tree
        for word in command.path.split():
            found = found.commands[word]
        for parameter in found.params:
            # an option that may be missing has its kind as an arm
            hint = command.function.__annotations__[parameter.name].__origin__
            for kind in (hint, *get_args(hint)):
                if isinstance(kind, type) and issubclass(kind, Enum):
                    yield command.path, parameter, kind


def test_the_case_of_a_choice_does_not_matter() -> None:
    found = list(choices())
    assert {"resource_pattern_type", "output", "form", "mechanism", "fail_on"} <= {
        parameter.name for _, parameter, _ in found
    }
    context: Any = None
    for path, parameter, kind in found:
        parameter.callback = None  # a choice that a command refuses is understood, too
        for choice in kind:
            for text in (choice.value, choice.value.upper(), choice.value.title()):
                assert parameter.process_value(context, text) is choice, (path, text)


def test_names_cannot_command_the_terminal() -> None:
    assert printable("orders-ü.1") == "orders-ü.1"
    assert printable("a\x1b[2Jb\u202ec\n") == r"a\x1b[2Jb\u202ec\n"


def test_help_loads_no_heavy_room() -> None:
    program = (
        "import sys; from kustos.cli.run import run; run(['--help']); "
        "heavy = {'kio', 'asyncio', 'pyspark', 'h11', 'structlog', 'rich.console', "
        "'kustos.wire', 'kustos.metadata', 'kustos.client', 'kustos.gateway', 'kustos.server'}; "
        "sys.exit(' '.join(sorted(heavy & sys.modules.keys())) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_help_lists_every_command_under_one_task(capsys: pytest.CaptureFixture[str]) -> None:
    tree: Any = typer.main.get_command(app)
    shown = [name for name, command in tree.commands.items() if not command.hidden]
    assert sorted(name for names in TASKS.values() for name in names) == sorted(shown)
    assert run(["--help"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert all(len(line) <= WIDTH for line in said.splitlines())
    assert all(f"{task}:" in said for task in TASKS)
    assert all(choice.question in said for choice in CHOICES)


def test_the_chooser_names_commands_that_there_are() -> None:
    paths = {command.path for command in COMMANDS}
    assert {command for choice in CHOICES for command in choice.answers} <= paths
    assert all(question in PAGE.read_text() for question in (choice.question for choice in CHOICES))


def test_the_help_of_acls_says_which_requests_need_an_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["acls", "--help"]) == ExitCode.OK
    said = capsys.readouterr().out
    assert all(len(line) <= WIDTH for line in said.splitlines())
    for resource_type, operations in SUPPORTED_OPERATIONS.items():
        listed = said.split(f"\n    {resource_type.name}\n")[1]
        assert all(f"\n      {operation.name} " in f"\n{listed}" for operation in operations)


def test_a_reader_that_leaves_is_no_error_to_tell_of() -> None:
    nobody, pipe = os.pipe()
    os.close(nobody)
    result = subprocess.run(
        [sys.executable, "-m", "kustos", "--help"], stdout=pipe, stderr=subprocess.PIPE, check=False
    )
    os.close(pipe)
    assert (result.returncode, result.stderr) == (1, b"")
