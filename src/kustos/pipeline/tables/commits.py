"""The commits of a table after one that was read: which of them is ours, and whose came before it.

Delta puts a commit above those of others that it does not conflict with. A clean-up (vacuum) writes such
commits: they describe what is done and change neither rows nor columns. So a run's own commit is looked for,
by its token, and not expected at the next version.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from kustos.pipeline.errors import TablesError
from kustos.pipeline.places import Place, names_in, source_of

FOLLOWING_MAX: Final = 1_000
"""Commits read to find one: a stream that commits each second gets there in a quarter of an hour."""

SHOWN_CHARACTERS_MAX: Final = 64
"""Of the names of an operation and a program, in a message."""

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
        try:
            yield _text_of(log / f"{version:020d}.json")
        except FileNotFoundError:
            return
    raise TablesError(f"more than {FOLLOWING_MAX:,} commits came into `{log}` meanwhile, run again")


def foreign_operations(log: Place, first: int) -> list[str]:
    """Return what other programs did from a version on: operation, program and version of each commit.

    A commit of kustos has the transaction of its run; a clean-up has none, and keeps files for a day. Raises
    as `landing_of` does.
    """
    found = []
    for version, text in enumerate(_following(log, first), first):
        actions = _actions(text)
        info = next((each for one in actions if (each := _object(one, _TELLS))), {})
        operation, program = (_shown(info.get(name, "unknown")) for name in ("operation", "engineInfo"))
        retention = _object(info, "operationParameters").get("specifiedRetentionMillis")
        is_clean_up = operation == "VACUUM END" or (operation == "VACUUM START" and retention is None)
        if not is_clean_up and not any("txn" in one for one in actions):
            found.append(f"`{operation}` of `{program}` (version {version})")
    return found


def removed_files(log: Place) -> frozenset[str]:
    """Return the files that the commits of a log remove; raise OSError."""
    commits = [log / name for name in names_in(log) if name.endswith(".json")]
    actions = (one for commit in commits for one in _actions(_text_of(commit)))
    return frozenset(unquote(str(_object(one, "remove").get("path"))) for one in actions if "remove" in one)


def _object(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a member that is an object, an empty one for any other: another program wrote it."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _shown(text: object) -> str:
    """Return the beginning of a text by another program, as a message may have it."""
    return "".join(each for each in str(text) if each.isprintable())[:SHOWN_CHARACTERS_MAX]


def _actions(text: str) -> list[dict[str, Any]]:
    """Return the actions of a commit; none of a line that cannot be read."""
    found = []
    for line in text.splitlines():
        with suppress(ValueError):
            action = json.loads(line)
            if isinstance(action, dict):
                found.append(action)
    return found


def _text_of(commit: Place) -> str:
    source = source_of(commit)
    return Path(source).read_text("utf-8") if isinstance(source, str) else bytes(source.read()).decode()


def _only_tells(text: str) -> bool:
    """Return whether a commit leaves the table as it is; no for one that cannot be read."""
    try:
        actions = [json.loads(line) for line in text.splitlines() if line]
    except ValueError:
        return False
    return all(isinstance(action, dict) and action.keys() <= {_TELLS} for action in actions)
