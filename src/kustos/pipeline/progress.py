"""How far a job is, told step by step to whoever waits for it."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with the name of each step as it begins."""


def silent(_step: str) -> None:
    """Show nothing."""
