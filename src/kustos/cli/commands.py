"""Registers commands in the tree, with examples ready to type below their options."""

import inspect
from collections.abc import Callable
from typing import Any

import typer
from typer.models import ParameterInfo


def register(app: typer.Typer, name: str, command: Callable[..., Any], examples: str, **options: Any) -> None:
    """Add a command under this name; its docstring is the help, followed by the examples.

    The choices of an option ignore case, as in Kafka's tools.
    """
    for hint in inspect.get_annotations(command).values():
        for info in getattr(hint, "__metadata__", ()):
            if isinstance(info, ParameterInfo):
                info.case_sensitive = False
    lines = [f"  {line}" for line in examples.strip().splitlines()]
    # the mark `\b` keeps the help from rewrapping these lines
    app.command(name, epilog="\n".join(("\b", "Examples:", *lines)), **options)(command)
