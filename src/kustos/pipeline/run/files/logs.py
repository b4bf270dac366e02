"""Whether two files are one log: by what chance cannot share, and reported where it cannot be known.

A file gets its log from its identity and its beginning, before it is read (`Logs`):

| known of two files | they are |
|---|---|
| the same inode, beginnings that do not differ, and one path or folder | one log, that grew or was renamed |
| the same path, and several lines with a time in common at the beginning | one log, put in place anew |
| the same inode, and several lines with a time in common at the beginning | one log, that was moved |
| they differ in their beginning | two logs |
| their inputs have different sources, or are of different clusters | two logs |
| several lines with a time in common at the beginning | one log, unless their paths name two brokers |
| less in common | one log in one folder by one name or of one source, else two, with a warning |

Later one of two logs may be found to hold the beginning of the other (`overlap_of`):

| of the first four lines of a log, the other file holds | they are |
|---|---|
| all four | one log |
| the first two or more, and it ends there | one log: an export that ended within these lines |
| the first two or three, and goes on with others | in doubt: busy brokers have some in common by chance |
| the first one, and it ends there | in doubt |
| the first ones, of one millisecond, ends there, and was rotated | two: log4j may go on with equal lines |

A log that has just begun has fewer than four lines, so all of its lines count as the first two or three. One
`source` of both files settles each doubt: one broker wrote them.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.pipeline.places import FileState, Place
from kustos.pipeline.run.files.beginnings import FIRST_LINES, Beginning

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile

VOUCHING_LINES: Final = 2
"""Lines with a time that two files must have in common at the beginning: one may be equal by chance."""

CANDIDATES_MAX: Final = 64
"""Files with the same first line that are compared with a new one, the latest: of one log nearly always."""

_ENDING: Final = re.compile(r"\.(gz|bz2|zip|zst|lz4|snappy|deflate)\Z")
_ROTATED: Final = re.compile(rf"{_ENDING.pattern}|\.\d{{1,4}}\Z")
_NUMBERED: Final = re.compile(r"\.[a-z]+\.\d{1,4}\Z", re.IGNORECASE)
_DATE: Final = re.compile(r"[-_.]\d{4}-?\d\d-?\d\d(\d\d){0,3}([-_T.]\d{2,10})*(?=[-_.]|\Z)")
"""A day, with an hour, a time or seconds since the epoch behind it, as logrotate's `dateformat` may have."""

_BROKER: Final = re.compile(
    r"(?<![a-z0-9])((?:[a-z][a-z0-9]*-)*(?:broker|kafka|controller|node|pod)s?)[-_.]?"
    r"(?!\d{4}-?\d\d|\d{1,2}\.\d{1,2}[.-]\d)(\d{1,5})(?![0-9a-z])",
    re.IGNORECASE,
)
"""The name of a broker or its pod, such as `broker-2` or `prod-kafka-0`; no date and no version."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The log of a file, and a sentence on what was chosen where it could not be known."""

    log: str
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Overlap:
    """A new file, its log, and another log whose beginning it holds, or that holds its own.

    `is_sure` if that makes them one log.
    """

    place: str
    own_log: str
    log: str
    other_place: str
    is_sure: bool


def broker_of(path: str) -> str | None:
    """Return the name of a broker or pod in a path, the innermost; None if there is none."""
    found = list(_BROKER.finditer(path))
    return f"{found[-1][1]}-{found[-1][2]}".lower() if found else None


def family_of(path: str) -> str:
    """Return a path without what rotation and packing add to it."""
    folder, name = str(Path(path).parent), _DATE.sub("", Path(path).name)
    while found := _ROTATED.search(name):
        name = name[: found.start()]
    return f"{folder}/{name}"


def is_packed_by_name(place: Place) -> bool:
    """Return whether a file has the ending of a packed one."""
    return _ENDING.search(place.name) is not None


def is_numbered(place: Place) -> bool:
    """Return whether a file has a number by rotation, such as `server.log.1`."""
    return _NUMBERED.search(place.name) is not None


class Logs:
    """The logs of files that are known, which grow by each file that is chosen a log."""

    def __init__(self, known: Iterable["InputFile"]) -> None:
        self._by_path: Final[dict[str, InputFile]] = {}
        self._by_inode: Final[dict[int, list[InputFile]]] = {}
        self._by_first: Final[dict[str, list[InputFile]]] = {}
        self._logs: Final[set[str]] = set()
        for one in known:
            self._add(one)

    def read_as(self, file: "InputFile") -> "InputFile | None":
        """Return what this state of a file was read as, under this or another name; None if it was not."""
        same = [self._by_path.get(file.path), *reversed(self._by_inode.get(file.inode, ()))]
        return next(
            (
                one
                for one in same
                if one is not None
                and (one.inode, one.size_bytes, one.modified_ns)
                == (file.inode, file.size_bytes, file.modified_ns)
                and _common(one, file) is not None
            ),
            None,
        )

    def is_unchanged(self, place: str, state: FileState) -> bool:
        """Return whether an object was read in this state, so that it need not be opened.

        A local file may be another by the same name, size and time: its inode and beginning are compared.
        """
        known = self._by_path.get(place)
        return known is not None and (known.size_bytes, known.modified_ns, known.inode) == (
            state.size_bytes,
            state.modified_ns,
            0,
        )

    def choose(self, file: "InputFile") -> Choice:
        """Return the log of a file, whose own `log` does not count, and remember it."""
        choice = self._chosen(file)
        self._add(replace(file, log=choice.log))
        return choice

    def _add(self, file: "InputFile") -> None:
        self._by_path[file.path] = file
        if file.inode:
            self._by_inode.setdefault(file.inode, []).append(file)
        for key in _first(file):
            self._by_first.setdefault(key, []).append(file)
        self._logs.add(file.log)

    def _chosen(self, file: "InputFile") -> Choice:
        # inodes of two file systems may be equal: elsewhere a first line in common is too little
        for one in reversed(self._by_inode.get(file.inode, ())):
            common = _common(one, file)
            is_here = one.path == file.path or (common and Path(one.path).parent == Path(file.path).parent)
            if common is not None and (
                is_here or (common >= VOUCHING_LINES and not are_declared_apart(one, file))
            ):
                return Choice(one.log, _stays(one, file))
        first = _first(file)
        like = {id(one): one for key in first for one in self._by_first.get(key, ())[-CANDIDATES_MAX:]}
        alike = [
            (common, one) for one in reversed(like.values()) if (common := _common(one, file)) is not None
        ]
        said = None
        for common, one in sorted(alike, key=lambda each: -each[0]):
            is_one_log, why = _judged(one, file, common)
            if is_one_log:
                return Choice(one.log, why)
            said = said or why
        return Choice(self._new_name(file, first), said)

    def _new_name(self, file: "InputFile", first: list[str]) -> str:
        """Return a name that no other log has: equal in other tables, as far as the beginning shows."""
        if not first:
            return f"file:{file.path}"
        declared = [each for each in (file.source, file.cluster) if each]
        name = _digest(*declared, first[0])
        if name in self._logs:
            name = _digest(*declared, first[0], file.path, str(file.inode), str(file.modified_ns))
        return name


def are_apart(one: "InputFile", other: "InputFile") -> bool:
    """Return whether two files are of two logs by their clusters, sources, or the brokers in their paths."""
    is_one_source = one.source is not None and one.source == other.source
    return are_declared_apart(one, other) or (
        not is_one_source and _differ(broker_of(one.path), broker_of(other.path))
    )


def are_declared_apart(one: "InputFile", other: "InputFile") -> bool:
    """Return whether the inputs of two files say that they are of two logs."""
    return _differ(one.source, other.source) or _differ(one.cluster or None, other.cluster or None)


def overlap_of(
    file: "InputFile", other: "InputFile", leading: int, *, at_once: int, ends: bool
) -> Overlap | None:
    """Return what it means that one of two files holds the first `leading` lines of the other.

    The logs of the two differ. `at_once` of these lines are of one moment. `ends`: the file that holds them
    goes on with no other line with a time.
    """
    if leading < VOUCHING_LINES and not (leading and ends):
        return None
    if ends and leading <= at_once and family_of(file.path) == family_of(other.path):
        return None
    is_one_source = file.source is not None and file.source == other.source
    is_sure = is_one_source or vouch(leading, ends=ends)
    return Overlap(file.path, file.log, other.log, other.path, is_sure)


def vouch(leading: int, *, ends: bool) -> bool:
    """Return whether so many first lines in common, behind which one log ends or not, make two logs one."""
    return leading == FIRST_LINES or (leading >= VOUCHING_LINES and ends)


def _stays(one: "InputFile", file: "InputFile") -> str | None:
    """Return what to say if a file has another source now; `with_clusters` says it of clusters."""
    if not _differ(one.source, file.source):
        return None
    return (
        f"`{file.path}` was read with source `{one.source}` and stays of that log, else its lines would "
        f"count twice; logs not read before are of source `{file.source}`"
    )


def _judged(one: "InputFile", file: "InputFile", common: int) -> tuple[bool, str | None]:
    """Return whether files with so many first lines in common are one log, and the warning, if any."""
    if are_declared_apart(one, file):
        return _judged_against_declaration(one, file, common)
    if are_apart(one, file):
        return False, (
            f"`{file.path}` begins like `{one.path}` but their paths name `{broker_of(file.path)}` and "
            f"`{broker_of(one.path)}`: read as two logs; if one is a copy of the other take it out, or give "
            "the input a `source`"
        )
    if common >= VOUCHING_LINES or (file.source is not None and file.source == one.source):
        return True, None
    what = f"`{file.path}` and `{one.path}` have too little in common to be sure"
    if family_of(one.path) == family_of(file.path):
        # without a line with a time there is no event to be lost
        said = f"{what}: by their names read as one log; if they are two, keep them in two folders"
        return True, said if common else None
    return False, f"{what}: read as two logs; if one is a copy of the other, give the input a `source`"


def _judged_against_declaration(one: "InputFile", file: "InputFile", common: int) -> tuple[bool, str | None]:
    """Return the same for files that their inputs declare to be of two logs: one path is stronger."""
    if common < VOUCHING_LINES:
        return False, None
    if one.path == file.path:
        return True, _stays(one, file)
    if _differ(one.cluster or None, file.cluster or None):
        return False, None  # events of two clusters are never copies
    return False, (
        f"`{file.path}` begins like `{one.path}`, but their inputs have different `source`: read as two logs"
        "; if one is a copy of the other, take it out"
    )


def _common(one: "InputFile", other: "InputFile") -> int | None:
    return Beginning.from_text(one.beginning).in_common(Beginning.from_text(other.beginning))


def _first(file: "InputFile") -> list[str]:
    """Return by what files with a like beginning are found, the strongest first."""
    found = Beginning.from_text(file.beginning)
    return [*found.first_lines[:1], *found.seconds[:1], *filter(None, [found.first_line])]


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
