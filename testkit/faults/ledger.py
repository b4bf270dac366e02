"""What the clients say they sent, were acknowledged and read, held against what is in the brokers' logs.

A program notes lines of fields with tabs between them. `S` id, topic, transaction (or `-`): sent, once in
the life of the program. `A` id, topic, partition, offset: acknowledged. `F` id: an error came instead.
`C`, `X` transaction: committed, aborted; without either nothing is known of it. `R` topic, partition, offset,
checksum: read. `P` text: what must not be. `N` name, count: for the report.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from testkit.waiting import whole_lines

Place = tuple[str, int, int]
"""Topic, partition, offset."""

TOLD_MAX: Final = 20
"""Failures of one kind that are told one by one."""


def payload_id(value: bytes) -> str | None:
    """Return the id of a record that is whole: `id|topic|filling|checksum of all before`, else None."""
    body, _, checksum = value.rpartition(b"|")
    if not body or checksum != b"%08x" % zlib.crc32(body + b"|"):
        return None
    return body.partition(b"|")[0].decode()


def payload_topic(value: bytes) -> str:
    """Return the topic that a record was made for."""
    return value.split(b"|", 2)[1].decode()


@dataclass
class Ledger:
    """The notes of all programs."""

    sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    acknowledged: dict[str, Place] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    read: list[tuple[Place, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, path: Path) -> None:
        """Add a program's notes; a last line that is not whole was never said."""
        for line in whole_lines(path):
            self._note(path.stem, *line.split("\t"))

    def _note(self, program: str, kind: str, *fields: str) -> None:
        match kind:
            case "S":
                self.sent[fields[0]] = (fields[1], fields[2])
            case "A":
                self.acknowledged[fields[0]] = (fields[1], int(fields[2]), int(fields[3]))
            case "F":
                self.refused.add(fields[0])
            case "C":
                self.committed.add(fields[0])
            case "X":
                self.aborted.add(fields[0])
            case "R":
                self.read.append(((fields[0], int(fields[1]), int(fields[2])), int(fields[3])))
            case "N":
                self.counts[f"{program}: {fields[0]}"] += int(fields[1])
            case "P":
                self.problems.append(f"{program}: {fields[0]}")
            case _:
                raise ValueError(f"`{program}` noted `{kind}`, which is nothing known")

    @property
    def written_topics(self) -> set[str]:
        """The topics with an acknowledged record outside of transactions or in one that was committed."""
        ended = self.committed | {"-"}
        sent = (self.sent[name] for name in self.acknowledged)
        return {topic for topic, transaction in sent if transaction in ended}

    def figures(self) -> dict[str, int]:
        """Return how much there was of what."""
        return {
            "records sent": len(self.sent),
            "records acknowledged": len(self.acknowledged),
            "records refused or unanswered": len(self.sent) - len(self.acknowledged),
            "transactions committed": len(self.committed),
            "transactions aborted": len(self.aborted),
            "records read": len(self.read),
        }


def held_against(ledger: Ledger, logs: Mapping[Place, bytes]) -> list[str]:
    """Return each broken promise; `logs` holds what a read-committed reader finds in all partitions."""
    places: defaultdict[str, list[Place]] = defaultdict(list)
    found: list[str] = []
    for place, value in logs.items():
        name = payload_id(value)
        if name is None or name not in ledger.sent or payload_topic(value) != place[0]:
            found.append(f"at {place} there is what nobody sent there: {value[:60]!r}")
        else:
            places[name].append(place)
    found += _cut_short("doubled", (name for name, at in places.items() if len(at) > 1))
    transactions: defaultdict[str, list[str]] = defaultdict(list)
    for name, (_, transaction) in ledger.sent.items():
        if transaction != "-":
            transactions[transaction].append(name)
    alone = [name for name in ledger.acknowledged if ledger.sent[name][1] == "-"]
    found += _cut_short("acknowledged and lost", (name for name in alone if name not in places))
    found += _cut_short(
        "acknowledged at another place",
        (name for name in alone if name in places and ledger.acknowledged[name] not in places[name]),
    )
    for transaction, names in transactions.items():
        there = sum(name in places for name in names)
        if transaction in ledger.committed and there != len(names):
            found.append(f"of committed `{transaction}` {there} of {len(names)} records are there")
        elif transaction in ledger.aborted and there:
            found.append(f"of aborted `{transaction}` {there} records are there")
        elif there not in {0, len(names)}:
            found.append(f"of `{transaction}` with no known end {there} of {len(names)} records are there")
    found += _cut_short(
        "read, and something else is there",
        (
            str(place)
            for place, checksum in ledger.read
            if place in logs and zlib.crc32(logs[place]) != checksum
        ),
    )
    return found


def unread(topic: str, ledger: Ledger, logs: Mapping[Place, bytes], ended: Iterable[Place]) -> list[str]:
    """Return which records of a topic its group has not read; `ended` it has read after the last round."""
    read = {place for place, _ in ledger.read} | set(ended)
    return _cut_short(
        "not read by its group", (str(each) for each in logs if each[0] == topic and each not in read)
    )


def _cut_short(what: str, names: Iterable[str]) -> list[str]:
    all_of_them = list(names)
    told = [f"{what}: `{name}`" for name in all_of_them[:TOLD_MAX]]
    if len(all_of_them) > TOLD_MAX:
        told.append(f"{what}: {len(all_of_them)} in all")
    return told
