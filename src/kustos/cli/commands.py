"""How a command enters the tree: with its examples below its options, as they are to be typed."""

from collections.abc import Callable
from typing import Any

import typer


def register(app: typer.Typer, name: str, command: Callable[..., Any], examples: str, **options: Any) -> None:
    """Add a command under this name; its docstring is the help, the examples end it."""
    lines = [f"  {line}" for line in examples.strip().splitlines()]
    # the mark keeps the help from filling these lines like a paragraph
    app.command(name, epilog="\n".join(("\b", "Examples:", *lines)), **options)(command)
