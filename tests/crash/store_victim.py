"""A process that creates ACLs and says what is durable, until it is killed.

Standard output: `W n` when request n is written but not yet synced, `A n` when it is acknowledged.
Standard input: one line is awaited after each `W`, so that the killer decides where it dies.
"""

import sys
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
from kustos.metadata.store import MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.runtime.storage import AppendFile
from kustos.server.logs import configure_logs

ACLS_PER_REQUEST = 5


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
    """The file system, with the log's file telling."""

    __slots__ = ("files",)

    def __init__(self) -> None:
        self.files: list[TellingFile] = []

    def open_append(self, path: Path) -> AppendFile:
        file = TellingFile(super().open_append(path))
        self.files.append(file)
        return file


def main() -> None:
    configure_logs()
    storage = TellingStorage()
    store = MetadataStore.open(Path(sys.argv[1]), storage=storage)
    number = int(sys.argv[2])
    while True:
        for file in storage.files:
            file.number = number
        results = store.create_acls(request(number))
        if all(result.error is None for result in results):
            say("A", number)
        number += 1


if __name__ == "__main__":
    main()
