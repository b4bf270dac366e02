"""Storage of a legacy authorizer's ACLs: one file instead of ZooKeeper's tree."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from kustos.legacy.tree import read_tree, statements, write_tree
from kustos.legacy.values import Acl, Resource
from kustos.legacy.vocabulary import LegacyFormatError, LegacySettingsError
from kustos.runtime import FileSystemStorage, Storage

Statements = dict[Resource, frozenset[Acl]]
"""Single statements by resource; no set is empty."""


class AclStore(Protocol):
    """Stores ACLs atomically."""

    def load(self) -> Statements:
        """Return the stored ACLs; raise `LegacySettingsError` if they cannot be read."""

    def update(self, change: Callable[[Statements], Statements]) -> Statements:
        """Apply a change to the current ACLs, including changes of other writers, and return the result.

        Raises `LegacySettingsError` if the ACLs cannot be read, `OSError` if they cannot be written; then
        nothing has changed.
        """


class MemoryAclStore:
    """Stores ACLs in memory: for tests and for programs that load them at each start."""

    __slots__ = ("_acls",)

    def __init__(self, acls: Mapping[Resource, frozenset[Acl]] | None = None) -> None:
        self._acls = statements(acls or {})

    def load(self) -> Statements:
        """Return the stored ACLs."""
        return self._acls

    def update(self, change: Callable[[Statements], Statements]) -> Statements:
        """Apply a change and return the result."""
        self._acls = statements(change(self._acls))
        return self._acls


class FileAclStore:
    """Stores ACLs in a file in the form of `kustos.legacy.tree`; a missing file is empty.

    A change rereads and rewrites the whole file, under a lock file next to it, so that a node and a command
    can use one file without losing changes. A concurrent change gets a `StorageLockedError`.
    """

    __slots__ = ("_storage", "path")

    def __init__(self, path: Path, storage: Storage | None = None) -> None:
        self.path = path
        self._storage = storage or FileSystemStorage()

    def load(self) -> Statements:
        """Return the statements of the file; raise `LegacySettingsError` naming the file."""
        try:
            if not self._storage.exists(self.path):
                return {}
            return statements(read_tree(self._storage.read(self.path).decode("utf-8")))
        except LegacyFormatError as error:
            raise LegacySettingsError(f"legacy ACL file `{self.path}`: {error}") from error
        except UnicodeDecodeError:
            raise LegacySettingsError(f"legacy ACL file `{self.path}` is not UTF-8 text") from None
        except OSError as error:
            reason = (error.strerror or "it is unreadable").lower()
            raise LegacySettingsError(f"cannot read the legacy ACL file `{self.path}`: {reason}") from error

    def update(self, change: Callable[[Statements], Statements]) -> Statements:
        """Apply a change to the file's statements, durably and atomically."""
        lock = self._storage.lock(self.path.with_name(self.path.name + ".lock"))
        try:
            before = self.load()
            after = statements(change(dict(before)))
            if after != before or not self._storage.exists(self.path):
                self._storage.write(self.path, write_tree(after).encode())
            return after
        finally:
            lock.release()
