"""Command lines that pages and messages show, held against the commands there are."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from kustos.cli.app import app

TREE: Any = typer.main.get_command(app)
BLOCK = re.compile(r"```(?:sh|console)[^\n]*\n(.*?)```", re.DOTALL)
SHORT_HELP = {"-h", "--help"}


def lines_of_page(text: str) -> Iterator[str]:
    """Yield the lines of code blocks that run kustos, from its name on, without what is piped after it."""
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ |.*\| )*(kustos .*)", line.strip())
            if found is not None:
                yield found[1]


def texts_of_source(path: Path) -> Iterator[str]:
    """Yield the texts of a module; what is filled in stands as `X`."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.JoinedStr(values=values):
                yield "".join(str(each.value) if isinstance(each, ast.Constant) else "X" for each in values)
            case ast.Constant(value=str(text)):
                yield text


def mentioned(text: str) -> list[str]:
    """Return the command lines that stand in backticks in a text; not what a node's log says of itself."""
    return [" ".join(found.split()) for found in re.findall(r"`(kustos (?!is )[a-z][^`]*)`", text)]


def words_of(line: str) -> list[str]:
    """Return the words of a line after `kustos`, up to a pipe or a redirection."""
    words = [word for word in shlex.split(line, comments=True)[1:] if not word.startswith("$")]
    ends = [number for number, word in enumerate(words) if word in {"|", ">", ">>", "&&", ";"}]
    return words[: min(ends, default=len(words))]


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command, or group, that words name, and the words after it."""
    command, rest = TREE, list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def problem_of(line: str) -> str | None:
    """Return what is wrong with a line that may lack arguments: no such command, or no such option."""
    command, rest = command_of(words_of(line))
    if hasattr(command, "commands"):
        wrong = [word for word in rest if word not in SHORT_HELP]
        return f"`{line}` names no command" if wrong or command is TREE else None
    if command.context_settings.get("allow_interspersed_args") is False:
        return None  # what follows is a command of its own
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | SHORT_HELP
    wrong = [
        word for word in rest if word.startswith("-") and word != "-" and word.split("=")[0] not in options
    ]
    return f"`{line}` has `{wrong[0]}`, which the command does not take" if wrong else None


def require_whole(line: str) -> None:
    """Raise a usage error unless the line is one that the command line takes as it is."""
    command, rest = command_of(words_of(line))
    command.make_context(line, rest)
