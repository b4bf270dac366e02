"""How a set of ACLs gets from the driver to the workers, by classic Spark or by Spark Connect.

Classic Spark broadcasts the bytes. Spark Connect has no broadcast: there they are a file of the session
(`addArtifacts`), which each worker finds in its own folder. A Python process compiles a set once, and caches
it for its later tasks.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from kustos.authorizer import StandardAuthorizer
from kustos.pipeline.bulk import BulkAuthorizer
from kustos.pipeline.deciding.acl_set import AclsInForce, authorizer_of_content
from kustos.pipeline.session import is_connect
from kustos.pipeline.worker_cache import kept_in_worker
from kustos.runtime import collect_frozen, freeze_until_exit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPILED_SETS_MAX: Final = 4
"""Kept in a process: two sets to compare, and two of the query before. The least recently used is evicted
first; a set of 100,000 ACLs takes some 150 MB with the tables of bulk decisions."""


class ShippedAcls(Protocol):
    """A set of ACLs that workers can load; created by `ship`."""

    @property
    def name(self) -> str:
        """The name of the set, for people."""

    @property
    def digest(self) -> str:
        """The digest of the set."""

    def content(self) -> bytes:
        """Return the set's content; in a worker."""


@dataclass(frozen=True, slots=True)
class BroadcastAcls:
    """The content as a broadcast variable."""

    name: str
    digest: str
    variable: Any

    def content(self) -> bytes:
        """Return the content, in a worker or in the driver."""
        value: bytes = self.variable.value
        return value


@dataclass(frozen=True, slots=True)
class FileAcls:
    """The content as a file of a Connect session."""

    name: str
    digest: str

    @property
    def file_name(self) -> str:
        """The file's name, the same for the same content."""
        return file_name_of(self.digest)

    def content(self) -> bytes:
        """Return the content, in a worker."""
        from pyspark import SparkFiles

        return Path(SparkFiles.getRootDirectory(), self.file_name).read_bytes()


def file_name_of(digest: str) -> str:
    """Return the file name of a set: its digest alone, no text that anybody could choose."""
    return f"kustos-acls-{digest}"


def ship(spark: "SparkSession", acl_set: AclsInForce) -> ShippedAcls:
    """Send a set to the workers of this session, once for any number of questions.

    Any query of the session may use the result. A broadcast is dropped when nothing refers to it; a file
    lives as long as its Connect session.
    """
    if not is_connect(spark):
        variable = spark.sparkContext.broadcast(acl_set.content)
        return BroadcastAcls(acl_set.name, acl_set.digest, variable)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, file_name_of(acl_set.digest))
        path.write_bytes(acl_set.content)
        spark.addArtifacts(str(path), file=True)
    return FileAcls(acl_set.name, acl_set.digest)


class _Compiled:
    """An authorizer, and its bulk authorizers with and without rules."""

    __slots__ = ("authorizer", "authorizers")

    def __init__(self, authorizer: StandardAuthorizer) -> None:
        self.authorizer: Final = authorizer
        self.authorizers: Final[dict[bool, BulkAuthorizer]] = {}


def compiled(shipped: ShippedAcls, *, with_rule: bool) -> BulkAuthorizer:
    """Return this process's authorizer of the set, compiled on first use.

    Raises `AclSetError` if the set was damaged in transfer: then nothing is decided.
    """
    found = _compiled(shipped)
    bulk = found.authorizers.get(with_rule)
    if bulk is None:
        bulk = found.authorizers[with_rule] = BulkAuthorizer(found.authorizer, with_rule=with_rule)
    return bulk


def _collect(evicted: list[_Compiled]) -> None:
    """Free evicted sets, whose objects were frozen."""
    evicted.clear()
    collect_frozen()


@kept_in_worker(COMPILED_SETS_MAX, key=lambda shipped: shipped.digest, evicted=_collect)
def _compiled(shipped: ShippedAcls) -> _Compiled:
    found = _Compiled(authorizer_of_content(shipped.name, shipped.content(), shipped.digest))
    # PySpark has the collector look at all objects after each task, which takes longer than many a task
    freeze_until_exit()
    return found
