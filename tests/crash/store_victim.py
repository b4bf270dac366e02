"""A process that creates ACLs and says what is durable, until it is killed.

Standard output: `B n` before request n is written at all, `W n` when it is written but not yet synced, `A n`
when it is acknowledged, `P n` amid the snapshot after it. Standard input: one line is awaited after each `W`
and `P`, so that the killer decides where it dies. Segments and snapshots are small: they come and go all the
time.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.metadata.log import LogPolicy
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.runtime.storage import DEFAULT_FILE_MODE, AppendFile
from kustos.server.logs import configure_logs

ACLS_PER_REQUEST = 5
POLICY = LogPolicy(segment_bytes=2500, snapshot_record_bytes=2000, retention_bytes=20_000)


def say(word: str, number: int) -> None:
    print(word, number, flush=True)


def request(number: int) -> list[AclBinding]:
    """The ACLs of a request: all of them are there after it, or none."""
    entry = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
    return [
        AclBinding(ResourcePattern(ResourceType.TOPIC, f"{number}-{part}", PatternType.LITERAL), entry)
        for part in range(ACLS_PER_REQUEST)
    ]


class TellingFile:
    """Stops between write and fsync until it is told to go on."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file
        self.number = -1

    def append(self, data: bytes) -> None:
        self._file.append(data)

    def sync(self) -> None:
        if self.number >= 0:
            say("W", self.number)
            sys.stdin.readline()
        self._file.sync()

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def close(self) -> None:
        self._file.close()


class TellingStorage(FileSystemStorage):
    """The file system, with the log's file and the snapshots telling."""

    __slots__ = ("files", "number")

    def __init__(self) -> None:
        self.files: list[TellingFile] = []
        self.number = -1

    def open_append(self, path: Path) -> AppendFile:
        file = TellingFile(super().open_append(path))
        file.number = self.number
        self.files.append(file)
        return file

    def write_pieces(self, path: Path, pieces: Iterable[bytes], mode: int = DEFAULT_FILE_MODE) -> None:
        def telling() -> Iterable[bytes]:
            for piece in pieces:
                yield piece
                say("P", self.number)
                sys.stdin.readline()

        is_snapshot = path.suffix == ".checkpoint"
        super().write_pieces(path, telling() if is_snapshot else pieces, mode)


def main() -> None:
    configure_logs()
    storage = TellingStorage()
    store = MetadataStore.open(Path(sys.argv[1]), storage=storage, policy=POLICY)
    number = int(sys.argv[2])
    while True:
        storage.number = number
        for file in storage.files:
            file.number = number
        say("B", number)
        results = store.create_acls(request(number))
        if all(result.error is None for result in results):
            say("A", number)
        if (job := store.begin_snapshot()) is not None:
            job.write()
            store.end_snapshot(job)
        number += 1


if __name__ == "__main__":
    main()
