"""Files that hold lines of each other: logs put together, and exports of one log that overlap.

A file that holds the beginning of another log is that log and more: `cat b1 b2`, or an export that began
earlier. So all new files are searched for the beginnings of all logs, and the beginnings of new logs are
looked up among the stored events, whose files may be gone. Logs found to overlap are read as one, by which
each line of them counts once. If they were read as two before, a file that holds both cannot be right in
either: it is refused. `overlap_of` says what is an overlap, and what only a doubt. A file in which time goes
back may be exports that were appended to each other: `appended_exports` finds them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from pyspark.sql import SparkSession

from kustos.pipeline.places import Place
from kustos.pipeline.run.files.appended_exports import appended_exports
from kustos.pipeline.run.files.beginnings import Beginning
from kustos.pipeline.run.files.line_notes import HeadWatch, Held, WantedMarks
from kustos.pipeline.run.files.logs import Overlap, are_apart, are_declared_apart, family_of, overlap_of
from kustos.pipeline.run.files.new_files import FoundFile, FoundFiles
from kustos.pipeline.run.files.stored_events import overlaps_stored

if TYPE_CHECKING:
    from kustos.pipeline.tables import InputFile, Tables

HEADS_MAX: Final = 100_000
"""Logs whose beginnings are looked for, the latest: 3 MB for a task, which needs 40 MB for them."""

_SOME_HEADS: Final = (
    "only the latest {:,} of {:,} logs were looked for in new files: a file that also holds an older one "
    "counts twice; give inputs a `source`, which only logs of the same one are compared by"
)


class Head(NamedTuple):
    """The marks of the different first lines of a log, how many are of the first's moment, and their file."""

    marks: tuple[str, ...]
    at_once: int
    file: "InputFile"


def heads_of(files: "Iterable[InputFile]") -> list[Head]:
    """Return the heads of the logs of files, each once; logs of JSON, or without times, have none."""
    heads: dict[tuple[str, ...], Head] = {}
    for file in files:
        beginning = Beginning.from_text(file.beginning)
        if marks := beginning.marks:
            heads.setdefault((*marks, file.log), Head(marks, beginning.at_once, file))
    return [*heads.values()]


def heads_to_look_for(heads: Sequence[Head], files: "Iterable[InputFile]") -> list[Head]:
    """Return the heads that files may hold: not those of other sources and clusters."""
    declared = {(file.source, file.cluster): file for file in files}.values()
    return [head for head in heads if not all(are_declared_apart(head.file, file) for file in declared)]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """What is known of overlaps of the found files, and the heads to look for while they are read.

    `candidates` are new files whose first lines are stored events.
    """

    found: FoundFiles
    heads: Sequence[Head]
    candidates: Sequence[Overlap]

    @classmethod
    def of(cls, found: FoundFiles, tables: "Tables", *, time_zone: str = "UTC") -> Self:
        """Look up the beginnings of new logs among the stored events; raise what reading raises."""
        known = found.known
        new = [file.identity for file in found.new if not file.fault]
        found = replace(found, said=(*found.said, *_not_seen(known, new)))
        heads = heads_to_look_for(heads_of([*known, *new]), new)
        if not heads:
            return cls(found, (), ())
        if len(heads) > HEADS_MAX:
            found = replace(found, said=(*found.said, _SOME_HEADS.format(HEADS_MAX, len(heads))))
        return cls(found, heads[-HEADS_MAX:], [*overlaps_stored(found.new, known, tables, time_zone)])

    def watch(self, folder: Place) -> HeadWatch | None:
        """Return what notes in a folder where new files hold the heads; None if there is nothing to find."""
        if not self.heads:
            return None
        return HeadWatch(WantedMarks(mark for head in self.heads for mark in head.marks), folder)

    def settled(self, spark: SparkSession, held: Mapping[str, Held]) -> FoundFiles:
        """Return the files with one log for those that overlap, without those that hold two known logs.

        `held` is what the files were found to hold. Those in which time goes back are read once more; raises
        what reading them raises.
        """
        out_of_order = {place for place, of_file in held.items() if of_file.goes_back}
        found = _with_exports(spark, self.found, out_of_order)
        within = _overlaps_within(found.new, self.heads, held)
        return _with_one_log(found, [*within, *self.candidates])


def _overlaps_within(
    files: Sequence[FoundFile], heads: Sequence[Head], held: Mapping[str, Held]
) -> Iterator[Overlap]:
    """Yield where files hold the beginning of another log."""
    by_first: dict[str, list[Head]] = {}
    for head in heads:
        by_first.setdefault(head.marks[0], []).append(head)
    by_place = {file.identity.path: file.identity for file in files}
    for place, of_file in held.items():
        own = by_place[place]
        for head in (head for mark in of_file.marks for head in by_first.get(mark, ())):
            if head.file.log == own.log or are_apart(own, head.file):
                continue
            leading = [*takewhile(of_file.marks.__contains__, head.marks)]
            ends = of_file.end in leading
            overlap = overlap_of(own, head.file, len(leading), at_once=head.at_once, ends=ends)
            if overlap is not None:
                yield overlap


def _with_one_log(found: FoundFiles, candidates: Sequence[Overlap]) -> FoundFiles:
    overlaps = [one for one in candidates if one.is_sure]
    known_logs = {one.log for one in found.known}
    refusals: list[str] = []
    refused: set[str] = set()
    names = _joined(overlaps)
    for one in overlaps:
        if len({log for log, name in names.items() if name == names[one.own_log] and log in known_logs}) > 1:
            refused.add(one.place)
            refusals.append(
                f"`{one.place}` holds the beginning of `{one.other_place}`, which was read as another log: "
                "not read, since its lines would count twice; take it out of the folder"
            )
    names = _joined([one for one in overlaps if one.place not in refused], known_logs)
    said = [
        f"`{one.place}` and `{one.other_place}` overlap: read as one log, each line once"
        for one in overlaps
        if one.place not in refused
    ]
    said += _doubts([one for one in candidates if one.place not in refused], names, found.said)
    kept = [
        replace(file, identity=replace(file.identity, log=names.get(file.identity.log, file.identity.log)))
        for file in found.new
        if file.identity.path not in refused
    ]
    of_exports = {file.identity.path for file in kept if file.exports}
    return replace(
        found,
        new=tuple(kept),
        # refusals first: a run's warnings are cut at the end
        said=(*dict.fromkeys(refusals), *found.said, *dict.fromkeys(said)),
        refused_files=len(refused),
        overlapping_files=len(({one.place for one in overlaps} - refused) | of_exports),
    )


def _not_seen(known: "Sequence[InputFile]", new: "Sequence[InputFile]") -> list[str]:
    """Return what to say about new files whose overlaps cannot be seen: equal lines of a second are common.

    Not of rotated files: their names are known, and they do not overlap.
    """
    logs = {file.log for file in known}
    families = {family_of(file.path) for file in known}
    paths = [
        file.path
        for file in new
        if Beginning.from_text(file.beginning).seconds
        and file.log not in logs
        and family_of(file.path) not in families
    ]
    if not paths or len(logs | {file.log for file in new}) < 2:
        return []
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return [
        f"times in `{paths[0]}`{more} have no milliseconds: overlaps with other logs are not seen, and their "
        "lines count twice; let the layout write milliseconds, or keep files that overlap out of the folder"
    ]


def _with_exports(spark: SparkSession, found: FoundFiles, out_of_order: Set[str]) -> FoundFiles:
    """Return the files with the exports that were appended to those in which time goes back.

    These are read once more. What only may be an export counts again, and is said.
    """
    suspects = [file for file in found.new if file.identity.path in out_of_order]
    exports = appended_exports(spark, [file.readable() for file in suspects if not file.fault])
    said = [
        f"`{place}` holds exports that overlap, one after another: each line counts once"
        for place, of_file in sorted(exports.items())
        if of_file.begins
    ]
    said += [
        f"`{place}` may hold lines twice, since its time goes back, and they count twice: keep each export "
        "in a file of its own, then each line counts once"
        for place, of_file in sorted(exports.items())
        if of_file.has_doubt
    ]
    former = {file.path: file for file in found.known}
    for file in (file.identity for file in suspects):
        one = former.get(file.path)
        if one is not None and one.inode == file.inode != 0 and one.log != file.log:
            said.append(
                f"`{file.path}` was written over, and its time goes back: if the rest is of the log before, "
                "as while `rsync --inplace` works, these lines count twice; let it put whole files in place"
            )
    begins = {place: of_file.begins for place, of_file in exports.items()}
    new = tuple(replace(file, exports=begins.get(file.identity.path, ())) for file in found.new)
    return replace(found, new=new, said=(*found.said, *said))


def _doubts(candidates: Sequence[Overlap], names: dict[str, str], said: Sequence[str]) -> list[str]:
    """Return what to say about files that may overlap, are of two logs, and are not in `said`."""
    pairs_said = {frozenset(re.findall(r"`([^`]+)`", each)[:2]) for each in said}
    doubts = {
        frozenset((one.place, one.other_place)): one
        for one in candidates
        if not one.is_sure and names.get(one.own_log, one.own_log) != names.get(one.log, one.log)
    }
    return [
        f"`{one.place}` and `{one.other_place}` have too few lines in common to be sure that they overlap: "
        "read as two logs; if one broker wrote both, read them again with one `source`"
        for pair, one in doubts.items()
        if pair not in pairs_said
    ]


def _joined(overlaps: Iterable[Overlap], preferred: Iterable[str] = ()) -> dict[str, str]:
    """Return a common name for the logs that overlap, by each of their names: a `preferred` one if any is."""
    groups: dict[str, set[str]] = {}
    for one in overlaps:
        group = groups.get(one.own_log, {one.own_log}) | groups.get(one.log, {one.log})
        groups |= dict.fromkeys(group, group)
    wanted = set(preferred)
    return {log: min(group & wanted or group) for log, group in groups.items()}
