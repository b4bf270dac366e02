"""How a set of ACLs gets from the driver to the workers, by classic Spark or by Spark Connect.

Classic Spark broadcasts the bytes. Spark Connect has no broadcast: there they are a file of the session
(`addArtifacts`), which each worker finds in its own folder.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kustos.pipeline.deciding.acl_set import AclsInForce
from kustos.pipeline.deciding.compiled import ShippedAcls
from kustos.pipeline.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
