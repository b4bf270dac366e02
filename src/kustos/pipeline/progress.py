"""The progress of a job, reported step by step."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with the name of each step as it begins."""


def silent(_step: str) -> None:
    """Show nothing."""
