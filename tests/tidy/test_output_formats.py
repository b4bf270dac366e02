"""`-o` is a format, the same for every command; what a command cannot print it refuses in a sentence."""

import inspect
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import pytest

from kustos.cli.decide import AnswerOutput
from kustos.cli.metadata.dump import RecordsOutput
from kustos.cli.options import DocumentOutput, Output
from kustos.cli.output import OutputFormat
from kustos.cli.reference import ROWS, Command, commands
from kustos.cli.run import run

WITHOUT: Final = {
    "metadata export": "writes a file that `metadata import` reads",
    "metadata import": "takes in a file, and tells what by a line on standard error",
    "metadata shell": "is a conversation",
    "pipeline signoff changes": "writes a file of ACLs, or commands",
    "serve": "runs until it is stopped",
}
"""Commands that have no `-o`, and why."""

WITHOUT_ROWS: Final = {
    "acls convert": "writes a file, and says how many ACLs it took",
    "explain": "answers one question: rules, ACLs, and the change that would allow it",
    "metadata repair": "does one thing",
    "metadata verify": "answers one question: whole, torn or damaged, and where",
    "migrate": "a plan of ACLs, users and tokens, which have no columns in common",
    "pipeline check": "answers one question: whole or damaged, and where",
    "pipeline judge": "counts; its rows are the tables `judged` and `discrepancies`",
    "blast-radius": "identities, each with the steps that lead there",
    "pipeline recommend": "counts; the ACLs are the file of `--out`",
    "pipeline report": "counts; the page is the file of `--out`",
    "pipeline review": "counts, with its rows in one document; for a spreadsheet there is `--csv`",
    "pipeline run": "counts of what was taken into the tables",
    "pipeline signoff check": "answers one question: the state of a document",
    "pipeline signoff close": "does one thing",
    "pipeline signoff decide": "does one thing",
    "storage format": "does one thing",
    "storage info": "describes one directory",
    "users add": "does one thing",
    "users remove": "does one thing",
}
"""Commands whose answer is one document, and why it is no rows."""

STREAMED: Final = {"decide": AnswerOutput, "metadata dump": RecordsOutput}
"""Commands that print while they read, and take `json-lines` besides what all take."""

COMMANDS = list(commands())
ALL = {command.path for command in COMMANDS}


def options_of(command: Command) -> dict[str, Any]:
    """What is declared, by the flags."""
    hints = get_type_hints(command.function, include_extras=True)
    found = {}
    for parameter in inspect.signature(command.function).parameters.values():
        hint = hints[parameter.name]
        if get_origin(hint) is Annotated:
            info = get_args(hint)[1]
            # typer keeps the first flag where a default would stand
            for flag in (info.default, *(info.param_decls or ())):
                found[flag] = hint
    return found


def output_of(command: Command) -> Any:
    return options_of(command).get("-o")


def test_every_command_has_the_flag_or_a_reason() -> None:
    assert {command.path for command in COMMANDS if output_of(command) is None} == WITHOUT.keys()


def test_what_has_no_rows_has_a_reason() -> None:
    assert {each.path for each in COMMANDS if output_of(each) == DocumentOutput} == WITHOUT_ROWS.keys()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_the_flag_is_a_format_and_means_the_same(command: Command) -> None:
    options = options_of(command)
    assert options.get("-o") in (None, Output, DocumentOutput, STREAMED.get(command.path))
    assert options.get("--output") == options.get("-o"), "the two are one flag"
    has_columns = options.get("-o") in (Output, RecordsOutput)
    assert has_columns == (command.path in ROWS), "the columns of `-o csv` are documented"


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if output_of(each) == DocumentOutput], ids=lambda each: each.path
)
@pytest.mark.parametrize("output", ["wide", "name", "csv", "spreadsheet"])
def test_what_has_no_rows_says_so_before_anything_is_done(
    command: Command, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.path.split(), "-o", output]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"has no rows for `{output}`, use `table`, `json` or `yaml`" in said.err


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if output_of(each)], ids=lambda each: each.path
)
def test_another_format_is_refused_with_those_that_there_are(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command.path.split(), "-o", "xml"]) == 2
    said = capsys.readouterr().err
    taken = set(OutputFormat)
    if command.path == "decide":
        taken -= {OutputFormat.WIDE, OutputFormat.NAME}  # an answer has neither more columns nor a name
    assert "xml" in said
    assert all(f"`{output.value}`" in said for output in taken), said


@pytest.mark.parametrize("path", sorted(ROWS))
def test_the_columns_have_names_and_say_what_a_name_is(path: str) -> None:
    columns = ROWS[path]
    assert path in ALL
    assert columns.named
    for output in (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.CSV):
        keys = [column.key for column in columns.of(output)]
        assert len(set(keys)) == len(keys) > 0
        assert all(key.isidentifier() for key in keys)
    assert len(columns.of(OutputFormat.WIDE)) >= len(columns.of(OutputFormat.TABLE))
