"""The commits of a table after one that was read: which of them is ours, and whose came before it.

Delta puts a commit above those of others that it does not conflict with. A clean-up (vacuum) writes such
commits: they describe what is done and change neither rows nor columns. So a run's own commit is looked for,
by its token, and not expected at the next version.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.pipeline.errors import TablesError
from kustos.pipeline.places import Place, source_of

FOLLOWING_MAX: Final = 1_000
"""Commits read to find one: a stream that commits each second gets there in a quarter of an hour."""

_TELLS: Final = "commitInfo"
"""The action that says who committed what; every other one changes the table, or says that a run did."""


@dataclass(frozen=True, slots=True)
class Landing:
    """What became of a commit: its `version`, None if the log does not have it.

    `is_first`: no commit that changes the table came before it, or is there at all.
    """

    version: int | None
    is_first: bool


def landing_of(log: Place, first: int, token: str) -> Landing:
    """Return what became of the commit with this token, which could land at the version `first` or above.

    `DeltaTable.history` numbers the commits of the moment by the version of the handle, so it names a wrong
    version if another commit came meanwhile. Raises OSError, and `TablesError` above `FOLLOWING_MAX`.
    """
    is_first = True
    for version, text in enumerate(_following(log, first), first):
        if token in text:
            return Landing(version, is_first)
        is_first = is_first and _only_tells(text)
    return Landing(None, is_first)


def _following(log: Place, first: int) -> Iterator[str]:
    """Yield the text of each commit from a version on; they have no gap, so the first missing is the end."""
    for version in range(first, first + FOLLOWING_MAX):
        source = source_of(log / f"{version:020d}.json")
        try:
            yield (
                Path(source).read_text("utf-8") if isinstance(source, str) else bytes(source.read()).decode()
            )
        except FileNotFoundError:
            return
    raise TablesError(f"more than {FOLLOWING_MAX:,} commits came into `{log}` meanwhile, run again")


def _only_tells(text: str) -> bool:
    """Return whether a commit leaves the table as it is; no for one that cannot be read."""
    try:
        actions = [json.loads(line) for line in text.splitlines() if line]
    except ValueError:
        return False
    return all(isinstance(action, dict) and action.keys() <= {_TELLS} for action in actions)
